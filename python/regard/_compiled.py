"""The operator as custom ops that a compiler or a tracer can look over: for ``torch.compile``, ``torch.export``,
``make_fx``, ``torch.jit.trace``, fake and meta tensors, ``torch.func`` and every mode.

Eager calls use an ``autograd.Function``, which costs half as much.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.flop_counter import register_flop_formula

from . import _call, _formula, _tensors
from ._arguments import (
    HARD,
    NO_CONSTANTS,
    NO_LEARNED,
    THRESHOLD,
    Aux,
    Constants,
    Described,
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
from .edges import Edges, EveryEdge

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
    if torch.onnx.is_in_onnx_export():
        # ONNX has no such op: the formula in its own.
        return _by_formula("no form in ONNX", (q, k, v), learned, described, options, return_aux)
    if not torch.compiler.is_compiling() and _formula_is_wanted(q, k, v, options):
        lacks = "no derivative in forward mode, and no second one,"
        return _by_formula(lacks, (q, k, v), learned, described, options, return_aux)
    seed = None
    if described.dropout_p > 0.0 or described.normalizer == "sample":
        if options.seed is None:
            seed = torch.randint(1 << 62, (), dtype=torch.int64, device="cpu")
        else:
            seed = torch.tensor(seed_of(_tensors, options.seed), dtype=torch.int64, device="cpu")
    repeated = isinstance(options.edges, EveryEdge) or (isinstance(options.edges, Edges) and options.edges.repeated)
    given = options.edges.edge_index if isinstance(options.edges, (Edges, EveryEdge)) else options.edges
    if given is not None and not isinstance(given, Tensor):
        given = torch.as_tensor(given, device="cpu")
    left, right = described.window or (-1, -1)
    kind, of = described.score
    tensors = (
        _tensors.rowwise(q), _tensors.rowwise(k), _tensors.rowwise(v), *learned[:4], *described.constants, given, seed,
        *learned.parameters,
    )  # fmt: skip
    what = (
        kind, of if isinstance(of, str) else None, None if isinstance(of, str) else of, described.normalizer,
        described.is_causal, left, right, described.offset, described.dropout_p, repeated, ",".join(need),
    )  # fmt: skip
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        results = _Transformed.apply(what, *tensors)
    else:
        results = _of_op(what, tensors)
    if return_aux is None:
        return results[0]
    return results[0], Aux(**{name: results[_FIELDS.index(name)] for name in need})


def _of_op(what: tuple[Any, ...], tensors: tuple[Any, ...]) -> Any:
    return _forward_op(*tensors[:7], list(tensors[14:]), *tensors[7:14], *what)


def _formula_is_wanted(q: Tensor, k: Tensor, v: Tensor, options: Options) -> bool:
    """Whether derivatives are taken that the ops do not have: in forward mode, or of torch.func.grad's."""
    if torch._C._are_functorch_transforms_active():
        functorch: Any = getattr(torch._C, "_functorch")  # noqa: B009, since its stubs do not know it
        kinds = [layer.key() for layer in functorch.get_interpreter_stack() or ()]
        kind = functorch.TransformType
        return kind.Jvp in kinds or kinds.count(kind.Grad) > 1
    if forward_ad._current_level < 0:
        return False
    given = [q, k, v, *(options.attn_mask if isinstance(options.attn_mask, tuple) else (options.attn_mask,))]
    given += [options.key_bias, options.relative_bias, options.alibi_slopes, options.dropout_p, options.scale]
    given += [getattr(options.score, "w", None), *getattr(options.score, "parameters", {}).values()]
    return any(isinstance(x, Tensor) and forward_ad.unpack_dual(x).tangent is not None for x in given)


