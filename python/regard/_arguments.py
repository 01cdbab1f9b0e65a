"""What the arguments of a call mean: checked once, for either kind of array.

``xp`` is the kind: ``_arrays`` for NumPy, ``_tensors`` for PyTorch. Both have the same few functions.
"""

from __future__ import annotations

import operator
import sys
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from ._native import Mechanism
from .edges import Edges
from .score import Additive, Expression

#: How scores become weights.
Normalizer = Literal["softmax", "sparsemax", "entmax15", "sigmoid", "none", "argmax", "sample"]
#: Normalizers that choose one key.
HARD = ("argmax", "sample")
#: Normalizers whose backward needs a threshold.
THRESHOLD = ("sparsemax", "entmax15")
#: What can be asked for besides the output.
AUX = ("weights", "edge_weights", "lse", "index", "log_prob", "threshold")
AuxName = Literal["weights", "edge_weights", "lse", "index", "log_prob", "threshold"]
#: A window that ends nowhere.
_ENDLESS = 1 << 40


class Options(NamedTuple):
    """The keyword arguments of ``attention`` that say what is computed."""

    attn_mask: Any = None
    is_causal: Any = False
    scale: Any = None
    dropout_p: Any = 0.0
    seed: Any = None
    window: Any = None
    key_lengths: Any = None
    segments: Any = None
    edges: Any = None
    offset: Any = None
    key_bias: Any = None
    alibi_slopes: Any = None
    relative_bias: Any = None
    score: Any = "scaled_dot"
    normalizer: Any = "softmax"


class Learned(NamedTuple):
    """Arrays that gradients reach, besides q, k and v; in the type computed in."""

    w: Any = None
    key_bias: Any = None
    bias: Any = None
    relative: Any = None
    parameters: tuple[Any, ...] = ()


class Constants(NamedTuple):
    """Arrays that no gradient reaches."""

    alibi: Any = None
    key_lengths: Any = None
    q_segments: Any = None
    k_segments: Any = None
    dense: Any = None


NO_CONSTANTS = Constants()


class Frame(NamedTuple):
    """What a call computes, apart from q, k, v and what is learned."""

    mechanism: Mechanism
    normalizer: str
    code: int
    compute: Any
    seed: int = 0
    dropout_p: float = 0.0
    constants: Constants = NO_CONSTANTS
    edges: Edges | None = None
    #: What the mechanism was made of: score, normalizer, is_causal, window, offset.
    what: tuple[Any, ...] = ()


NO_LEARNED = Learned()


class Aux(NamedTuple):
    """What was asked for besides the output; ``None`` for the rest."""

    #: ``[B, Hq, Nq, Nk]``: what the values were multiplied by, dropout included.
    weights: Any = None
    #: ``[B, Hq, E]``: the same along the edges, in the order in which they were given.
    edge_weights: Any = None
    #: ``[B, Hq, Nq]``: the log of the summed exponentials of the scores, −inf where nothing is seen.
    lse: Any = None
    #: ``[B, Hq, Nq]``: the key that hard attention chose, −1 where there was none.
    index: Any = None
    #: ``[B, Hq, Nq]``: the log-probability of the chosen key.
    log_prob: Any = None
    #: ``[B, Hq, Nq]``: the threshold of sparsemax and entmax15, for ``attention_backward``.
    threshold: Any = None


mechanism = lru_cache(maxsize=1024)(Mechanism)


def needs(return_aux: Any, normalizer: str, edges: Any) -> tuple[str, ...]:
    """The names that ``return_aux`` asks for."""
    if return_aux is None:
        return ()
    if not isinstance(return_aux, (str, tuple, list, set, frozenset)):
        raise TypeError(f"return_aux is {type(return_aux).__name__}; it wants a name or names of {', '.join(AUX)}")
    names = (return_aux,) if isinstance(return_aux, str) else tuple(return_aux)
    for name in names:
        if not isinstance(name, str) or name not in AUX:
            raise ValueError(f"return_aux asks for {name!r}; there are {', '.join(AUX)}")
    if normalizer not in HARD and ("index" in names or "log_prob" in names):
        raise ValueError(f"return_aux asks for the chosen key; {normalizer!r} chooses none, argmax and sample do")
    if normalizer not in THRESHOLD and "threshold" in names:
        raise ValueError(f"return_aux asks for a threshold; {normalizer!r} has none, sparsemax and entmax15 do")
    if edges is None and "edge_weights" in names:
        raise ValueError("return_aux asks for edge_weights, and no edges were given")
    return names


def check_ranks(q: Any, k: Any, v: Any) -> None:
    ranks = (q.ndim, k.ndim, v.ndim)
    if ranks not in ((4, 4, 4), (3, 3, 3), (2, 2, 2), (1, 2, 2)):
        raise ValueError(
            f"query, key and value have shapes {list(q.shape)}, {list(k.shape)} and {list(v.shape)}; attention wants "
            "[B, H, N, D], [B, N, D] or [N, D] for all three, or a query [D] with [N, D]"
        )


