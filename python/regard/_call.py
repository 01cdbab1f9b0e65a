"""One call of the kernels, forward or backward, for either kind of array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ._arguments import HARD, NO_CONSTANTS, NO_LEARNED, THRESHOLD, Frame, Learned


class Results(NamedTuple):
    """What forward gives."""

    out: Any
    lse: Any = None
    threshold: Any = None
    index: Any = None
    log_prob: Any = None
    weights: Any = None
    edge_weights: Any = None


class Saved(NamedTuple):
    """What backward needs of forward."""

    out: Any = None
    lse: Any = None
    threshold: Any = None
    index: Any = None


class Arriving(NamedTuple):
    """The gradients that arrive at the results."""

    out: Any = None
    weights: Any = None
    edge_weights: Any = None
    log_prob: Any = None
    lse: Any = None

    @property
    def is_output_alone(self) -> bool:
        return self.out is not None and all(x is None for x in self[1:])


class Gradients(NamedTuple):
    """The gradients of what a call was given; ``None`` where there is none.

    >>> import numpy as np, regard
    >>> x = np.ones((2, 3))
    >>> regard.attention_backward(x, x, x, x).value.shape
    (2, 3)
    """

    query: Any = None
    key: Any = None
    value: Any = None
    #: Of the additive score's vector.
    w: Any = None
    key_bias: Any = None
    #: Of ``attn_mask`` where it holds numbers.
    attn_mask: Any = None
    relative_bias: Any = None
    #: Of an expression's parameters, in order of first appearance.
    parameters: tuple[Any, ...] = ()


#: The options that the constants of a frame, but the first, were.
_CONSTANTS = ("key_lengths", "segments", "segments", "attn_mask")


def _inputs(xp: Any, frame: Frame, learned: Learned) -> Any:
    edges = frame.edges
    if learned is NO_LEARNED and frame.constants is NO_CONSTANTS and edges is None:
        return None
    given = xp.given
    w, key_bias, bias, relative, parameters = learned
    return (
        None if w is None else given(w, "w"),
        [given(x, "a parameter of the score") for x in parameters],
        None if key_bias is None else given(key_bias, "key_bias"),
        None if bias is None else given(bias, "attn_mask"),
        None if frame.constants.alibi is None else given(frame.constants.alibi, "alibi_slopes"),
        None if relative is None else given(relative, "relative_bias"),
        *(None if x is None else given(x, name) for name, x in zip(_CONSTANTS, frame.constants[1:])),
        None if edges is None else xp.edges(edges),
    )


def _frame(xp: Any, frame: Frame, q: Any, k: Any, v: Any) -> Any:
    rows = xp.rows
    return (
        frame.code,
        xp.place(),
        frame.mechanism,
        (frame.seed, frame.dropout_p),
        rows(q),
        rows(k),
        rows(v),
    )


def forward(
    xp: Any, frame: Frame, qkv: tuple[Any, Any, Any], learned: Learned, need: Sequence[str], saves: bool
) -> Results:
    """The output and what is needed besides; what backward will need where it ``saves``."""
    q, k, v = qkv
    lead = tuple(q.shape[:-1])
    compute, normalizer = frame.compute, frame.normalizer
    out = xp.empty_rows(q, (*lead, v.shape[-1]))
    call = _frame(xp, frame, q, k, v)
    inputs = _inputs(xp, frame, learned)
    if not need and not saves:
        xp.forward(call, xp.rows(out), inputs)
        return Results(out)
    if not need and normalizer == "softmax":
        lse = xp.empty(lead, compute)
        xp.forward(call, xp.rows(out), inputs, (xp.block(lse), None, None, None, None, None))
        return Results(out, lse)
    hard = normalizer in HARD
    lse = threshold = index = log_prob = weights = edge_weights = None
    if "lse" in need or (saves and (hard or normalizer == "softmax")):
        lse = xp.empty(lead, compute)
    if "threshold" in need or (saves and normalizer in THRESHOLD):
        threshold = xp.empty(lead, compute)
    if hard:
        index, log_prob = xp.empty(lead, xp.int64), xp.empty(lead, compute)
    if "weights" in need:
        weights = xp.empty((*lead, k.shape[-2]), compute)
    if "edge_weights" in need and frame.edges is not None:
        edge_weights = xp.empty((*lead[:-1], len(frame.edges)), compute)
    results = (lse, threshold, index, log_prob, weights, edge_weights)
    block = xp.block
    xp.forward(call, xp.rows(out), inputs, tuple(None if x is None else block(x) for x in results))
    return Results(out, *results)


def backward(
    xp: Any,
    frame: Frame,
    qkv: tuple[Any, Any, Any],
    learned: Learned,
    saved: Saved,
    arriving: Arriving,
    wanted: Sequence[bool] | None = None,
) -> Gradients:
    """The gradients that are ``wanted``: of q, k, v, w, key_bias, bias, relative and the parameters as one."""
    q, k, v = qkv
    wq, wk, wv, ww, wkey, wbias, wrelative, wown = wanted or (True,) * 8
    rows, block, like = xp.rows, xp.block, xp.empty_rows
    grad_q = like(q, tuple(q.shape)) if wq else None
    grad_k = like(k, tuple(k.shape)) if wk else None
    grad_v = like(v, tuple(v.shape)) if wv else None
    grad_out = arriving.out
    if learned is NO_LEARNED and frame.normalizer == "softmax" and arriving.is_output_alone:
        # The common case, without what it does not need.
        xp.backward(
            _frame(xp, frame, q, k, v),
            rows(grad_out),
            (rows(saved.out), block(saved.lse), None, None),
            (*(None if x is None else rows(x) for x in (grad_q, grad_k, grad_v)), None, None, None, None, None),
            _inputs(xp, frame, learned),
        )
        return Gradients(grad_q, grad_k, grad_v)
    w, key_bias, bias, relative, parameters = learned
    compute = frame.compute
    sizes = [_numel(x.shape) for x in parameters]
    own = xp.empty((sum(sizes),), compute) if wown and parameters else None
    others = tuple(
        xp.empty(tuple(x.shape), compute) if wants and x is not None else None
        for wants, x in ((ww, w), (wkey, key_bias), (wbias, bias), (wrelative, relative))
    )
    if grad_out is None:
        grad_out = xp.zeros((*q.shape[:-1], v.shape[-1]), v.dtype)
    more = arriving[1:]
    xp.backward(
        _frame(xp, frame, q, k, v),
        rows(grad_out),
        (
            None if saved.out is None else rows(saved.out),
            None if saved.lse is None else block(saved.lse),
            None if saved.threshold is None else block(saved.threshold),
            None if saved.index is None else block(saved.index),
        ),
        (
            None if grad_q is None else rows(grad_q),
            None if grad_k is None else rows(grad_k),
            None if grad_v is None else rows(grad_v),
            None if others[0] is None else block(others[0]),
            None if own is None else block(own),
            *(None if x is None else block(x) for x in others[1:]),
        ),
        _inputs(xp, frame, learned),
        None if all(x is None for x in more) else tuple(None if x is None else block(x) for x in more),
    )
    of_w, of_key, of_bias, of_relative = others
    of_own = _split(own, parameters, sizes)
    return Gradients(grad_q, grad_k, grad_v, of_w, of_key, of_bias, of_relative, of_own)


def backward_of_part(
    xp: Any, frame: Frame, qkv: tuple[Any, Any, Any], learned: Learned, whole: Saved, grad_out: Any
) -> Gradients:
    """The gradients of a part of the keys, where output and log-sum-exp are those of them all.

    A part's weights are a share e^(lse of the part − lse of the whole) of what they are by themselves. So the
    gradient is that of the part alone, with what arrives at its output and its log-sum-exp.
    """
    results = forward(xp, frame, qkv, learned, ("lse",), False)
    own = Saved(results.out, results.lse)
    at_out, at_lse = xp.arriving_at_part(own, whole, grad_out)
    return backward(xp, frame, qkv, learned, own, Arriving(xp.rowwise(at_out), lse=at_lse))


def _numel(shape: Sequence[int]) -> int:
    numel = 1
    for size in shape:
        numel *= size
    return numel


def _split(own: Any, parameters: Sequence[Any], sizes: Sequence[int]) -> tuple[Any, ...]:
    if own is None:
        return (None,) * len(parameters)
    parts, start = [], 0
    for x, size in zip(parameters, sizes):
        parts.append(own[start : start + size].reshape(tuple(x.shape)))
        start += size
    return tuple(parts)
