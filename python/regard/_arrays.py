"""NumPy arrays, as the kernels read and write them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import _native
from ._arguments import parameter_names as parameter_names
from .threads import get_num_threads

int64 = np.dtype(np.int64)
_f32, _f64, _f16 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)


def check(name: str, x: Any) -> None:
    """Refuses what is no array of plain numbers in this machine's byte order."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, of which the mask would be lost; give {name}.filled(0) and an attn_mask")
    if not isinstance(x, np.ndarray):
        raise TypeError(f"{name} is {type(x).__name__}; it wants a NumPy array as query is one")
    if not x.dtype.isnative:
        raise TypeError(f"{name} is byte-swapped ({x.dtype.str}); x.astype(x.dtype.newbyteorder('=')) is not")


def _code(name: str, x: Any) -> tuple[int, Any]:
    dtype = x.dtype
    if dtype == _f32:
        return 0, _f32
    if dtype == _f64:
        return 1, _f64
    if dtype == _f16:
        return 3, _f32
    if dtype.name == "bfloat16" and dtype.itemsize == 2:
        return 2, _f32
    raise TypeError(f"{name} is {dtype}; attention wants float32, float64, float16 or bfloat16")


def check_inputs(q: Any, k: Any, v: Any) -> tuple[int, Any]:
    """The type of q, k and v, as a code and what is computed in."""
    for name, x in (("query", q), ("key", k), ("value", v)):
        check(name, x)
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"query is {q.dtype}, key {k.dtype} and value {v.dtype}; they want one type")
    return _code("query", q)


def check_devices(q: Any, learned: Any, constants: Any) -> None:
    """Arrays are all in the same memory."""


def is_bool(x: Any) -> bool:
    return bool(x.dtype == np.bool_)


def is_whole(x: Any) -> bool:
    return x.dtype.kind in "iu"


def _unexpanded(x: Any) -> Any:
    """A broadcast axis is one long."""
    if 0 in x.strides and x.size > 1:
        return x[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in x.strides)]
    return x


def numbers(name: str, x: Any, dtype: Any, axes: int) -> Any:
    """Contiguous numbers of a type, of at most so many axes."""
    if isinstance(x, (int, float, list, tuple)):
        x = _of_list(name, x, np.float64)
    check(name, x)
    if x.dtype.kind != "f" and x.dtype.name != "bfloat16":
        raise TypeError(f"{name} is {x.dtype}; it wants fractions")
    if x.ndim > axes:
        raise ValueError(f"{name} has shape {list(x.shape)}; it wants at most {axes} axes")
    x = _unexpanded(x).astype(dtype, order="C", copy=False)
    return x if x.flags.aligned and x.flags.c_contiguous else np.array(x, order="C")


def _of_list(name: str, x: Any, dtype: Any) -> Any:
    try:
        return np.asarray(x, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name} makes no array: {error}") from None


def whole(name: str, x: Any, axes: int) -> Any:
    """Contiguous whole numbers, of at most so many axes."""
    if isinstance(x, (int, list, tuple)):
        x = _of_list(name, x, None)
        x = x.astype(np.int64) if x.size == 0 else x
    check(name, x)
    if x.dtype.kind not in "iu":
        raise TypeError(f"{name} is {x.dtype}; it wants whole numbers")
    if not 1 <= x.ndim <= axes:
        raise ValueError(f"{name} has shape {list(x.shape)}; it wants {'1 axis' if axes == 1 else '1 or 2 axes'}")
    x = x.astype(np.int64, order="C", copy=False)
    return x if x.flags.aligned and x.flags.c_contiguous else np.array(x, order="C")


def written_out(name: str, x: Any) -> Any:
    """A gradient that is broadcast, with all its numbers."""
    check(name, x)
    return np.ascontiguousarray(x) if 0 in x.strides else x


def truths(x: Any) -> Any:
    return np.ascontiguousarray(_unexpanded(x))


def rows_for_batch(x: Any, batch: int) -> Any:
    return np.ascontiguousarray(np.broadcast_to(x, (batch, x.shape[0])))


def rowwise(x: Any) -> Any:
    """The array, or a copy where the kernels cannot read it in its place."""
    item = x.itemsize
    strides = x.strides
    if (
        x.flags.aligned
        and (strides[-1] == item or x.shape[-1] <= 1)
        and all(stride >= 0 and stride % item == 0 for stride in strides)
    ):
        return x
    return np.array(x, order="C")


def rows(x: Any) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    item = x.itemsize
    return x.ctypes.data, x.shape, tuple(stride // item for stride in x.strides)


def block(x: Any) -> tuple[int, tuple[int, ...]]:
    return x.ctypes.data, x.shape


def given(x: Any, name: str) -> tuple[int, tuple[int, ...]]:
    return block(x)


def edges(x: Any) -> Any:
    """A graph's edges, in the host's memory."""
    return x.native


def kind_of(x: Any) -> Any:
    """The kind of array that a call on such arrays has."""
    return _this


def check_beside(name: str, x: Any, query: Any) -> None:
    """Arrays of NumPy all lie in the host's memory."""


place = get_num_threads
forward = _native.forward
backward = _native.backward


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.empty(shape, dtype)


def zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.zeros(shape, dtype)


def empty_rows(like: Any, shape: tuple[int, ...]) -> Any:
    return np.empty(shape, like.dtype)


def arriving_at_part(own: Any, whole: Any, grad_out: Any) -> tuple[Any, Any]:
    """What a gradient of the whole's output is for a part of it: of its output and of its log-sum-exp."""
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(own.lse - whole.lse), nan=0.0)
    wide = grad_out.astype(own.lse.dtype, copy=False)
    apart = ((own.out.astype(wide.dtype, copy=False) - whole.out.astype(wide.dtype, copy=False)) * wide).sum(-1)
    return (wide * share[..., None]).astype(grad_out.dtype, copy=False), np.ascontiguousarray(share * apart)


def fresh_seed() -> int:
    # NumPy's own random numbers, so that `np.random.seed` repeats them.
    return int(np.random.randint(1 << 62, dtype=np.int64))


_this = sys.modules[__name__]