def _by_formula(
    lacks: str, qkv: tuple[Tensor, Tensor, Tensor], learned: Learned, described: Described, options: Options, return_aux: Any
) -> Any:
    q, k, v = qkv
    need = needs(return_aux, described.normalizer, options.edges)
    why = _formula.reason_against(described.score[0], described.normalizer, described.dropout_p, options.edges)
    if why is not None or isinstance(options.dropout_p, Tensor):
        raise NotImplementedError(
            f"attention has {lacks} with {why or 'a learned dropout_p'}; softmax over dot products has"
        )
    score, _, is_causal, window, offset, _, constants = described
    pattern = _formula.Pattern(score[1], is_causal, window, offset)
    compute = _tensors._KINDS[q.dtype][1]
    out, lse, weights = _formula.attention(q, k, v, learned, constants, pattern, compute)
    if return_aux is None:
        return out
    found = {"lse": lse, "weights": weights}
    return out, Aux(**{name: found[name] for name in need})


def _frame(
    q: Tensor,
    k: Tensor,
    constants: Constants,
    edge_index: Any,
    seed: Any,
    what: tuple[Any, ...],
) -> Frame:
    kind, text, scale, normalizer, is_causal, left, right, offset, dropout_p, repeated = what
    code, compute = _tensors._KINDS[q.dtype]
    score = (kind, scale if text is None else text)
    window = None if left < 0 else (left, right)
    edges = None
    if edge_index is not None:
        edges = Edges.of(edge_index, q.shape[-2] if q.ndim > 1 else 1, k.shape[-2], repeated)
    number = 0 if seed is None else int(seed.item()) & ((1 << 64) - 1)
    if all(x is None for x in constants):
        constants = NO_CONSTANTS
    chosen = (score, normalizer, is_causal, window, offset)
    return Frame(mechanism(*chosen), normalizer, code, compute, number, dropout_p, constants, edges, chosen)


def _read(q: Tensor, k: Tensor, v: Tensor, learned: Learned, constants: Constants) -> tuple[Any, Learned, Constants]:
    """What the kernels read, laid out for them. A recorded graph may be run with tensors of other strides or types than
    those that it was recorded with."""
    _, compute = _tensors.check_inputs(q, k, v)
    check_ranks(q, k, v)
    for x in (*learned[:4], *learned.parameters, constants.alibi):
        if x is not None and x.dtype != compute:
            raise TypeError(f"a bias or a parameter is {x.dtype}; this call, recorded for another type, wants {compute}")
    _tensors.check_devices(q, learned, constants)
    if learned is not NO_LEARNED:
        w, key_bias, bias, relative = (_laid_out(x) for x in learned[:4])
        learned = Learned(w, key_bias, bias, relative, tuple(x.contiguous() for x in learned.parameters))
    if any(x is not None for x in constants):
        constants = Constants(*(_laid_out(x) for x in constants))
    return (_tensors.rowwise(q), _tensors.rowwise(k), _tensors.rowwise(v)), learned, constants


def _laid_out(x: Any) -> Any:
    return None if x is None else x.contiguous()


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
    repeated: bool,
    need: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    constants = Constants(alibi, key_lengths, q_segments, k_segments, dense)
    what = (kind, text, scale, normalizer, is_causal, left, right, offset, dropout_p, repeated)
    qkv, learned, constants = _read(q, k, v, _learned(w, key_bias, bias, relative, parameters), constants)
    frame = _frame(q, k, constants, edge_index, seed, what)
    results = _call.forward(_tensors.kind_of(q), frame, qkv, learned, need.split(",") if need else (), True)
    edge_weights = results.edge_weights
    if edge_weights is not None and frame.edges is not None and not frame.edges.is_in_order:
        edge_weights = edge_weights.index_select(-1, frame.edges.tensor_places(edge_weights.device))
    parts = (*results[:6], edge_weights)
    return tuple(q.new_empty(_EMPTY) if x is None else x for x in parts)  # type: ignore[return-value]


