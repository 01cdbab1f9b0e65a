"""The operator: ``weights = normalize(score(q, k) + bias, where mask); output = weights · v``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, overload

import numpy as np

from . import _arrays, _axes, _call, _foreign, _native, _sinks
from ._arguments import AUX, HARD, THRESHOLD, Aux, AuxName, Normalizer, Options, flag, needs, prepare
from ._axes import Layout
from ._call import Arriving, Gradients, Saved
from .score import Additive, Expression

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Unpack

    _Array = np.ndarray[Any, Any]


class CallOptions(TypedDict, total=False):
    """The options of ``attention`` that are given by their names, for type checkers."""

    seed: int | None
    window: Any
    key_lengths: Any
    segments: Any
    edges: Any
    offset: int | None
    key_bias: Any
    alibi_slopes: Any
    relative_bias: Any
    score: Any
    normalizer: Normalizer
    softcap: float | None
    sinks: Any
    layout: Layout


@overload
def attention(
    query: _Array,
    key: _Array,
    value: _Array,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
    *,
    return_aux: None = None,
    **options: Unpack[CallOptions],
) -> _Array: ...


@overload
def attention(
    query: _Array,
    key: _Array,
    value: _Array,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
    *,
    return_aux: AuxName | Sequence[AuxName],
    **options: Unpack[CallOptions],
) -> tuple[_Array, Aux]: ...


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
    *,
    return_aux: None = None,
    **options: Unpack[CallOptions],
) -> Tensor: ...


@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
    *,
    return_aux: AuxName | Sequence[AuxName],
    **options: Unpack[CallOptions],
) -> tuple[Tensor, Aux]: ...


@overload
def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
    *,
    return_aux: AuxName | Sequence[AuxName] | None = None,
    **options: Unpack[CallOptions],
) -> Any: ...


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
    *,
    seed: int | None = None,
    window: Any = None,
    key_lengths: Any = None,
    segments: Any = None,
    edges: Any = None,
    offset: int | None = None,
    key_bias: Any = None,
    alibi_slopes: Any = None,
    relative_bias: Any = None,
    score: Any = "scaled_dot",
    normalizer: Normalizer = "softmax",
    softcap: float | None = None,
    sinks: Any = None,
    layout: Layout = "bhnd",
    return_aux: AuxName | Sequence[AuxName] | None = None,
) -> Any:
    """Attention with any score, mask, bias and normalizer, fused, in linear memory, on every core.

    ``query`` ``[B, Hq, Nq, D]``, ``key`` ``[B, Hk, Nk, D]`` and ``value`` ``[B, Hk, Nk, Dv]`` are NumPy
    arrays or PyTorch tensors of float64, float32, bfloat16 or float16, with any strides; Hq is a multiple
    of Hk. ``[B, N, D]``, ``[N, D]``, and a query ``[D]`` over ``[N, D]`` do as well, and any leading axes in place of B,
    which are broadcast where one has length 1. The result is
    ``[B, Hq, Nq, Dv]``, zeros where a query sees no key. Tensors carry gradients. The first arguments are those of
    ``torch.nn.functional.scaled_dot_product_attention``, in its order, and mean what they mean there.

    Args:
        attn_mask: Truths (true: may attend) or numbers that are added to the scores; broadcasts to
            ``[B, Hq, Nq, Nk]``; or a pair of both. Masks combine by "and", biases by their sum.
        dropout_p: Each weight is zeroed with this probability, the others divided by 1 − p.
        is_causal: No key behind the query's own position.
        scale: The factor of the dot product, 1/√D unless given; a tensor of one number may learn.
        enable_gqa: Changes nothing: heads of keys are always shared by groups of query heads.
        seed: What dropout and sampling draw with; the framework's own random numbers unless given.
        window: ``(left, right)``, or one number for both: only keys so near; −1 has no end.
        key_lengths: ``[B]``: only the first so many keys of each item.
        segments: ``[B, N]``, or a pair for queries and keys: only keys of the query's own segment.
        edges: ``edge_index`` ``[2, E]`` (keys, then queries) or ``Edges``: only along these.
        offset: Query i stands at key position i + offset, 0 unless given; Nk − Nq for the last queries of
            a sequence whose keys are cached.
        key_bias: ``[Nk]``, ``[B, Nk]`` or ``[B, Hq, 1, Nk]``.
        alibi_slopes: ``[Hq]``: −slope · distance is added.
        relative_bias: ``[1 or Hq, 2·R + 1]``: entry ``clamp(j − i, ±R) + R`` is added.
        score: ``"scaled_dot"``, ``"dot"``, ``Additive``, ``Expression``, or an expression's text.
        normalizer: ``"softmax"``, ``"sparsemax"``, ``"entmax15"``, ``"sigmoid"``, ``"none"``,
            ``"argmax"`` or ``"sample"``.
        softcap: Scores of a dot product are bent to ``softcap · tanh(score / softcap)``, before any bias (Gemma 2).
        sinks: ``[Hq]``: the score of one more key of each head, whose value is zero (gpt-oss).
        layout: ``"bhnd"``, or ``"bnhd"`` where query, key, value and output have their heads inside of positions.
        return_aux: A name or names of ``weights``, ``edge_weights``, ``lse``, ``index``, ``log_prob`` and
            ``threshold``: then the result is ``(output, Aux)``.

    >>> import numpy as np, regard
    >>> x = np.eye(3)
    >>> out, aux = regard.attention(x, x, x, is_causal=True, normalizer="sparsemax", return_aux="weights")
    >>> aux.weights[0]
    array([1., 0., 0.])
    """
    if enable_gqa is not False:
        flag("enable_gqa", enable_gqa)
    torch = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(query, torch.Tensor)
    if (
        is_tensor
        and attn_mask is None
        and isinstance(dropout_p, float)
        and dropout_p == 0.0
        and window is None
        and key_lengths is None
        and segments is None
        and edges is None
        and offset is None
        and key_bias is None
        and alibi_slopes is None
        and relative_bias is None
        and return_aux is None
        and isinstance(score, str)
        and score == "scaled_dot"
        and isinstance(normalizer, str)
        and normalizer == "softmax"
        and softcap is None
        and sinks is None
        and layout == "bhnd"
        and not torch.compiler.is_compiling()  # type: ignore[union-attr]
    ):
        from . import _tensors

        try:
            return _tensors.plain(query, key, value, flag("is_causal", is_causal), scale)
        except ValueError:
            # Looked at where it is refused, so that the common call does not pay for it.
            if not all(hasattr(x, "ndim") for x in (key, value)) or _axes.are_plain(query, key, value):
                raise
    options = Options(
        attn_mask, is_causal, scale, dropout_p, seed, window, key_lengths, segments, edges, offset,
        key_bias, alibi_slopes, relative_bias, score, normalizer,
    )  # fmt: skip
    if not is_tensor and not isinstance(query, np.ndarray):
        query, key, value, options, sinks = _foreign.brought((query, key, value, options, sinks))
    return _arranged((query, key, value), options, softcap, sinks, layout, return_aux)


def _arranged(qkv: Any, options: Options, softcap: Any, sinks: Any, layout: Any, return_aux: Any) -> Any:
    """With the axes that the kernels know, and a sink beside the keys."""
    if not all(hasattr(x, "ndim") for x in qkv):
        return _of_kind(qkv, options, return_aux)
    q, k, v = (_axes.turned(x, layout, name) for x, name in zip(qkv, ("query", "key", "value")))
    if softcap is not None:
        options = _sinks.capped(options, softcap, q.shape[-1] if q.ndim else 0)
    lead = None
    if not _axes.are_plain(q, k, v):
        (q, k, v), options, lead = _axes.joined(q, k, v, options)
    if sinks is None:
        result = _of_kind((q, k, v), options, return_aux)
    else:
        heads = q.shape[1] if q.ndim == 4 else 1
        result = _sinks.attention(lambda need: _of_kind((q, k, v), options, need), heads, q.ndim, sinks, options, return_aux)
    if lead is not None:
        result = _axes.apart(result, lead)
    if layout == "bhnd":
        return result
    return (_axes.turned(result[0], layout), result[1]) if isinstance(result, tuple) else _axes.turned(result, layout)


def _of_kind(qkv: Any, options: Options, return_aux: Any) -> Any:
    q, k, v = qkv
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(q, torch.Tensor):
        from . import _tensors

        return _tensors.attention(q, k, v, options, return_aux)
    return _of_arrays(q, k, v, options, return_aux)


def _of_arrays(q: Any, k: Any, v: Any, options: Options, return_aux: Any) -> Any:
    frame, learned = prepare(_arrays, q, k, v, options)
    need = needs(return_aux, frame.normalizer, frame.edges)
    qkv = (_arrays.rowwise(q), _arrays.rowwise(k), _arrays.rowwise(v))
    results = _call.forward(_arrays, frame, qkv, learned, need, False)
    return (results.out, _aux(results, need, frame)) if return_aux is not None else results.out


def _aux(results: Any, need: Any, frame: Any) -> Aux:
    """What was asked for, the edges' weights in the order in which the edges were given."""
    found = {name: getattr(results, name) for name in need}
    if "edge_weights" in found and not frame.edges.is_in_order:
        found["edge_weights"] = found["edge_weights"][..., frame.edges.places]
    return Aux(**found)


