"""The mask that a Hugging Face model makes, as what it says: causal, a window, padding. No array of pairs is made of it
unless somebody reads one."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeGuard

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only
from transformers import masking_utils

from . import _tensors


class Shape(NamedTuple):
    """Which keys a query sees by their places: the key at j is j − i − offset away from query i."""

    num_queries: int
    is_causal: bool = False
    #: How far to the left and to the right.
    window: tuple[int, int] | None = None
    offset: int = 0


class Band(Tensor):
    """``[B, 1, Nq, Nk]``, true where a key is seen: a mask that knows its shape, and that becomes an ordinary tensor in
    whatever reads or changes it."""

    keys: Tensor
    band: Shape
    _written: Tensor | None

    @staticmethod
    def __new__(cls, keys: Tensor, band: Shape) -> Band:
        """``keys`` ``[B, Nk]``: false where a key is padding."""
        size = (keys.shape[0], 1, band.num_queries, keys.shape[1])
        made: Band = Tensor._make_wrapper_subclass(cls, size, dtype=torch.bool, device=keys.device)
        return made

    def __init__(self, keys: Tensor, band: Shape) -> None:
        self.keys, self.band, self._written = keys, band, None

    def options(self) -> dict[str, Any] | None:
        """What ``attention`` calls the same; none once somebody may have changed the written mask."""
        return None if self._written is not None else self._options

    @functools.cached_property
    def _options(self) -> dict[str, Any]:
        band, keys = self.band, self.keys
        # Where the first query sees every key, all do.
        is_causal = band.is_causal and band.offset < keys.shape[1] - 1
        found: dict[str, Any] = {"is_causal": is_causal}
        if band.window is not None:
            found["window"] = band.window
        if band.offset and (is_causal or band.window is not None):
            found["offset"] = band.offset
        if not bool(keys.all()):
            is_prefix = not bool((keys[:, 1:] & ~keys[:, :-1]).any())
            padding = {"key_lengths": keys.sum(-1)} if is_prefix else {"attn_mask": keys[:, None, None, :]}
            found.update(padding)
        return found

    def written(self) -> Tensor:
        """The array of pairs."""
        if self._written is None:
            keys, band = self.keys, self.band
            queries = torch.arange(band.num_queries, device=keys.device) + band.offset
            distance = torch.arange(keys.shape[1], device=keys.device)[None, :] - queries[:, None]
            seen = torch.ones_like(distance, dtype=torch.bool)
            if band.is_causal:
                seen = distance <= 0
            if band.window is not None:
                seen = seen & (distance >= -band.window[0]) & (distance <= band.window[1])
            self._written = seen & keys[:, None, None, :]
        return self._written

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.written().clone()

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["keys"], self.band

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], band: Any, size: Any, stride: Any) -> Band:
        return Band(inner["keys"], band)

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Band({list(self.shape)}, {self.band})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        args, kwargs = tree_map_only(Band, Band.written, (args, kwargs or {}))
        return func(*args, **kwargs)


def of_model(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: Any = 0,
    mask_function: Any = masking_utils.causal_mask_function,
    attention_mask: Tensor | None = None,
    use_vmap: bool = False,
    device: Any = "cpu",
    **_: Any,
) -> Band | None:
    """The band that ``sdpa_mask`` would write out; none where it is another pattern, or where a tracer follows."""
    found = None if use_vmap or torch.compiler.is_compiling() else _pattern(mask_function)
    if found is None or _tensors.is_observed(attention_mask):
        return None
    # A number on a GPU would have to be waited for.
    if any(isinstance(x, Tensor) and not x.is_cpu for x in (q_offset, kv_offset)):
        return None
    first = int(kv_offset)
    padding = masking_utils.prepare_padding_mask(attention_mask, kv_length, first)
    keys: Tensor
    if padding is None:
        keys = torch.ones(batch_size, kv_length, dtype=torch.bool, device=device)
    else:
        keys = padding[:, first : first + kv_length].to(dtype=torch.bool)
    is_causal, window = found
    return Band(keys, Shape(q_length, is_causal, window, int(q_offset) - first))


_AND = masking_utils.and_masks(masking_utils.causal_mask_function).__code__
_LEFT = masking_utils.sliding_window_overlay(1).__code__
_BOTH = getattr(masking_utils, "sliding_window_bidirectional_overlay", masking_utils.sliding_window_overlay)(1).__code__


def _pattern(function: Any) -> tuple[bool, tuple[int, int] | None] | None:
    """Whether a mask function of transformers is causal, and its window; none of all other functions."""
    if function is masking_utils.causal_mask_function:
        return True, None
    everything = getattr(masking_utils, "bidirectional_mask_function", None)
    if everything is not None and function is everything:
        return False, None
    parts = _captured(function, _AND, "mask_functions")
    if not isinstance(parts, tuple) or len(parts) != 2:
        return None
    near, rest = parts
    left = _captured(near, _LEFT, "sliding_window")
    if _is_size(left) and rest is masking_utils.causal_mask_function:
        return True, (left - 1, 0)
    both = _captured(near, _BOTH, "sliding_window") if _BOTH is not _LEFT else None
    return (False, (both, both)) if _is_size(both) and everything is not None and rest is everything else None


def _is_size(x: Any) -> TypeGuard[int]:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 1


def _captured(function: Any, code: Any, name: str) -> Any:
    """What a function of that code was made with."""
    if code.co_freevars != (name,) or getattr(function, "__code__", None) is not code:
        return None
    return function.__closure__[0].cell_contents