@_forward_op.register_fake
def _(q, k, v, w, key_bias, bias, relative, parameters, alibi, key_lengths, q_segments, k_segments, dense,  # type: ignore[no-untyped-def]
      edge_index, seed, kind, text, scale, normalizer, is_causal, left, right, offset, dropout_p, repeated, need):  # fmt: skip
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
    repeated: bool,
) -> list[Tensor]:
    constants = Constants(alibi, key_lengths, q_segments, k_segments, dense)
    what = (kind, text, scale, normalizer, is_causal, left, right, offset, dropout_p, repeated)
    qkv, learned, constants = _read(q, k, v, _learned(w, key_bias, bias, relative, parameters), constants)
    frame = _frame(q, k, constants, edge_index, seed, what)
    if grad_edge_weights is not None and frame.edges is not None and not frame.edges.is_in_order:
        to = grad_edge_weights.new_zeros((*grad_edge_weights.shape[:-1], len(frame.edges)))
        grad_edge_weights = to.index_add_(-1, frame.edges.tensor_places(to.device), grad_edge_weights)
    arriving = Arriving(
        None if grad_out is None else _tensors.rowwise(grad_out),
        *(None if x is None else x.contiguous() for x in (grad_weights, grad_edge_weights, grad_log_prob, grad_lse)),
    )
    saved = Saved(None if out is None else _tensors.rowwise(out), *(_laid_out(x) for x in (lse, threshold, index)))
    gradients = _call.backward(_tensors.kind_of(q), frame, qkv, learned, saved, arriving, wanted)
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


@register_flop_formula(torch.ops.regard.attention)
def _flops(q: Any, k: Any, v: Any, *more: Any, **_: Any) -> int:
    """As PyTorch counts its own attention: two products of every pair, seen or not; of a graph those along its edges."""
    pairs = more[10][-1] if more[10] is not None else q[-2] * k[-2]
    return int(2 * _rows_of(q) * pairs * (k[-1] + v[-1]))


@register_flop_formula(torch.ops.regard.attention_backward)
def _backward_flops(*given: Any, **_: Any) -> int:
    """Five products of every pair: the scores again, and one for each gradient and for that of the weights."""
    q, k, v, edge_index = given[10], given[11], given[12], given[23]
    pairs = edge_index[-1] if edge_index is not None else q[-2] * k[-2]
    return int(2 * _rows_of(q) * pairs * (3 * k[-1] + 2 * v[-1]))


def _rows_of(q: Any) -> int:
    """Batches times heads."""
    return math.prod(q[:-2])


def _saved(normalizer: str, output: Any) -> tuple[Any, ...]:
    """What backward needs of the results."""
    out, lse, threshold, index, *_ = output
    hard, soft = normalizer in HARD, normalizer == "softmax"
    return (
        out if soft else None,
        lse if soft or hard else None,
        threshold if normalizer in THRESHOLD else None,
        index if hard else None,
    )


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, w, key_bias, bias, relative, parameters, *rest = inputs
    tensors, what = rest[:7], rest[7:]
    ctx.save_for_backward(*_saved(what[3], output), q, k, v, w, key_bias, bias, relative, *tensors, *parameters)
    ctx.what = what
    _, lse, threshold, index, *_ = output
    names = what[-1].split(",")
    # What was not asked for is for backward alone; a gradient of what was is used, or refused.
    fixed = (index, None if "threshold" in names else threshold, None if "lse" in names else lse)
    ctx.mark_non_differentiable(*(x for x in fixed if x is not None))
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, *grads: Any) -> Any:
    wants = ctx.needs_input_grad
    _tensors.refuse_lost(ctx.what[3], grads[1], grads[2])
    if wants[8]:
        raise NotImplementedError("alibi_slopes has no gradient; detach() it")
    first, own = _gradients(ctx.saved_tensors, ctx.what, grads, (*wants[:7], wants[7]))
    return (*first, own, *(None for _ in range(7 + len(ctx.what))))


