"""Sequences of several lengths, one after the other in one tensor."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from .._arguments import Normalizer
from ..operator import attention


def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    *,
    window: Any = None,
    offset: int | Literal["end"] | None = None,
    alibi_slopes: Any = None,
    relative_bias: Any = None,
    score: Any = "scaled_dot",
    normalizer: Normalizer = "softmax",
    softcap: float | None = None,
    sinks: Any = None,
) -> Tensor:
    """Attention within each of several packed sequences: query ``[T, Hq, D]``, key and value ``[Tk, Hk, D]`` give
    ``[T, Hq, Dv]``, without padding and without a look from one sequence at another.

    ``cu_seqlens_q`` ``[S + 1]`` is where the sequences of the queries begin, and T at its end, as FlashAttention has it;
    ``cu_seqlens_k`` is the same of the keys, unless they are cut alike. All else is what ``regard.attention`` calls so, in
    each sequence by itself. Where a sequence has other numbers of queries and keys, ``is_causal`` wants to know where its
    queries stand: ``offset="end"`` at the last keys (FlashAttention's), ``offset=0`` at the first (PyTorch's).

    >>> import torch, regard.torch
    >>> x = torch.randn(7, 2, 4)
    >>> out = regard.torch.attention_varlen(x, x, x, torch.tensor([0, 3, 7]), is_causal=True)
    >>> bool(torch.allclose(out[3:], regard.attention(*[x[None, 3:]] * 3, is_causal=True, layout="bnhd")[0]))
    True
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} is {type(x).__name__}; attention_varlen wants tensors")
        if x.ndim != 3:
            raise ValueError(f"{name} has shape {list(x.shape)}; packed sequences are [T, H, D]")
    if key.shape[0] != value.shape[0]:
        raise ValueError(f"key has shape {list(key.shape)} and value {list(value.shape)}; there are as many values as keys")
    of_q = _lengths("cu_seqlens_q", cu_seqlens_q, query)
    of_k = of_q if cu_seqlens_k is None else _lengths("cu_seqlens_k", cu_seqlens_k, key)
    if cu_seqlens_k is None and key.shape[0] != query.shape[0]:
        raise ValueError(f"key has {key.shape[0]} rows and query {query.shape[0]}; cu_seqlens_k says how the keys are cut")
    if len(of_q) != len(of_k):
        raise ValueError(f"cu_seqlens_q has {len(of_q)} sequences and cu_seqlens_k {len(of_k)}; they belong together")
    if isinstance(offset, str) and offset != "end":
        raise ValueError(f"offset is {offset!r}; it wants a whole number, or 'end'")
    if is_causal and offset is None and of_q != of_k:
        raise ValueError("is_causal, and sequences with other numbers of queries than keys: offset='end' or 0 says where they stand")
    found = [
        attention(
            q[None],
            k[None],
            v[None],
            dropout_p=dropout_p,
            is_causal=is_causal,
            scale=scale,
            window=window,
            offset=k.shape[0] - q.shape[0] if offset == "end" else offset,
            alibi_slopes=alibi_slopes,
            relative_bias=relative_bias,
            score=score,
            normalizer=normalizer,
            softcap=softcap,
            sinks=sinks,
            layout="bnhd",
        )[0]
        for q, k, v in zip(query.split(of_q), key.split(of_k), value.split(of_k))
    ]
    return torch.cat(found) if found else query.new_empty(0, query.shape[1], value.shape[2])


def _lengths(name: str, bounds: Any, x: Tensor) -> list[int]:
    """How long the sequences are that a tensor is cut into."""
    if not isinstance(bounds, Tensor):
        raise TypeError(f"{name} is {type(bounds).__name__}; it wants a tensor [S + 1]")
    if bounds.is_floating_point() or bounds.is_complex() or bounds.dtype is torch.bool:
        raise TypeError(f"{name} is {bounds.dtype}; it wants whole numbers")
    if bounds.ndim != 1 or len(bounds) < 1:
        raise ValueError(f"{name} has shape {list(bounds.shape)}; it wants [S + 1], where each sequence begins, and the end")
    places: list[int] = bounds.tolist()
    if places[0] != 0:
        raise ValueError(f"{name} begins at {places[0]}; the first sequence begins at 0")
    if places[-1] != x.shape[0]:
        raise ValueError(f"{name} ends at {places[-1]}, and there are {x.shape[0]} rows")
    lengths = [after - before for before, after in zip(places, places[1:])]
    if min(lengths, default=0) < 0:
        raise ValueError(f"{name} goes back by {-min(lengths)}; the places of sequences rise")
    return lengths