class Described(NamedTuple):
    """What is computed, in plain words and arrays: what a compiler can follow."""

    score: tuple[str, Any]
    normalizer: str
    is_causal: bool
    window: tuple[int, int] | None
    offset: int
    dropout_p: float
    constants: Constants


def describe(xp: Any, q: Any, k: Any, compute: Any, o: Options) -> tuple[Described, Learned]:
    """The meaning of the options and their learned arrays; refuses what makes no sense."""
    score, w, parameters = _score(xp, o, compute, q, k)
    normalizer = o.normalizer
    if not isinstance(normalizer, str):
        raise TypeError(f"normalizer is {type(normalizer).__name__}; it wants the name of one, as 'softmax'")
    offset = 0 if o.offset is None else _whole("offset", o.offset)
    if not -_ENDLESS <= offset <= _ENDLESS:
        raise ValueError(f"offset {offset} lies beyond any sequence")
    dense, bias = _mask(xp, o.attn_mask, compute, q)
    key_bias, relative = _key_bias(xp, o.key_bias, compute), _relative(xp, o.relative_bias, compute)
    learned = NO_LEARNED
    if parameters or not (w is None and key_bias is None and bias is None and relative is None):
        learned = Learned(w, key_bias, bias, relative, parameters)
    constants = NO_CONSTANTS
    if not (dense is None and o.alibi_slopes is None and o.key_lengths is None and o.segments is None):
        constants = Constants(
            _alibi(xp, o.alibi_slopes, compute),
            None if o.key_lengths is None else xp.whole("key_lengths", o.key_lengths, 1),
            *_segments(xp, o.segments, q.shape[0] if q.ndim > 2 else 1),
            dense,
        )
    dropout_p = _probability(o.dropout_p)
    xp.check_devices(q, learned, constants)
    described = Described(score, normalizer, flag("is_causal", o.is_causal), sides(o.window), offset, dropout_p, constants)
    return described, learned


def prepare(xp: Any, q: Any, k: Any, v: Any, o: Options) -> tuple[Frame, Learned]:
    """The frame of a call and its learned arrays."""
    code, compute = xp.check_inputs(q, k, v)
    check_ranks(q, k, v)
    described, learned = describe(xp, q, k, compute, o)
    what, normalizer, dropout_p, constants = described[:5], described.normalizer, described.dropout_p, described.constants
    chosen = mechanism(*what)
    seed = seed_of(xp, o.seed) if dropout_p > 0.0 or normalizer == "sample" else 0
    edges = None
    if o.edges is not None:
        edges = Edges.of(o.edges, q.shape[-2] if q.ndim > 1 else 1, k.shape[-2])
    return Frame(chosen, normalizer, code, compute, seed, dropout_p, constants, edges, what), learned


@lru_cache(maxsize=1024)
def parameter_names(text: str) -> tuple[str, ...]:
    """The names of an expression's parameters, in order of first appearance."""
    return tuple(mechanism(("expression", text), "softmax", False, None, 0).parameters)


def _score(xp: Any, o: Options, compute: Any, q: Any, k: Any) -> tuple[tuple[str, Any], Any, Any]:
    score = o.score
    if isinstance(score, str):
        if score == "scaled_dot":
            return ("dot", None if o.scale is None else number("scale", o.scale)), None, ()
        if score == "dot":
            return ("dot", 1.0 if o.scale is None else number("scale", o.scale)), None, ()
        if score == "additive":
            raise ValueError("score 'additive' needs its vector w: score=regard.Additive(w)")
        if score.isidentifier():
            raise ValueError(
                f"score is {score!r}; there are 'scaled_dot', 'dot', regard.Additive, and expressions over q and k, as "
                "'(q @ k) / (norm(q) * norm(k))' for the cosine"
            )
        score = Expression(score)
    if o.scale is not None:
        raise ValueError("scale belongs to the scores 'scaled_dot' and 'dot'")
    if isinstance(score, Expression):
        given = {name: xp.numbers(f"parameter {name!r}", x, compute, 2) for name, x in score.parameters.items()}
        return ("expression", score.text), None, _ordered(xp.parameter_names(score.text), given, score.text)
    if isinstance(score, Additive):
        w = xp.numbers("w", score.w, compute, 2)
        heads, width = (q.shape[1] if q.ndim == 4 else 1), k.shape[-1]
        if tuple(w.shape) not in ((width,), (heads, width)):
            raise ValueError(
                f"w has shape {list(w.shape)}; the additive score over {heads} heads of width {width} "
                f"needs [{width}] or [{heads}, {width}]"
            )
        return ("additive", score.activation), w, ()
    raise TypeError(
        f"score is {type(score).__name__}; it wants 'scaled_dot', 'dot', an expression as text, "
        "regard.Additive or regard.Expression"
    )


def _ordered(names: tuple[str, ...], given: dict[str, Any], text: str) -> tuple[Any, ...]:
    for name in given:
        if name not in names:
            raise ValueError(f"{text!r} has no parameter {name!r}")
    for name in names:
        if name not in given:
            raise ValueError(f"{text!r} needs the parameter {name!r}")
    return tuple(given[name] for name in names)


