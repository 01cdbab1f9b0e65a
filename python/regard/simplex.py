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


def _normalized(x: Any, axis: int, normalizer: Normalizer) -> Any:
    torch: Any = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(x, torch.Tensor)
    if not is_tensor and not isinstance(x, np.ndarray):
        raise TypeError(f"{normalizer} of {type(x).__name__}; it wants a NumPy array or a PyTorch tensor")
    if not isinstance(axis, int) or x.ndim == 0 or not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} of an array of shape {list(x.shape)}")
    given: Any = x
    last: Any = given.movedim(axis, -1) if is_tensor else np.moveaxis(x, axis, -1)
    n = last.shape[-1]
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
