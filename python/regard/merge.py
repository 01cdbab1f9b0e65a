"""Attention over parts of the keys, put together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np


def merge_attentions(outs: Sequence[Any], lses: Sequence[Any]) -> tuple[Any, Any]:
    """The output and log-sum-exp over all keys, from those over parts of them.

    Each ``outs[n]`` ``[..., Nq, Dv]`` and ``lses[n]`` ``[..., Nq]`` is what softmax attention gave with
    ``return_aux="lse"``. A query that saw none of a part's keys takes nothing from it. Tensors carry
    gradients.

    >>> import numpy as np, regard
    >>> x = np.random.default_rng(0).normal(size=(8, 4))
    >>> parts = [regard.attention(x, y, y, return_aux="lse") for y in (x[:3], x[3:])]
    >>> out, lse = regard.merge_attentions([out for out, _ in parts], [aux.lse for _, aux in parts])
    >>> bool(np.allclose(out, regard.attention(x, x, x)))
    True
    """
    outs, lses = list(outs), list(lses)
    if not outs or len(outs) != len(lses):
        raise ValueError(f"{len(outs)} outputs and {len(lses)} log-sum-exps; there is one of each for each part")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(outs[0], torch.Tensor):
        kind: Any = torch.Tensor
    else:
        kind = np.ndarray
    for n, (out, lse) in enumerate(zip(outs, lses)):
        if not isinstance(out, kind) or not isinstance(lse, kind):
            raise TypeError(f"outs[{n}] is {type(out).__name__} and lses[{n}] {type(lse).__name__}; arrays of one kind fit")
        if tuple(out.shape) != tuple(outs[0].shape) or tuple(lse.shape) != tuple(out.shape[:-1]):
            raise ValueError(
                f"outs[{n}] has shape {list(out.shape)} and lses[{n}] {list(lse.shape)}; "
                f"{list(outs[0].shape)} and {list(outs[0].shape[:-1])} fit"
            )
    return _of_arrays(outs, lses) if kind is np.ndarray else _of_tensors(torch, outs, lses)


def _of_arrays(outs: list[Any], lses: list[Any]) -> tuple[Any, Any]:
    stacked = np.stack(lses)
    top = stacked.max(axis=0)
    # Where no part saw anything, every difference is 0 and not −inf − −inf.
    shift = np.where(np.isneginf(top), 0, top)
    shares = np.exp(stacked - shift)
    total = shares.sum(axis=0)
    safe = np.where(total == 0, 1, total)
    wide = shares.dtype
    merged = sum(out.astype(wide) * (share / safe)[..., None] for out, share in zip(outs, shares))
    with np.errstate(divide="ignore"):
        lse = shift + np.log(total)
    return np.asarray(merged).astype(outs[0].dtype), lse


def _of_tensors(torch: Any, outs: list[Any], lses: list[Any]) -> tuple[Any, Any]:
    stacked = torch.stack(lses)
    # `logsumexp` sends NaN back where all are −inf: those places get no gradient.
    empty = torch.isneginf(stacked).all(dim=0)
    lse = torch.logsumexp(stacked.masked_fill(empty, 0.0), dim=0).masked_fill(empty, float("-inf"))
    safe = lse.masked_fill(empty, 0.0)
    merged: Any = sum(out.to(lse.dtype) * torch.exp(part - safe).unsqueeze(-1) for out, part in zip(outs, lses))
    return merged.to(outs[0].dtype), lse