def flag(name: str, x: Any) -> bool:
    """A truth; an array of truths is none."""
    if not isinstance(x, (bool, np.bool_)):
        raise TypeError(f"{name} is {type(x).__name__}; it wants True or False")
    return bool(x)


def _whole(name: str, x: Any) -> int:
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError(f"{name} is {type(x).__name__}; it wants a whole number") from None


def number(name: str, x: Any) -> float:
    """A number, or an array of one."""
    if getattr(x, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
        raise ValueError(f"{name} requires a gradient, and there is none of it; detach() it")
    try:
        if isinstance(x, (str, bytes, np.ma.MaskedArray)):
            raise TypeError
        return float(x)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise TypeError(f"{name} is {type(x).__name__}; it wants a number") from None


def _probability(p: Any) -> float:
    given = number("dropout_p", p)
    if not 0.0 <= given < 1.0:
        raise ValueError(f"dropout_p is {given}; it wants 0 ≤ p < 1")
    return given


def seed_of(xp: Any, seed: Any) -> int:
    """The seed of this call: that given, or a fresh one."""
    if seed is None:
        return int(xp.fresh_seed())
    given = _whole("seed", seed)
    if not 0 <= given < 1 << 64:
        raise ValueError(f"seed is {given}; it wants 0 ≤ seed < 2^64")
    return given


def sides(window: Any) -> tuple[int, int] | None:
    """How far a window reaches to the left and to the right."""
    if window is None:
        return None
    both = tuple(window) if isinstance(window, (tuple, list)) else (window, window)
    if len(both) != 2:
        raise ValueError(f"window has {len(both)} sides; it wants one number, or (left, right)")
    left, right = (-1 if side is None else _whole("window", side) for side in both)
    if min(left, right) < -1:
        raise ValueError(f"window is ({left}, {right}); a side is not negative, or −1 where it has no end")
    return (_ENDLESS if left < 0 else min(left, _ENDLESS), _ENDLESS if right < 0 else min(right, _ENDLESS))


def _mask(xp: Any, mask: Any, compute: Any, q: Any) -> tuple[Any, Any]:
    """Truths and what is added to the scores."""
    if mask is None:
        return None, None
    if isinstance(mask, tuple):
        parts = [_mask(xp, part, compute, q) for part in mask]
        truths, numbers = [t for t, _ in parts if t is not None], [n for _, n in parts if n is not None]
        if len(mask) != 2 or len(truths) != 1 or len(numbers) != 1:
            raise ValueError("attn_mask is a tuple; it wants a pair, of truths and of numbers")
        return truths[0], numbers[0]
    xp.check("attn_mask", mask)
    if mask.ndim > 4:
        raise ValueError(f"attn_mask has shape {list(mask.shape)}, which does not broadcast to [B, Hq, Nq, Nk]")
    if q.ndim == 3 and mask.ndim == 3:
        mask = mask[:, None]
    if xp.is_bool(mask):
        return xp.truths(mask), None
    if xp.is_whole(mask):
        raise TypeError(
            f"attn_mask is {mask.dtype}; it wants truths (true: may attend), or fractions that are added to the scores"
        )
    return None, xp.numbers("attn_mask", mask, compute, 4)


def _key_bias(xp: Any, bias: Any, compute: Any) -> Any:
    if bias is None:
        return None
    bias = xp.numbers("key_bias", bias, compute, 4)
    if bias.ndim == 2:
        return bias[:, None, None, :]
    if bias.ndim not in (1, 4) or (bias.ndim == 4 and bias.shape[2] != 1):
        raise ValueError(f"key_bias has shape {list(bias.shape)}; [Nk], [B, Nk] and [B, Hq, 1, Nk] fit")
    return bias


def _relative(xp: Any, bias: Any, compute: Any) -> Any:
    if bias is None:
        return None
    bias = xp.numbers("relative_bias", bias, compute, 2)
    if bias.ndim == 0 or bias.shape[-1] % 2 == 0:
        raise ValueError(f"relative_bias has shape {list(bias.shape)}; it wants [1 or Hq, 2·R + 1]")
    return bias


def _alibi(xp: Any, slopes: Any, compute: Any) -> Any:
    if slopes is None:
        return None
    if getattr(slopes, "requires_grad", False):
        raise ValueError("alibi_slopes requires a gradient, and there is none of them; detach() it")
    return xp.numbers("alibi_slopes", slopes, compute, 1)


def _segments(xp: Any, segments: Any, batch: int) -> tuple[Any, Any]:
    if segments is None:
        return None, None
    pair = segments if isinstance(segments, tuple) else (segments, segments)
    if len(pair) != 2:
        raise ValueError(f"segments are {len(pair)} arrays; it wants one, or (those of queries, those of keys)")
    q, k = (xp.whole("segments", x, 2) for x in pair)
    return (
        xp.rows_for_batch(q, batch) if q.ndim == 1 else q,
        xp.rows_for_batch(k, batch) if k.ndim == 1 else k,
    )
