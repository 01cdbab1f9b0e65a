"""PyTorch tensors, as the kernels read and write them; the operator under autograd."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import _call, _native, _openmp
from ._arguments import (
    NO_LEARNED,
    Aux,
    Frame,
    Learned,
    Options,
    check_ranks,
    mechanism,
    needs,
    number,
    prepare,
)
from ._arguments import parameter_names as _names
from ._call import Arriving, Saved
from .threads import get_num_threads

_native.use_openmp(*_openmp.functions_of_torch())

int64 = torch.int64
_KINDS = {
    torch.float32: (0, torch.float32),
    torch.float64: (1, torch.float64),
    torch.bfloat16: (2, torch.float32),
    torch.float16: (3, torch.float32),
}


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def parameter_names(text: str) -> tuple[str, ...]:
    """As a compiler takes them: known once for a text."""
    return _names(text)


def check(name: str, x: Any) -> None:
    """Refuses what is no dense tensor on the CPU or an NVIDIA GPU."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is {type(x).__name__}; it wants a tensor as query is one")
    if not (x.is_cpu or x.is_cuda):
        raise TypeError(f"{name} is on {x.device}; regard computes on the CPU and on CUDA: give it {name}.cpu()")
    if x.layout is not torch.strided:
        raise TypeError(f"{name} is {x.layout}; it wants a dense tensor: {name}.to_dense()")


def check_inputs(q: Any, k: Any, v: Any) -> tuple[int, Any]:
    """The type of q, k and v, as a code and what is computed in."""
    check("query", q)
    check("key", k)
    check("value", v)
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"query is {q.dtype}, key {k.dtype} and value {v.dtype}; they want one type")
    if not q.device == k.device == v.device:
        raise TypeError(f"query is on {q.device}, key on {k.device} and value on {v.device}; they want one device")
    kind = _KINDS.get(q.dtype)
    if kind is None:
        raise TypeError(f"query is {q.dtype}; attention wants float32, float64, float16 or bfloat16")
    return kind


def is_bool(x: Tensor) -> bool:
    return x.dtype is torch.bool


def _unexpanded(x: Tensor) -> Tensor:
    """A broadcast axis is one long; differentiably: the gradient of the expansion adds up the rest."""
    for axis, stride in enumerate(x.stride()):
        if stride == 0 and x.shape[axis] > 1 and x.numel() > 0:
            x = x.narrow(axis, 0, 1)
    return x


def numbers(name: str, x: Any, dtype: Any, axes: int) -> Tensor:
    """Contiguous numbers of a type, of at most so many axes."""
    if isinstance(x, (int, float, list, tuple)):
        x = _of_list(name, x, dtype)
    check(name, x)
    if not x.is_floating_point():
        raise TypeError(f"{name} is {x.dtype}; it wants fractions")
    if x.ndim > axes:
        raise ValueError(f"{name} has shape {list(x.shape)}; it wants at most {axes} axes")
    return _settled(_unexpanded(x)).to(dtype).contiguous()


def _of_list(name: str, x: Any, dtype: Any) -> Tensor:
    try:
        return torch.as_tensor(x, dtype=dtype)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TypeError(f"{name} makes no tensor: {error}") from None


def _settled(x: Tensor) -> Tensor:
    """Without a sign that is only noted: the kernels read memory."""
    return x.resolve_neg() if not torch.compiler.is_compiling() and x.is_neg() else x


def whole(name: str, x: Any, axes: int) -> Tensor:
    """Contiguous whole numbers, of at most so many axes."""
    if isinstance(x, (int, list, tuple)):
        x = _of_list(name, x, None)
        x = x.long() if x.numel() == 0 else x
    check(name, x)
    if x.is_floating_point() or x.is_complex() or x.dtype is torch.bool:
        raise TypeError(f"{name} is {x.dtype}; it wants whole numbers")
    if not 1 <= x.ndim <= axes:
        raise ValueError(f"{name} has shape {list(x.shape)}; it wants {'1 axis' if axes == 1 else '1 or 2 axes'}")
    settled: Tensor = x.long().contiguous()
    return settled


def truths(x: Tensor) -> Tensor:
    return _unexpanded(x).contiguous()


def written_out(name: str, x: Any) -> Tensor:
    """A gradient that is broadcast, with all its numbers."""
    check(name, x)
    return x.contiguous()  # type: ignore[no-any-return]


def rows_for_batch(x: Tensor, batch: int) -> Tensor:
    return x.expand(batch, -1).contiguous()


def rowwise(x: Tensor) -> Tensor:
    """The tensor, or a copy where the kernels cannot read it in its place."""
    x = _settled(x)
    return x if x.stride(-1) == 1 or x.shape[-1] <= 1 else x.contiguous()