def attention_backward(
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    *,
    out: Any = None,
    lse: Any = None,
    threshold: Any = None,
    index: Any = None,
    grad_weights: Any = None,
    grad_edge_weights: Any = None,
    grad_lse: Any = None,
    grad_log_prob: Any = None,
    is_part: bool = False,
    **options: Any,
) -> Gradients:
    """The gradients of ``attention`` on plain arrays.

    ``grad_out`` is the gradient of the output; those of other results may be given too. ``options`` are
    the keyword arguments that ``attention`` had, ``seed`` included where something was drawn. What
    forward left (``out``, and ``lse``, ``threshold`` or ``index`` by the normalizer) may be handed over;
    otherwise it is computed again.

    With ``is_part`` the keys and values are a part of a longer sequence, over which ``out`` and ``lse`` are
    those of softmax attention: the gradients of all parts together are the whole's, that of the query in sum.

    >>> import numpy as np, regard
    >>> x = np.eye(2)
    >>> gradients = regard.attention_backward(np.ones((2, 2)), x, x, x)
    >>> gradients.value.sum(axis=0)
    array([2., 2.])
    """
    for name in ("return_aux", "softcap", "sinks", "layout"):
        if name in options:
            raise TypeError(f"attention_backward has no {name}")
    chosen = Options(**options)
    xp, q, k, v = _kind(query, key, value)
    if xp is not _arrays and (xp.is_observed(query, key, value, grad_out) or sys.modules["torch"].compiler.is_compiling()):
        raise NotImplementedError(
            "attention_backward is neither traced, transformed nor compiled; the gradient of attention itself is"
        )
    frame, learned = prepare(xp, q, k, v, chosen)
    if chosen.seed is None and (frame.dropout_p > 0.0 or frame.normalizer == "sample"):
        raise ValueError("attention_backward needs the seed that attention drew with")
    qkv = (xp.rowwise(q), xp.rowwise(k), xp.rowwise(v))
    grads = _arriving(xp, frame, qkv, (grad_out, grad_weights, grad_edge_weights, grad_log_prob, grad_lse))
    if flag("is_part", is_part):
        if frame.normalizer != "softmax" or frame.dropout_p > 0.0 or out is None or lse is None or grads[0] is None:
            raise ValueError("is_part needs softmax without dropout, grad_out, and the out and lse of the whole")
        if any(x is not None for x in grads[1:]):
            raise ValueError("is_part takes the gradient of the output and no other")
        whole = _saved(xp, frame, qkv, learned, (out, lse, None, None))
        found = _call.backward_of_part(xp.kind_of(q), frame, qkv, learned, whole, grads.out)
    else:
        saved = _saved(xp, frame, qkv, learned, (out, lse, threshold, index))
        found = _call.backward(xp.kind_of(q), frame, qkv, learned, saved, grads)
    if xp is _arrays:
        return found
    arrived = (grad_out, grad_weights, grad_edge_weights, grad_lse, grad_log_prob, out, lse)
    return _without_second(found, (query, key, value, *arrived, *chosen))


