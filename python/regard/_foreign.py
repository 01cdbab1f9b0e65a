"""Arrays of other frameworks, as NumPy reads them: JAX's, CuPy's of the host, whatever speaks DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arguments import Options
from .score import Additive, Expression


def brought(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Query, key, value, the options and the sinks of a call, with every array as one of NumPy's."""
    names = ("query", "key", "value", "options", "sinks")
    if not hasattr(given[0], "__dlpack__"):
        _refuse_tracer("query", given[0])
        raise TypeError(f"query is {type(given[0]).__name__}; attention wants NumPy arrays or PyTorch tensors")
    return tuple(_as_numpy(name, x) for name, x in zip(names, given))


def _as_numpy(name: str, x: Any) -> Any:
    if isinstance(x, Options):
        return Options(*(_as_numpy(field, part) for field, part in zip(Options._fields, x)))
    if isinstance(x, tuple):
        return tuple(_as_numpy(name, part) for part in x)
    if isinstance(x, Additive):
        return Additive(_as_numpy("w", x.w), x.activation)
    if isinstance(x, Expression):
        return Expression(x.text, **{one: _as_numpy(f"parameter {one!r}", part) for one, part in x.parameters.items()})
    _refuse_tracer(name, x)
    if isinstance(x, (np.ndarray, np.generic)) or not hasattr(x, "__dlpack__"):
        return x
    try:
        return np.from_dlpack(x)
    except (BufferError, TypeError, ValueError, RuntimeError):
        # What DLPack has no name for, as bfloat16, or does not hand out.
        return np.asarray(x)


def _refuse_tracer(name: str, x: Any) -> None:
    if any(kind.__name__ == "Tracer" and kind.__module__.partition(".")[0] == "jax" for kind in type(x).__mro__):
        raise TypeError(
            f"{name} is a tracer of JAX's, which has no numbers: regard computes outside of jax.jit, jax.grad and jax.vmap; "
            "call it on concrete arrays, in a jit through jax.pure_callback"
        )
