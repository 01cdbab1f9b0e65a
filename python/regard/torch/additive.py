"""Bahdanau's attention."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .._arguments import Normalizer
from ..operator import attention
from ..score import Additive


class AdditiveAttention(nn.Module):
    """s(q, k) = w · tanh(W_q q + W_k k) and softmax, for queries and keys of any widths (Bahdanau, Cho,
    Bengio 2015). The parameters are named as in the Rust crate: ``W_q.weight``, ``W_k.weight``,
    ``w_v.weight``.

    >>> import torch, regard.torch
    >>> attention = regard.torch.AdditiveAttention(6, 10, hidden_dim=16)
    >>> out, weights = attention(torch.zeros(2, 3, 6), torch.zeros(2, 7, 10))
    >>> out.shape, weights.shape
    (torch.Size([2, 3, 10]), torch.Size([2, 3, 7]))
    """

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        hidden_dim: int,
        dropout: float = 0.0,
        *,
        activation: str = "tanh",
        normalizer: Normalizer = "softmax",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.W_q = nn.Linear(query_dim, hidden_dim, bias=False, **factory)
        self.W_k = nn.Linear(key_dim, hidden_dim, bias=False, **factory)
        self.w_v = nn.Linear(hidden_dim, 1, bias=False, **factory)
        self.dropout = dropout
        self.activation = activation
        self.normalizer: Normalizer = normalizer
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot's first values."""
        for layer in (self.W_q, self.W_k, self.w_v):
            nn.init.xavier_uniform_(layer.weight)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor | None = None,
        key_lengths: Any = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """query ``[B, Nq, Dq]`` over key ``[B, Nk, Dk]`` and value ``[B, Nk, Dv]`` (the keys unless given).

        True in ``attn_mask`` allows, as in ``regard.attention``.
        """
        result = attention(
            self.W_q(query),
            self.W_k(key),
            key if value is None else value,
            attn_mask=attn_mask,
            key_lengths=key_lengths,
            dropout_p=self.dropout if self.training else 0.0,
            score=Additive(self.w_v.weight[0], self.activation),
            normalizer=self.normalizer,
            return_aux="weights" if need_weights else None,
        )
        return (result[0], result[1].weights) if need_weights else (result, None)

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}, normalizer={self.normalizer!r}"


