"""The operator behind Hugging Face's models.

>>> import regard.transformers
>>> regard.transformers.register()
>>> from transformers import BertConfig, BertModel
>>> tiny = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=9)
>>> model = BertModel._from_config(tiny, attn_implementation="regard")
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from .operator import attention

#: What some models hand over and the operator does not have.
_LACKING = {"softcap": "capped scores", "s_aux": "attention sinks", "head_mask": "masks of whole heads"}


def register() -> None:
    """Makes ``attn_implementation="regard"`` known, and ``"regard_weights"``, which always returns the weights
    (for ``output_attentions``: some models do not tell the kernels that they are wanted)."""
    for name, function in (("regard", _forward), ("regard_weights", _forward_with_weights)):
        AttentionInterface.register(name, function)
        # Without it padding would be ignored in silence.
        AttentionMaskInterface.register(name, sdpa_mask)


def _forward(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    **more: Any,
) -> tuple[Tensor, Tensor | None]:
    for name, what in _LACKING.items():
        if more.get(name) is not None:
            raise ValueError(f"attn_implementation='regard' has no {what} ({name}); use 'eager' for this model")
    if is_causal is None:
        is_causal = bool(getattr(module, "is_causal", True))
    # One query is the last of its sequence; a mask that is there says all.
    is_causal = query.shape[2] > 1 and attention_mask is None and is_causal
    mask: Any = attention_mask
    if position_bias is not None:
        mask = position_bias
        if attention_mask is not None:
            truths = attention_mask.dtype is torch.bool
            mask = (attention_mask, position_bias) if truths else attention_mask + position_bias
    wanted = bool(more.get("output_attentions"))
    result = attention(
        query,
        key,
        value,
        attn_mask=mask,
        is_causal=is_causal,
        scale=scaling,
        dropout_p=dropout,
        return_aux="weights" if wanted else None,
    )
    out, weights = (result[0], result[1].weights.to(query.dtype)) if wanted else (result, None)
    return out.transpose(1, 2).contiguous(), weights


def _forward_with_weights(*arguments: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
    return _forward(*arguments, **{**options, "output_attentions": True})