def rows(x: Tensor) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    if not x.is_cpu:
        raise _elsewhere("a tensor", x)
    return x.data_ptr(), x.shape, x.stride()


def block(x: Tensor) -> tuple[int, tuple[int, ...]]:
    if not x.is_cpu:
        raise _elsewhere("a tensor", x)
    return x.data_ptr(), x.shape


def given(x: Tensor, name: str) -> tuple[int, tuple[int, ...]]:
    if not x.is_cpu:
        raise _elsewhere(name, x)
    return block(x)


def _elsewhere(name: str, x: Tensor) -> TypeError:
    return TypeError(f"{name} is on {x.device}, query on the CPU; they want one device")


def check_beside(name: str, x: Any, query: Tensor) -> None:
    """Refuses a tensor that lies on another device than the query."""
    if isinstance(x, Tensor) and x.device != query.device:
        raise TypeError(f"{name} is on {x.device}, query on {query.device}; they want one device")


place = get_num_threads
forward = _native.forward
backward = _native.backward


def kind_of(x: Tensor) -> Any:
    """The kind of array that a call on such tensors has."""
    if x.is_cpu:
        return _this
    from ._gpu import Gpu

    return Gpu(x.device)


def empty(shape: tuple[int, ...], dtype: Any) -> Tensor:
    return torch.empty(shape, dtype=dtype)


def zeros(shape: tuple[int, ...], dtype: Any) -> Tensor:
    return torch.zeros(shape, dtype=dtype)


def empty_rows(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Fresh rows that lie in memory as another tensor's: joining heads that were split off costs nothing."""
    if like.shape == shape:
        return torch.empty_like(like)
    if len(shape) == 4:
        _, by_head, by_row, _ = like.stride()
        if by_row > by_head and shape[1] > 1 and shape[2] > 1:
            _, h, n, d = shape
            return torch.empty_strided(shape, (n * h * d, d, h * d, 1), dtype=like.dtype, device=like.device)
    return torch.empty(shape, dtype=like.dtype, device=like.device)


def arriving_at_part(own: Any, whole: Any, grad_out: Tensor) -> tuple[Tensor, Tensor]:
    """What a gradient of the whole's output is for a part of it: of its output and of its log-sum-exp."""
    share = (own.lse - whole.lse).exp().nan_to_num(nan=0.0)
    wide = grad_out.to(share.dtype)
    apart = ((own.out.to(share.dtype) - whole.out.to(share.dtype)) * wide).sum(-1)
    return (wide * share.unsqueeze(-1)).to(grad_out.dtype), (share * apart).contiguous()


def fresh_seed() -> int:
    if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            "a CUDA graph is being captured, and every replay of it would draw the same dropout or sample: "
            "say so with seed=..., or call it outside of the capture"
        )
    # PyTorch's own random numbers, so that `torch.manual_seed` repeats them.
    return int(torch.randint(1 << 62, (), dtype=torch.int64).item())


def autocasts(device: str) -> bool:
    """Whether what is asked of such a device is cast by itself."""
    return device in ("cpu", "cuda") and torch.is_autocast_enabled(device)


def attention(q: Tensor, k: Any, v: Any, options: Options, return_aux: Any) -> Any:
    """The operator on tensors; recorded for autograd where that is wanted."""
    if torch.compiler.is_compiling():
        from . import _compiled

        return _compiled.attention(q, k, v, options, return_aux)
    if isinstance(q, Tensor) and autocasts(q.device.type):
        q, k, v = (autocast(x) for x in (q, k, v))
    frame, learned = prepare(_this, q, k, v, options)
    need = needs(return_aux, frame.normalizer, frame.edges)
    results = _run(frame, (rowwise(q), rowwise(k), rowwise(v)), learned, need)
    return results.out if return_aux is None else (results.out, _aux(results, need, frame))


def plain(q: Tensor, k: Any, v: Any, is_causal: bool, scale: Any) -> Any:
    """Softmax over scaled dot products, with nothing else: the call whose overhead matters most."""
    if isinstance(q, Tensor) and autocasts(q.device.type):
        q, k, v = (autocast(x) for x in (q, k, v))
    code, compute = check_inputs(q, k, v)
    check_ranks(q, k, v)
    score = ("dot", None if scale is None else number("scale", scale))
    frame = Frame(mechanism(score, "softmax", is_causal, None, 0), "softmax", code, compute)
    if q.stride(-1) != 1 or k.stride(-1) != 1 or v.stride(-1) != 1 or q.is_neg() or k.is_neg() or v.is_neg():
        q, k, v = rowwise(q), rowwise(k), rowwise(v)
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return _Plain.apply(frame, q, k, v)
    return _call.forward(kind_of(q), frame, (q, k, v), NO_LEARNED, (), False).out


