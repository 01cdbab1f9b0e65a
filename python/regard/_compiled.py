"""The operator for ``torch.compile`` and ``torch.export``: custom ops that they can look over.

Eager calls use an ``autograd.Function``, which costs half as much.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from . import _call, _tensors
from ._arguments import (
    HARD,
    NO_CONSTANTS,
    NO_LEARNED,
    THRESHOLD,
    Aux,
    Constants,
    Frame,
    Learned,
    Options,
    check_ranks,
    describe,
    mechanism,
    needs,
    seed_of,
)
from ._call import Arriving, Saved
from .edges import Edges

_FIELDS = ("out", "lse", "threshold", "index", "log_prob", "weights", "edge_weights")
_EMPTY = 0


def attention(q: Tensor, k: Any, v: Any, options: Options, return_aux: Any) -> Any:
    """As ``_tensors.attention``, written in what a compiler follows."""
    if _tensors.autocasts(q.device.type):
        q, k, v = _tensors.autocast(q), _tensors.autocast(k), _tensors.autocast(v)
    _, compute = _tensors.check_inputs(q, k, v)
    check_ranks(q, k, v)
    described, learned = describe(_tensors, q, k, compute, options)
    need = needs(return_aux, described.normalizer, options.edges)
    seed = None
    if described.dropout_p > 0.0 or described.normalizer == "sample":
        if options.seed is None:
            seed = torch.randint(1 << 62, (), dtype=torch.int64)
        else:
            seed = torch.tensor(seed_of(_tensors, options.seed), dtype=torch.int64)
    given = options.edges.edge_index if isinstance(options.edges, Edges) else options.edges
    if given is not None and not isinstance(given, Tensor):
        given = torch.as_tensor(given)
    left, right = described.window or (-1, -1)
    kind, of = described.score
    results = _forward_op(
        _tensors.rowwise(q),
        _tensors.rowwise(k),
        _tensors.rowwise(v),
        *learned[:4],
        list(learned.parameters),
        *described.constants,
        given,
        seed,
        kind,
        of if isinstance(of, str) else None,
        None if isinstance(of, str) else of,
        described.normalizer,
        described.is_causal,
        left,
        right,
        described.offset,
        described.dropout_p,
        ",".join(need),
    )
    if return_aux is None:
        return results[0]
    return results[0], Aux(**{name: results[_FIELDS.index(name)] for name in need})


def _frame(
    q: Tensor,
    k: Tensor,
    constants: Constants,
    edge_index: Any,
    seed: Any,
    what: tuple[Any, ...],
) -> Frame:
    kind, text, scale, normalizer, is_causal, left, right, offset, dropout_p = what
    code, compute = _tensors._KINDS[q.dtype]
    score = (kind, scale if text is None else text)
    window = None if left < 0 else (left, right)
    edges = None
    if edge_index is not None:
        edges = Edges.of(edge_index, q.shape[-2] if q.ndim > 1 else 1, k.shape[-2])
    number = 0 if seed is None else int(seed.item()) & ((1 << 64) - 1)
    if all(x is None for x in constants):
        constants = NO_CONSTANTS
    chosen = mechanism(score, normalizer, is_causal, window, offset)
    return Frame(chosen, normalizer, code, compute, number, dropout_p, constants, edges)


def _learned(w: Any, key_bias: Any, bias: Any, relative: Any, parameters: list[Tensor]) -> Learned:
    if not parameters and w is None and key_bias is None and bias is None and relative is None:
        return NO_LEARNED
    return Learned(w, key_bias, bias, relative, tuple(parameters))


@torch.library.custom_op("regard::attention", mutates_args=(), device_types=("cpu", "cuda"))
def _forward_op(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w: Optional[Tensor],
    key_bias: Optional[Tensor],
    bias: Optional[Tensor],
    relative: Optional[Tensor],
    parameters: list[Tensor],
    alibi: Optional[Tensor],
    key_lengths: Optional[Tensor],
    q_segments: Optional[Tensor],
    k_segments: Optional[Tensor],
    dense: Optional[Tensor],
    edge_index: Optional[Tensor],
    seed: Optional[Tensor],
    kind: str,
    text: Optional[str],
    scale: Optional[float],
    normalizer: str,
    is_causal: bool,
    left: int,
    right: int,
    offset: int,
    dropout_p: float,
    need: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    constants = Constants(alibi, key_lengths, q_segments, k_segments, dense)
    what = (kind, text, scale, normalizer, is_causal, left, right, offset, dropout_p)
    frame = _frame(q, k, constants, edge_index, seed, what)
    learned = _learned(w, key_bias, bias, relative, parameters)
    results = _call.forward(_tensors.kind_of(q), frame, (q, k, v), learned, need.split(",") if need else (), True)
    edge_weights = results.edge_weights
    if edge_weights is not None and frame.edges is not None and not frame.edges.is_in_order:
        edge_weights = edge_weights.index_select(-1, frame.edges.tensor_places(edge_weights.device))
    parts = (*results[:6], edge_weights)
    return tuple(q.new_empty(_EMPTY) if x is None else x for x in parts)  # type: ignore[return-value]


@_forward_op.register_fake
def _(q, k, v, w, key_bias, bias, relative, parameters, alibi, key_lengths, q_segments, k_segments, dense,  # type: ignore[no-untyped-def]
      edge_index, seed, kind, text, scale, normalizer, is_causal, left, right, offset, dropout_p, need):  # fmt: skip
    names = need.split(",")
    lead = tuple(q.shape[:-1])
    compute = _tensors._KINDS[q.dtype][1]
    hard = normalizer in HARD

    def rows(wanted: bool, dtype: Any = compute, shape: Any = lead) -> Any:
        return q.new_empty(shape, dtype=dtype) if wanted else q.new_empty(_EMPTY)

    return (
        _tensors.empty_rows(q, (*lead, v.shape[-1])),
        rows(hard or normalizer == "softmax" or "lse" in names),
        rows(normalizer in THRESHOLD),
        rows(hard, torch.int64),
        rows(hard),
        rows("weights" in names, shape=(*lead, k.shape[-2])),
        rows("edge_weights" in names, shape=(*lead[:-1], 0 if edge_index is None else edge_index.shape[-1])),
    )


@torch.library.custom_op("regard::attention_backward", mutates_args=(), device_types=("cpu", "cuda"))
def _backward_op(
    grad_out: Optional[Tensor],
    grad_weights: Optional[Tensor],
    grad_edge_weights: Optional[Tensor],
    grad_log_prob: Optional[Tensor],
    grad_lse: Optional[Tensor],
    out: Optional[Tensor],
    lse: Optional[Tensor],
    threshold: Optional[Tensor],
    index: Optional[Tensor],
    wanted: list[bool],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w: Optional[Tensor],
    key_bias: Optional[Tensor],
    bias: Optional[Tensor],
    relative: Optional[Tensor],
    parameters: list[Tensor],
    alibi: Optional[Tensor],
    key_lengths: Optional[Tensor],
    q_segments: Optional[Tensor],
    k_segments: Optional[Tensor],
    dense: Optional[Tensor],
    edge_index: Optional[Tensor],
    seed: Optional[Tensor],
    kind: str,
    text: Optional[str],
    scale: Optional[float],
    normalizer: str,
    is_causal: bool,
    left: int,
    right: int,
    offset: int,
    dropout_p: float,
) -> list[Tensor]:
    constants = Constants(alibi, key_lengths, q_segments, k_segments, dense)
    what = (kind, text, scale, normalizer, is_causal, left, right, offset, dropout_p)
    frame = _frame(q, k, constants, edge_index, seed, what)
    learned = _learned(w, key_bias, bias, relative, parameters)
    if grad_edge_weights is not None and frame.edges is not None and not frame.edges.is_in_order:
        to = grad_edge_weights.new_zeros((*grad_edge_weights.shape[:-1], len(frame.edges)))
        grad_edge_weights = to.index_add_(-1, frame.edges.tensor_places(to.device), grad_edge_weights)
    arriving = Arriving(
        None if grad_out is None else _tensors.rowwise(grad_out),
        *(None if x is None else x.contiguous() for x in (grad_weights, grad_edge_weights, grad_log_prob, grad_lse)),
    )
    saved = Saved(None if out is None else _tensors.rowwise(out), lse, threshold, index)
    gradients = _call.backward(_tensors.kind_of(q), frame, (q, k, v), learned, saved, arriving, wanted)
    found = (*gradients[:7], *gradients.parameters)
    # An op's results share no memory.
    parts = [x.clone() if n >= 7 and x is not None and len(parameters) > 1 else x for n, x in enumerate(found)]
    return [q.new_empty(_EMPTY) if x is None else x for x in parts]


@_backward_op.register_fake
def _(grad_out, grad_weights, grad_edge_weights, grad_log_prob, grad_lse, out, lse, threshold, index, wanted,  # type: ignore[no-untyped-def]
      q, k, v, w, key_bias, bias, relative, parameters, *rest):  # fmt: skip
    rows = [_tensors.empty_rows(x, tuple(x.shape)) if wants else q.new_empty(_EMPTY)
            for wants, x in zip(wanted, (q, k, v))]  # fmt: skip
    others = [torch.empty_like(x) if wants and x is not None else q.new_empty(_EMPTY)
              for wants, x in zip(wanted[3:7], (w, key_bias, bias, relative))]  # fmt: skip
    return rows + others + [torch.empty_like(x) if wanted[7] else q.new_empty(_EMPTY) for x in parameters]


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, w, key_bias, bias, relative, parameters, *rest = inputs
    tensors, what = rest[:7], rest[7:]
    out, lse, threshold, index, *_ = output
    hard, soft = what[3] in HARD, what[3] == "softmax"
    saved = (
        out if soft else None,
        lse if soft or hard else None,
        threshold if what[3] in THRESHOLD else None,
        index if hard else None,
    )
    ctx.save_for_backward(*saved, q, k, v, w, key_bias, bias, relative, *tensors, *parameters)
    ctx.what = what
    ctx.mark_non_differentiable(index, threshold)


def _backward(ctx: Any, grad_out: Any, grad_lse: Any, _t: Any, _i: Any, log_prob: Any, weights: Any, edges: Any) -> Any:
    saved = ctx.saved_tensors
    head, (q, k, v), learned, tensors, parameters = saved[:4], saved[4:7], saved[7:11], saved[11:18], saved[18:]
    *what, need = ctx.what
    names, normalizer = need.split(","), what[3]
    hard = normalizer in HARD
    wants = ctx.needs_input_grad
    wanted = [bool(x) for x in wants[:7]] + [bool(parameters) and _any(wants[7])]
    gradients = _backward_op(
        grad_out,
        weights if "weights" in names and not hard else None,
        edges if "edge_weights" in names and not hard else None,
        log_prob if hard else None,
        grad_lse if "lse" in names and (hard or normalizer == "softmax") else None,
        *head,
        wanted,
        q,
        k,
        v,
        *learned,
        list(parameters),
        *tensors,
        *what,
    )
    first = [gradient if wants else None for wants, gradient in zip(wanted, gradients[:7])]
    own = list(gradients[7:]) if wanted[7] else [None] * len(parameters)
    return (*first, own, *(None for _ in range(len(tensors) + len(what) + 1)))


def _any(wants: Any) -> bool:
    return any(wants) if isinstance(wants, (list, tuple)) else bool(wants)


_forward_op.register_autograd(_backward, setup_context=_setup_context)