def _without_second(found: Gradients, given: tuple[Any, ...]) -> Gradients:
    """Gradients whose own derivative is refused where it would be lost: of what requires one."""
    torch = sys.modules["torch"]
    learning = [x for x in _flat(given) if isinstance(x, torch.Tensor) and x.requires_grad]
    whole = (*found[:7], *found.parameters)
    if not learning:
        return found
    from . import _tensors

    joined = iter(_tensors.once("attention_backward", tuple(x for x in whole if x is not None), tuple(learning)))
    q, k, v, w, key_bias, bias, relative, *own = (None if x is None else next(joined) for x in whole)
    return Gradients(q, k, v, w, key_bias, bias, relative, tuple(own))


def _flat(given: Any) -> list[Any]:
    """What options hold, one by one: pairs, and the numbers of a score."""
    if isinstance(given, Additive):
        return [given.w]
    if isinstance(given, Expression):
        return list(given.parameters.values())
    return [x for part in given for x in _flat(part)] if isinstance(given, tuple) else [given]


def gpu_forms(query: Any, key: Any, value: Any, **options: Any) -> tuple[str, str]:
    """Which kernels a call of ``attention`` on tensors of a GPU goes to, forward and backward.

    ``"Dot"``, ``"DotBias"``, ``"DotThreshold"``, ``"DotSplit"`` and ``"Decode"`` are the tensor cores' own forms,
    ``"Tile"`` has every mask, bias and dropout on tensor cores, ``"Additive"`` and ``"Graph"`` are of additive scores;
    ``"Generic"`` has everything else, and is the slowest. ``options`` are those of ``attention``.

    >>> import numpy as np, regard
    >>> x = np.eye(3)
    >>> regard.gpu_forms(x, x, x)
    Traceback (most recent call last):
        ...
    TypeError: query is on the CPU; forms are of calls on a GPU
    """
    xp, q, k, v = _kind(query, key, value)
    frame, learned = prepare(xp, q, k, v, Options(**options))
    kind = xp.kind_of(q)
    qkv = (xp.rowwise(q), xp.rowwise(k), xp.rowwise(v))
    forward, backward = _native.forms(_call._frame(kind, frame, *qkv), _call._inputs(kind, frame, learned))
    return forward, backward