def autocast(x: Any) -> Any:
    """As PyTorch's own attention has it: anything but float64 becomes the type of autocast."""
    if isinstance(x, Tensor) and x.dtype in _KINDS and x.dtype is not torch.float64:
        return x.to(torch.get_autocast_dtype(x.device.type))
    return x


def _run(frame: Frame, qkv: tuple[Any, Any, Any], learned: Learned, need: tuple[str, ...]) -> _call.Results:
    q, k, v = qkv
    if torch.is_grad_enabled() and (
        q.requires_grad
        or k.requires_grad
        or v.requires_grad
        or (learned is not NO_LEARNED and any(x is not None and x.requires_grad for x in (*learned[:4], *learned[4])))
    ):
        return _call.Results(*_Attention.apply(frame, need, q, k, v, *learned[:4], *learned.parameters))
    return _call.forward(kind_of(q), frame, qkv, learned, need, False)


def _aux(results: _call.Results, need: tuple[str, ...], frame: Frame) -> Aux:
    found = {name: getattr(results, name) for name in need}
    if "edge_weights" in found and frame.edges is not None and not frame.edges.is_in_order:
        weights = found["edge_weights"]
        found["edge_weights"] = weights.index_select(-1, frame.edges.tensor_places(weights.device))
    return Aux(**found)


def _learned(tensors: Any) -> Learned:
    w, key_bias, bias, relative, *parameters = tensors
    if not parameters and all(x is None for x in tensors):
        return NO_LEARNED
    return Learned(w, key_bias, bias, relative, tuple(parameters))


class _Plain(torch.autograd.Function):
    """Softmax attention without anything learned: as `_Attention`, with less to carry."""

    @staticmethod
    def forward(ctx: Any, frame: Frame, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        results = _call.forward(kind_of(q), frame, (q, k, v), NO_LEARNED, (), True)
        ctx.save_for_backward(q, k, v, results.out, results.lse)
        ctx.frame = frame
        return results.out  # type: ignore[no-any-return]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> Any:
        q, k, v, out, lse = ctx.saved_tensors
        _, *wants = ctx.needs_input_grad
        wanted = (*wants, False, False, False, False, False)
        arriving = Arriving(rowwise(grad_out))
        gradients = _call.backward(kind_of(q), ctx.frame, (q, k, v), NO_LEARNED, Saved(out, lse), arriving, wanted)
        return None, gradients.query, gradients.key, gradients.value


class _Attention(torch.autograd.Function):
    """The fused operator and its fused backward."""

    @staticmethod
    def forward(ctx: Any, frame: Frame, need: tuple[str, ...], q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> Any:
        learned = _learned(rest)
        results = _call.forward(kind_of(q), frame, (q, k, v), learned, need, True)
        out, lse, threshold, index, log_prob, weights, edge_weights = results
        soft = frame.normalizer == "softmax"
        ctx.save_for_backward(q, k, v, out if soft else None, lse, threshold, index, *rest, *frame.constants)
        ctx.frame, ctx.learned = frame, len(rest)
        ctx.set_materialize_grads(False)
        if not need and index is None:
            return (out,)
        hard = index is not None
        lse = lse if "lse" in need else None
        # What is not differentiable: a choice; weights that are all or nothing; thresholds.
        fixed = (threshold, index, weights if hard else None, edge_weights if hard else None, None if soft or hard else lse)
        ctx.mark_non_differentiable(*(x for x in fixed if x is not None))
        return out, lse, threshold if "threshold" in need else None, index, log_prob, weights, edge_weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Any, grad_lse: Any = None, *grads: Any) -> Any:
        q, k, v, out, lse, threshold, index, *rest = ctx.saved_tensors
        learned = _learned(rest[: ctx.learned])
        frame = ctx.frame
        _, _, log_prob, weights, edge_weights = grads or (None,) * 5
        arriving = Arriving(
            None if grad_out is None else rowwise(grad_out),
            *(None if x is None else _settled(x).contiguous() for x in (weights, edge_weights, log_prob, grad_lse)),
        )
        wants = ctx.needs_input_grad[2:]
        gradients = _call.backward(
            kind_of(q), frame, (q, k, v), learned, Saved(out, lse, threshold, index), arriving, (*wants[:7], any(wants[7:]))
        )
        return (None, None, *gradients[:7], *gradients.parameters)


_this = sys.modules[__name__]
