"""Axes of a call that the kernels do not know: another layout, more leading axes, batches that are broadcast.

``[..., H, N, D]`` becomes ``[B, H, N, D]`` with all leading axes as one batch, and the results get them back.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Literal

import numpy as np

from ._arguments import Aux, Options

Layout = Literal["bhnd", "bnhd"]


def are_plain(q: Any, k: Any, v: Any) -> bool:
    """Whether the kernels take the shapes as they are, or refuse them in words of their own."""
    ranks = (q.ndim, k.ndim, v.ndim)
    if not ranks[0] == ranks[1] == ranks[2] or ranks[0] < 3:
        return True
    return bool(ranks[0] <= 4 and q.shape[0] == k.shape[0] == v.shape[0])


def turned(x: Any, layout: Any, name: str = "layout") -> Any:
    """Heads and positions changed places, where the layout has them so."""
    if layout == "bhnd":
        return x
    if layout != "bnhd":
        raise ValueError(f"layout is {layout!r}; there are 'bhnd' and 'bnhd'")
    if x.ndim < 4:
        raise ValueError(f"{name} has shape {list(x.shape)}; layout 'bnhd' wants [B, N, H, D]")
    return x.swapaxes(-3, -2)


def joined(q: Any, k: Any, v: Any, options: Options) -> tuple[tuple[Any, Any, Any], Options, tuple[int, ...]]:
    """Queries, keys and values with one batch axis, the options beside them, and the leading axes that there were."""
    own = 3 if q.ndim >= 4 else 2
    leads = [tuple(x.shape[:-own]) for x in (q, k, v)]
    lead = _broadcast(leads)
    if lead is None:
        shapes = f"{list(q.shape)}, {list(k.shape)} and {list(v.shape)}"
        raise ValueError(f"query, key and value have shapes {shapes}; their batch sizes are neither equal nor 1")
    qkv = tuple(_flat(_spread(x, (*lead, *x.shape[-own:])), len(lead)) for x in (q, k, v))
    if len(lead) == 1:
        return qkv, options, lead
    mask = options.attn_mask
    mask = tuple(_mask(part, lead) for part in mask) if isinstance(mask, tuple) else _mask(mask, lead)
    segments = options.segments
    segments = (
        tuple(_items("segments", x, lead, 1) for x in segments)
        if isinstance(segments, tuple)
        else _items("segments", segments, lead, 1)
    )
    lengths = _items("key_lengths", options.key_lengths, lead, 0)
    key_bias = _items("key_bias", options.key_bias, lead, 1)
    return qkv, options._replace(attn_mask=mask, segments=segments, key_lengths=lengths, key_bias=key_bias), lead


def apart(result: Any, lead: tuple[int, ...]) -> Any:
    """The leading axes again, of the output and of what else there is."""
    if isinstance(result, tuple):
        out, aux = result
        return apart(out, lead), Aux(*(None if x is None else apart(x, lead) for x in aux))
    return result.reshape(*lead, *result.shape[1:])


def _is_tensor(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast; of a tensor differentiably: the gradient adds up what was spread."""
    if tuple(x.shape) == shape:
        return x
    return x.expand(shape) if _is_tensor(x) else np.broadcast_to(x, shape)


def _broadcast(leads: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """In plain words, which a compiler follows."""
    found = []
    for sizes in zip(*leads):
        size = next((n for n in sizes if n != 1), 1)
        if any(n not in (1, size) for n in sizes):
            return None
        found.append(size)
    return tuple(found)


def _flat(x: Any, axes: int) -> Any:
    return x if axes == 1 else x.reshape(math.prod(x.shape[:axes]), *x.shape[axes:])


def _mask(mask: Any, lead: tuple[int, ...]) -> Any:
    """A mask that broadcasts to ``[..., Hq, Nq, Nk]``, for one batch axis."""
    if mask is None or not hasattr(mask, "ndim") or mask.ndim <= 3:
        return mask
    own = tuple(mask.shape[:-3])
    if all(size == 1 for size in own):
        return mask.reshape(1, *mask.shape[-3:])
    try:
        whole = _spread(mask, (*lead, *mask.shape[-3:]))
    except (ValueError, RuntimeError):
        raise ValueError(
            f"attn_mask has shape {list(mask.shape)}; its leading axes do not broadcast to {list(lead)}"
        ) from None
    return _flat(whole, len(lead))


def _items(name: str, x: Any, lead: tuple[int, ...], own: int) -> Any:
    """What each item of the batch has its own of: with all the leading axes, or none."""
    shape = tuple(np.shape(x)) if isinstance(x, (list, tuple)) else getattr(x, "shape", None)
    if x is None or shape is None or (own and len(shape) == own):
        return x
    if tuple(shape[: len(lead)]) != lead:
        raise ValueError(f"{name} has shape {list(shape)}; beside leading axes {list(lead)} it begins with these")
    given = np.asarray(x) if isinstance(x, (list, tuple)) else x
    return _flat(given, len(lead)) if not isinstance(x, (list, tuple)) else _flat(given, len(lead)).tolist()
