"""Capped scores and attention sinks (Gemma 2, gpt-oss)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ._arguments import Aux, Options, number
from .score import Expression


def capped(options: Options, softcap: Any, width: int) -> Options:
    """Scores that are bent to stay between −softcap and softcap."""
    if not isinstance(options.score, str) or options.score not in ("scaled_dot", "dot"):
        raise ValueError("softcap belongs to the scores 'scaled_dot' and 'dot'; an expression can say c * tanh(… / c)")
    if options.normalizer != "softmax":
        raise ValueError(f"softcap belongs to softmax, and normalizer is {options.normalizer!r}")
    cap = number("softcap", softcap)
    if not 0.0 < cap < float("inf"):
        raise ValueError(f"softcap is {cap}; it wants a positive number")
    scale = options.scale
    if scale is None:
        scale = 1.0 if options.score == "dot" or width == 0 else width**-0.5
    elif not getattr(scale, "requires_grad", False):
        scale = number("scale", scale)
    return options._replace(score=Expression("c * tanh(s * (q @ k) / c)", c=cap, s=scale), scale=None)


def attention(call: Callable[[Any], Any], heads: int, axes: int, sinks: Any, options: Options, return_aux: Any) -> Any:
    """What ``call`` gives for the names that it is asked for, with a sink beside the keys of each head.

    A sink is one more key whose value is zero: all the others lose the share that it takes.
    """
    if options.normalizer != "softmax":
        raise ValueError(f"sinks belong to softmax, and normalizer is {options.normalizer!r}")
    names = () if return_aux is None else (return_aux,) if isinstance(return_aux, str) else tuple(return_aux)
    if "edge_weights" in names:
        raise ValueError("return_aux asks for edge_weights, and sinks are given; weights are there with sinks")
    out, aux = call((*names, *(() if "lse" in names else ("lse",))))
    sink = _beside(aux.lse, sinks, heads, axes)
    share, whole = _of_tensors(aux.lse, sink) if _is_tensor(aux.lse) else _of_arrays(aux.lse, sink)
    shared = out * share[..., None]
    out = shared.to(out.dtype) if _is_tensor(out) else shared.astype(out.dtype)
    if return_aux is None:
        return out
    weights = None if aux.weights is None else aux.weights * share[..., None]
    return out, Aux(**{**aux._asdict(), "weights": weights, "lse": whole if "lse" in names else None})


def _is_tensor(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _beside(lse: Any, given: Any, heads: int, axes: int) -> Any:
    """One for each head, beside the rows of the log-sum-exp."""
    kind: Any = sys.modules["torch"].Tensor if _is_tensor(lse) else np.ndarray
    sinks: Any = given
    if isinstance(given, (list, tuple)) and kind is np.ndarray:
        sinks = np.asarray(given, dtype=np.float64)
    if not isinstance(sinks, kind):
        raise TypeError(f"sinks are {type(sinks).__name__}; it wants {'a tensor' if _is_tensor(lse) else 'an array'} [Hq]")
    is_fraction = sinks.is_floating_point() if _is_tensor(sinks) else sinks.dtype.kind == "f" or sinks.dtype.name == "bfloat16"
    if not is_fraction:
        raise TypeError(f"sinks are {sinks.dtype}; it wants fractions")
    if tuple(sinks.shape) != (heads,):
        raise ValueError(f"sinks have shape {list(sinks.shape)}; it wants one for each query head, [{heads}]")
    shaped = sinks.reshape(heads, 1) if axes == 4 else sinks.reshape(())
    if not _is_tensor(lse):
        return shaped.astype(lse.dtype)
    if sinks.device != lse.device:
        raise TypeError(f"sinks are on {sinks.device} and query on {lse.device}; they want one device")
    return shaped.to(lse.dtype)


def _of_tensors(lse: Any, sink: Any) -> tuple[Any, Any]:
    torch = sys.modules["torch"]
    # −inf where nothing is seen: there the sink takes all, and no derivative passes through an infinity.
    empty = torch.isneginf(lse)
    seen = torch.where(empty, 0.0, lse)
    share = torch.where(empty, 0.0, torch.sigmoid(seen - sink))
    return share, torch.where(empty, sink.expand_as(lse), torch.logaddexp(seen, sink.expand_as(lse)))


def _of_arrays(lse: Any, sink: Any) -> tuple[Any, Any]:
    whole = np.logaddexp(lse, sink)
    return np.exp(lse - whole), whole