def _gradients(saved: Any, what: Any, grads: Any, wants: Any) -> tuple[list[Any], list[Any]]:
    """Those of q, k, v and what is learned, and of an expression's parameters."""
    head, qkv, learned, tensors, parameters = saved[:4], saved[4:7], saved[7:11], saved[11:18], saved[18:]
    grad_out, grad_lse, _, _, log_prob, weights, edges = grads
    *what, need = what
    names, normalizer = need.split(","), what[3]
    hard = normalizer in HARD
    wanted = [bool(x) for x in wants[:7]] + [bool(parameters) and _any(wants[7])]
    arrived = (
        grad_out,
        weights if "weights" in names and not hard else None,
        edges if "edge_weights" in names and not hard else None,
        log_prob if hard else None,
        grad_lse if "lse" in names and (hard or normalizer == "softmax") else None,
    )
    call: Any = _of_backward_op
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        call = _TransformedBackward.apply
    gradients = call(wanted, tuple(what), *arrived, *head, *qkv, *learned, *tensors, *parameters)
    first = [gradient if wants else None for wants, gradient in zip(wanted, gradients[:7])]
    return first, list(gradients[7:]) if wanted[7] else [None] * len(parameters)


def _of_backward_op(wanted: Any, what: Any, *tensors: Any) -> Any:
    return _backward_op(*tensors[:9], wanted, *tensors[9:16], list(tensors[23:]), *tensors[16:23], *what)


def _any(wants: Any) -> bool:
    return any(wants) if isinstance(wants, (list, tuple)) else bool(wants)


_forward_op.register_autograd(_backward, setup_context=_setup_context)


def _setup_second(ctx: Any, inputs: Any, output: Any) -> None:
    *arrived, out, lse, threshold, index, wanted, q, k, v, w, key_bias, bias, relative, parameters = inputs[:18]
    ctx.save_for_backward(*arrived, q, k, v, w, key_bias, bias, relative, *inputs[18:25], *parameters)
    ctx.wanted, ctx.what = wanted, inputs[25:]
    ctx.set_materialize_grads(False)


def _second(ctx: Any, grads: Any) -> Any:
    saved = ctx.saved_tensors
    arrived, qkv, learned, tensors, parameters = saved[:5], saved[5:8], saved[8:12], saved[12:19], saved[19:]
    frame = _frame(qkv[0], qkv[1], Constants(*tensors[:5]), tensors[5], tensors[6], tuple(ctx.what))
    wants = ctx.needs_input_grad
    of_parameters = _any(wants[17])
    needed = (*wants[:5], *wants[10:17], *(of_parameters for _ in parameters))
    found = _tensors.second_derivative(frame, ctx.wanted, (*arrived, *qkv, *learned, *parameters), grads, needed)
    rest = (None,) * (7 + len(ctx.what))
    return (*found[:5], None, None, None, None, None, *found[5:12], list(found[12:]), *rest)


_backward_op.register_autograd(_second, setup_context=_setup_second)


def _part(x: Any, dim: Any, at: int) -> Any:
    if isinstance(x, (list, tuple)) and not all(isinstance(one, bool) for one in x):
        return [_part(one, d, at) for one, d in zip(x, dim)]
    return x if dim is None or not isinstance(x, Tensor) else x.select(dim, at)


def _one_by_one(op: Any, size: int, in_dims: Any, arguments: Any) -> list[Tensor]:
    """Every result of an op, stacked over an axis that its arguments have and it does not know."""
    if size == 0:
        raise ValueError("vmap over an axis of length 0; attention wants at least one")
    calls = [op(*(_part(x, dim, at) for x, dim in zip(arguments, in_dims))) for at in range(size)]
    return [torch.stack(parts) for parts in zip(*calls)]


def _is_batched(dim: Any) -> bool:
    return any(d is not None for d in dim) if isinstance(dim, (list, tuple)) else dim is not None


def _joined(x: Any, dim: int | None, size: int, axes: int) -> Any:
    """With the mapped axis as part of the batch; as the batch, where there was none."""
    if x is None:
        return None
    x = x.movedim(dim, 0) if dim is not None else x.expand(size, *x.shape)
    return x if axes == 2 else x.flatten(0, 1)


def _axes(x: Tensor, dim: int | None) -> int:
    return x.ndim - (dim is not None)


