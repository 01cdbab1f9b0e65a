"""Attention modules for PyTorch, on the fused operator.

>>> import torch, regard.torch
>>> attention = regard.torch.MultiheadAttention(16, 4, batch_first=True)
>>> x = torch.zeros(2, 5, 16)
>>> out, weights = attention(x, x, x)
>>> out.shape, weights.shape
(torch.Size([2, 5, 16]), torch.Size([2, 5, 5]))
"""

from __future__ import annotations

# The operator as PyTorch's own tools see it: registered before one of them looks, as its counter of FLOPs does.
from .. import _compiled as _compiled
from .additive import AdditiveAttention
from .entmax import (
    Entmax15,
    Entmax15Loss,
    EntmaxBisect,
    EntmaxBisectLoss,
    Sparsemax,
    SparsemaxLoss,
)
from .graph import GATConv, GATv2Conv
from .multihead import MultiheadAttention, SlidingWindowAttention
from .packed import attention_varlen
from .ring import ring_attention
from .sdpa import activate, deactivate, is_active
from .transformer import TransformerConv

__all__ = [
    "AdditiveAttention",
    "Entmax15",
    "Entmax15Loss",
    "EntmaxBisect",
    "EntmaxBisectLoss",
    "GATConv",
    "GATv2Conv",
    "MultiheadAttention",
    "SlidingWindowAttention",
    "Sparsemax",
    "SparsemaxLoss",
    "TransformerConv",
    "activate",
    "attention_varlen",
    "deactivate",
    "is_active",
    "ring_attention",
]
