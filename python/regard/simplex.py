"""Sparsemax and entmax on plain arrays: ways from scores to weights that are exactly zero in places."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ._arguments import Normalizer
from .operator import attention


def sparsemax(x: Any, axis: int = -1) -> Any:
    """The nearest point of the simplex along an axis (Martins and Astudillo 2016), differentiable.

    −inf is masked out; where everything is, the result is zeros.

    >>> import numpy as np, regard
    >>> regard.sparsemax(np.array([2.0, 1.5, 0.1]))
    array([0.75, 0.25, 0.  ])
    """
    return _normalized(x, axis, "sparsemax")


def entmax15(x: Any, axis: int = -1) -> Any:
    """Between softmax and sparsemax (Peters, Niculae and Martins 2019), differentiable.

    >>> import numpy as np, regard
    >>> regard.entmax15(np.array([0.0, 0.0, -9.0]))
    array([0.5, 0.5, 0. ])
    """
    return _normalized(x, axis, "entmax15")


def entmax(x: Any, alpha: Any = 1.5, axis: int = -1, *, n_iter: int | None = None) -> Any:
    """α-entmax along an axis for any α ≥ 1 (Peters, Niculae and Martins 2019): softmax at 1, sparsemax at 2, sparser
    beyond; differentiable, also to a tensor ``alpha`` above 1 that broadcasts to ``x`` with length 1 along the axis.

    The threshold is found by ``n_iter`` bisections, as many as the type of the numbers can tell apart unless given; the
    gradient is that of the threshold's equation. −inf is masked out; where everything is, the result is zeros.

    >>> import numpy as np, regard
    >>> x = np.array([2.0, 1.5, 0.1])
    >>> regard.entmax(x, 2.0)
    array([0.75, 0.25, 0.  ])
    >>> bool(np.allclose(regard.entmax(x, 1.5), regard.entmax15(x)))
    True
    """
    is_tensor = _check("entmax", x, axis)
    if n_iter is not None and (isinstance(n_iter, bool) or not isinstance(n_iter, int) or n_iter < 1):
        raise ValueError(f"n_iter is {n_iter!r}; it wants a whole number from 1 on")
    if is_tensor:
        from ._entmax import entmax as of_tensors

        return of_tensors(x, alpha, axis, n_iter)
    if not isinstance(alpha, (int, float, np.floating, np.ndarray)) or isinstance(alpha, bool):
        raise TypeError(f"alpha is {type(alpha).__name__}; it wants a number, or an array of them")
    if not isinstance(alpha, np.ndarray):
        return _of_number(x, float(alpha), axis, n_iter)
    shape = tuple(1 if n == axis % x.ndim else size for n, size in enumerate(x.shape))
    each = np.broadcast_to(alpha, shape)
    if not (each >= 1.0).all():
        raise ValueError(f"alpha has {each.min()}; it wants numbers from 1 on")
    last, to = np.moveaxis(x, axis, -1), np.empty(x.shape, x.dtype)
    for place in np.ndindex(last.shape[:-1]):
        row_alpha = float(np.moveaxis(each, axis, -1)[place][0])
        np.moveaxis(to, axis, -1)[place] = _of_number(last[place], row_alpha, -1, n_iter)
    return to


def _of_number(x: Any, alpha: float, axis: int, n_iter: int | None) -> Any:
    if not 1.0 <= alpha < float("inf"):
        raise ValueError(f"alpha is {alpha}; it wants a number from 1 on")
    if n_iter is None and alpha in _EXACT:
        return _normalized(x, axis, _EXACT[alpha])
    wide = np.moveaxis(x, axis, -1).astype(np.float64)
    top = wide.max(-1, keepdims=True) if wide.size else wide[..., :1]
    top = np.where(np.isneginf(top), 0.0, top)
    beta = alpha - 1.0
    if beta == 0.0:
        grown = np.exp(wide - top)
    else:
        scores, low = beta * (wide - top), np.full(top.shape, -1.0)
        high = np.zeros(top.shape)
        for _ in range(n_iter or 60):
            middle = (low + high) / 2
            is_heavy = (np.maximum(scores - middle, 0.0) ** (1 / beta)).sum(-1, keepdims=True) >= 1.0
            low, high = np.where(is_heavy, middle, low), np.where(is_heavy, high, middle)
        grown = np.maximum(scores - low, 0.0) ** (1 / beta)
    total = grown.sum(-1, keepdims=True)
    return np.moveaxis(grown / np.where(total == 0.0, 1.0, total), -1, axis).astype(x.dtype)


#: What the kernels know by name, in one pass and exactly.
_EXACT: dict[float, Normalizer] = {1.0: "softmax", 1.5: "entmax15", 2.0: "sparsemax"}


def _check(name: str, x: Any, axis: Any) -> bool:
    """Whether it is a tensor; refuses what is none, and no array."""
    torch: Any = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(x, torch.Tensor)
    if not is_tensor and not isinstance(x, np.ndarray):
        raise TypeError(f"{name} of {type(x).__name__}; it wants a NumPy array or a PyTorch tensor")
    if not isinstance(axis, int) or x.ndim == 0 or not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} of an array of shape {list(x.shape)}")
    given: Any = x
    if not (given.is_floating_point() if is_tensor else given.dtype.kind == "f" or given.dtype.name == "bfloat16"):
        raise TypeError(f"{name} of {x.dtype}; it wants fractions")
    return is_tensor


def _normalized(x: Any, axis: int, normalizer: Normalizer) -> Any:
    is_tensor = _check(normalizer, x, axis)
    given: Any = x
    last: Any = given.movedim(axis, -1) if is_tensor else np.moveaxis(x, axis, -1)
    n = last.shape[-1]
    if n == 0:
        return given.clone() if is_tensor else x.copy()
    # Scores that are all bias: queries and keys without features, values without features.
    bias: Any = last.reshape(-1, n)
    if is_tensor:
        q, k = bias.new_empty(bias.shape[0], 0), bias.new_empty(n, 0)
    else:
        q, k = np.empty((bias.shape[0], 0), x.dtype), np.empty((n, 0), x.dtype)
    _, aux = attention(q, k, k, attn_mask=bias, normalizer=normalizer, return_aux="weights")
    weights = aux.weights.reshape(last.shape)
    if is_tensor:
        return weights.to(x.dtype).movedim(-1, axis)
    return np.moveaxis(weights.astype(x.dtype, copy=False), -1, axis)