def _apart(results: Any, size: int, axes: int, real: int) -> tuple[list[Tensor], list[int | None]]:
    """The mapped axis first again; what an op left empty has none."""
    found = [x if axes == 2 or x.ndim < real else x.unflatten(0, (size, -1)) for x in results]
    return found, [0 if x.ndim >= real else None for x in results]


@_forward_op.register_vmap
def _(info: Any, in_dims: Any, *arguments: Any) -> Any:
    size, axes = info.batch_size, _axes(arguments[0], in_dims[0])
    draws = arguments[14] is not None
    # By position: key_bias, bias, key_lengths, segments and a mask belong to an item of the batch.
    alone = any(_is_batched(dim) for dim in in_dims[3:]) or any(arguments[n] is not None for n in (4, 5, 9, 10, 11, 12))
    if draws or alone or axes == 1 or size == 0 or (axes > 2 and arguments[0].numel() == 0):
        results = _one_by_one(_forward_op, size, in_dims, arguments)
        return tuple(results), (0,) * len(results)
    joined = [_joined(x, dim, size, axes) for x, dim in zip(arguments[:3], in_dims[:3])]
    found, dims = _apart(_forward_op(*joined, *arguments[3:]), size, axes, 2)
    return tuple(found), tuple(dims)


@_backward_op.register_vmap
def _(info: Any, in_dims: Any, *arguments: Any) -> Any:
    size, axes = info.batch_size, _axes(arguments[10], in_dims[10])
    draws = arguments[24] is not None
    alone = any(_is_batched(dim) for dim in in_dims[13:]) or any(arguments[9][3:])
    alone = alone or any(arguments[n] is not None for n in (14, 15, 19, 20, 21, 22))
    if draws or alone or axes == 1 or size == 0 or (axes > 2 and arguments[10].numel() == 0):
        results = _one_by_one(_backward_op, size, in_dims, arguments)
        return results, [0] * len(results)
    arrived = [_joined(x, dim, size, axes) for x, dim in zip(arguments[:9], in_dims[:9])]
    qkv = [_joined(x, dim, size, axes) for x, dim in zip(arguments[10:13], in_dims[10:13])]
    return _apart(_backward_op(*arrived, arguments[9], *qkv, *arguments[13:]), size, axes, 2)


class _Transformed(torch.autograd.Function):
    """The op for torch.func's transforms, which do not see through an op's own autograd."""

    generate_vmap_rule = True

    @staticmethod
    def forward(what: tuple[Any, ...], *tensors: Any) -> Any:
        return _of_op(what, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        what, *tensors = inputs
        saved = _saved(what[3], output)
        ctx.save_for_backward(*saved, *tensors)
        ctx.what = what
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        _, *wants = ctx.needs_input_grad
        wanted = (*wants[:7], wants[14:])
        _tensors.refuse_lost(ctx.what[3], grads[1], grads[2])
        if wants[7]:
            raise NotImplementedError("alibi_slopes has no gradient; detach() it")
        first, own = _gradients(ctx.saved_tensors, ctx.what, grads, wanted)
        return None, *first, *(None for _ in range(7)), *own


class _TransformedBackward(torch.autograd.Function):
    """The op's backward for torch.func's transforms."""

    generate_vmap_rule = True

    @staticmethod
    def forward(wanted: Any, what: Any, *tensors: Any) -> Any:
        return tuple(_of_backward_op(wanted, what, *tensors))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.wanted, ctx.what, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        wants = ctx.needs_input_grad[2:]
        own, needed = (*saved[:5], *saved[9:16], *saved[23:]), (*wants[:5], *wants[9:16], *wants[23:])
        constants = saved[16:23]
        frame = _frame(saved[9], saved[10], Constants(*constants[:5]), constants[5], constants[6], ctx.what)
        found = _tensors.second_derivative(frame, ctx.wanted, own, grads, needed)
        return None, None, *found[:5], *(None,) * 4, *found[5:12], *(None,) * 7, *found[12:]