def _kind(query: Any, key: Any, value: Any) -> tuple[Any, Any, Any, Any]:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(query, torch.Tensor):
        from . import _tensors

        return (_tensors, *(x.detach() if isinstance(x, torch.Tensor) else x for x in (query, key, value)))
    if isinstance(query, np.ndarray):
        return _arrays, query, key, value
    raise TypeError(f"query is {type(query).__name__}; attention wants NumPy arrays or PyTorch tensors")


def _arriving(xp: Any, frame: Any, qkv: Any, grads: Any) -> Arriving:
    q, k, v = qkv
    rows = tuple(q.shape[:-1])
    out, weights, edge_weights, log_prob, lse = grads
    count = 0 if frame.edges is None else len(frame.edges)
    for name, x in zip(("grad_out", "grad_weights", "grad_edge_weights", "grad_log_prob", "grad_lse"), grads):
        xp.check_beside(name, x, q)
    if out is not None:
        xp.check("grad_out", out)
        if out.dtype != q.dtype:
            raise TypeError(f"grad_out is {out.dtype}, query is {q.dtype}; they want one type")
        out = xp.rowwise(_of_shape("grad_out", out, (*rows, v.shape[-1])))
    if edge_weights is not None:
        if frame.edges is None:
            raise ValueError("grad_edge_weights was given, and no edges")
        if not frame.edges.is_in_order:
            xp.check("grad_edge_weights", edge_weights)
            _of_shape("grad_edge_weights", edge_weights, (*rows[:-1], len(frame.edges.places)))
            edge_weights = _by_place(xp, edge_weights, frame)

    def numbers(name: str, x: Any, shape: tuple[int, ...]) -> Any:
        return None if x is None else _of_shape(name, xp.numbers(name, xp.written_out(name, x), frame.compute, 4), shape)

    return Arriving(
        out,
        numbers("grad_weights", weights, (*rows, k.shape[-2])),
        numbers("grad_edge_weights", edge_weights, (*rows[:-1], count)),
        numbers("grad_log_prob", log_prob, rows),
        numbers("grad_lse", lse, rows),
    )


def _by_place(xp: Any, x: Any, frame: Any) -> Any:
    """A gradient in the order of the edges as given, added up where an edge was given twice."""
    if xp is not _arrays:
        added = x.new_zeros((*x.shape[:-1], len(frame.edges)))
        return added.index_add_(-1, frame.edges.tensor_places(x.device), x.detach())
    plain = np.asarray(x)
    to = np.zeros((*plain.shape[:-1], len(frame.edges)), plain.dtype)
    np.add.at(to, (..., frame.edges.places), plain)  # type: ignore[arg-type]
    return to


def _of_shape(name: str, x: Any, shape: tuple[int, ...]) -> Any:
    if tuple(x.shape) != shape:
        raise ValueError(f"{name} has shape {list(x.shape)}, what it is the gradient of has {list(shape)}")
    return x


def _saved(xp: Any, frame: Any, qkv: Any, learned: Any, given: Any) -> Saved:
    out, lse, threshold, index = given
    normalizer = frame.normalizer
    enough = (
        (normalizer == "softmax" and out is not None and lse is not None)
        or (normalizer in THRESHOLD and threshold is not None)
        or (normalizer in HARD and index is not None and lse is not None)
        or normalizer in ("sigmoid", "none")
    )
    if not enough:
        results = _call.forward(xp.kind_of(qkv[0]), frame, qkv, learned, (), True)
        return Saved(results.out, results.lse, results.threshold, results.index)
    q, _, v = qkv
    rows = tuple(q.shape[:-1])
    for name, x in zip(("out", "lse", "threshold", "index"), given):
        xp.check_beside(name, x, q)
    if out is not None:
        xp.check("out", out)
        if out.dtype != q.dtype:
            raise TypeError(f"out is {out.dtype}, query is {q.dtype}; they want one type")
        out = xp.rowwise(_of_shape("out", out, (*rows, v.shape[-1])))

    def numbers(name: str, x: Any) -> Any:
        return None if x is None else _of_shape(name, xp.numbers(name, xp.written_out(name, x), frame.compute, 3), rows)

    return Saved(out, numbers("lse", lse), numbers("threshold", threshold), _index(xp, index, rows))


def _index(xp: Any, index: Any, rows: tuple[int, ...]) -> Any:
    return None if index is None else _of_shape("index", xp.whole("index", index, 3), rows)


__all__ = ["AUX", "Aux", "Gradients", "attention", "attention_backward", "gpu_forms"]
