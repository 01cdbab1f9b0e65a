"""PyTorch tensors, as the kernels read and write them; the operator under autograd."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _call, _formula, _native, _openmp
from ._arguments import (
    HARD,
    NO_CONSTANTS,
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
_strided = torch.strided
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
    if x.is_nested:
        raise TypeError(f"{name} is nested; it wants a padded tensor, {name}.to_padded_tensor(0.0), with key_lengths")
    if not (x.is_cpu or x.is_cuda or x.is_meta):
        raise TypeError(f"{name} is on {x.device}; regard computes on the CPU and on CUDA: give it {name}.cpu()")
    if x.layout is not torch.strided:
        raise TypeError(f"{name} is {x.layout}; it wants a dense tensor: {name}.to_dense()")


def check_inputs(q: Any, k: Any, v: Any) -> tuple[int, Any]:
    """The type of q, k and v, as a code and what is computed in."""
    kind = _kind_of_common(q, k, v)
    if kind is not None:
        return kind
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


def _kind_of_common(q: Any, k: Any, v: Any) -> tuple[int, Any] | None:
    """As ``check_inputs`` of dense tensors of one type on the CPU or one GPU; none of all else, which is looked at one by
    one."""
    try:
        if (
            (q.is_cpu and k.is_cpu and v.is_cpu
             or q.is_cuda and k.is_cuda and v.is_cuda and q.get_device() == k.get_device() == v.get_device())
            and q.layout is k.layout is v.layout is _strided
            and not (q.is_nested or k.is_nested or v.is_nested)
            and q.dtype is k.dtype is v.dtype
        ):  # fmt: skip
            return _KINDS.get(q.dtype)
    except AttributeError:  # no tensor
        pass
    return None


def check_devices(q: Tensor, learned: Learned, constants: Any) -> None:
    """Refuses what lies where the kernels of this call cannot read it."""
    if learned is NO_LEARNED and constants is NO_CONSTANTS:
        return
    names = ("w", "key_bias", "attn_mask", "relative_bias", "alibi_slopes", "key_lengths", "segments", "segments", "attn_mask")
    parts = [*zip(names, (*learned[:4], *constants)), *(("a parameter", x) for x in learned.parameters)]
    for name, x in parts:
        # What is given besides q, k and v may be the host's where these are a GPU's.
        if x is not None and x.device != q.device and (q.is_cpu or not x.is_cpu):
            raise TypeError(f"{name} is on {x.device} and query on {q.device}; they want one device")


def is_bool(x: Tensor) -> bool:
    return x.dtype is torch.bool


def is_whole(x: Tensor) -> bool:
    return not (x.is_floating_point() or x.is_complex() or x.dtype is torch.bool)


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
    if isinstance(x, (list, tuple)) and any(isinstance(part, Tensor) for part in x):
        raise TypeError(f"{name} is a {type(x).__name__} of tensors; torch.stack({name}) makes one, with its gradient")
    try:
        # In the host's memory, whatever `torch.set_default_device` says.
        return torch.as_tensor(x, dtype=dtype, device="cpu")
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


def edges(x: Any) -> Any:
    """A graph's edges, in the host's memory."""
    return x.native


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
    return _this if x.is_cpu else _on_gpu().Gpu(x.device)


@lru_cache(maxsize=None)
def _on_gpu() -> Any:
    """What tensors on a GPU need, once there are some."""
    from . import _gpu

    _gpu.bring_nvrtc()
    return _gpu


def empty(shape: tuple[int, ...], dtype: Any) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="cpu")


def zeros(shape: tuple[int, ...], dtype: Any) -> Tensor:
    return torch.zeros(shape, dtype=dtype, device="cpu")


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
    return int(torch.randint(1 << 62, (), dtype=torch.int64, device="cpu").item())


def autocasts(device: str) -> bool:
    """Whether what is asked of such a device is cast by itself."""
    return device in ("cpu", "cuda") and torch.is_autocast_enabled(device)


_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transforms = torch._C._are_functorch_transforms_active
_jit = torch._C._get_tracing_state
_no_dispatch = torch._C._disabled_torch_dispatch_impl


def is_observed(*tensors: Any) -> bool:
    """Whether a tracer, a transform or a mode has to see the call, or a tensor holds no numbers of its own: the
    kernels read and write memory, of which none of these knows."""
    if _modes() or _transforms() or _jit() is not None or forward_ad._current_level >= 0:
        return True
    # Tracing before dispatch is a mode of another kind, which comes with one of functions.
    if _function_modes() and torch._C._dispatch_tls_is_dispatch_key_included(torch._C.DispatchKey.PreDispatch):
        return True
    for x in tensors:
        if type(x) is not Tensor and getattr(type(x), "__torch_dispatch__", _no_dispatch) is not _no_dispatch:
            return True
    # The others lie where the first does, or are refused.
    first = tensors[0]
    return isinstance(first, Tensor) and not first.is_cpu and first.is_meta


def attention(q: Tensor, k: Any, v: Any, options: Options, return_aux: Any) -> Any:
    """The operator on tensors; recorded for autograd where that is wanted."""
    observed = torch.compiler.is_compiling() or is_observed(q, k, v)
    if isinstance(options.scale, Tensor):
        q, options = _with_learned_scale(q, options, observed)
    if observed:
        from . import _compiled

        return _compiled.attention(q, k, v, options, return_aux)
    if isinstance(q, Tensor) and autocasts(q.device.type):
        q, k, v = (autocast(x) for x in (q, k, v))
    frame, learned = prepare(_this, q, k, v, options)
    need = needs(return_aux, frame.normalizer, frame.edges)
    results = _run(frame, (rowwise(q), rowwise(k), rowwise(v)), learned, need)
    return results.out if return_aux is None else (results.out, _aux(results, need, frame))


def _with_learned_scale(q: Tensor, options: Options, observed: bool) -> tuple[Tensor, Options]:
    """A scale that learns, or that a tracer follows, multiplies the queries: then its gradient is autograd's."""
    scale = options.scale
    if not observed and not (scale.requires_grad and torch.is_grad_enabled()):
        return q, options
    if scale.numel() != 1 or not scale.is_floating_point() or options.score not in ("scaled_dot", "dot"):
        return q, options
    return q * scale.reshape(()).to(q), options._replace(scale=1.0)


@lru_cache(maxsize=1024)
def _plain_frame(scale: float | None, is_causal: bool, code: int, compute: Any) -> Frame:
    what = (("dot", scale), "softmax", is_causal, None, 0)
    return Frame(mechanism(*what), "softmax", code, compute, what=what)


#: A seed, and the probability of dropout.
_NOTHING_DRAWN = (0, 0.0)


def plain(q: Tensor, k: Any, v: Any, is_causal: bool, scale: Any) -> Any:
    """Softmax over scaled dot products, with nothing else: the call whose overhead matters most."""
    if isinstance(scale, Tensor) or is_observed(q, k, v):
        return attention(q, k, v, Options(is_causal=is_causal, scale=scale), None)
    if autocasts(q.device.type):
        q, k, v = (autocast(x) for x in (q, k, v))
    code, compute = check_inputs(q, k, v)
    check_ranks(q, k, v)
    frame = _plain_frame(None if scale is None else number("scale", scale), is_causal, code, compute)
    if q.stride(-1) != 1 or k.stride(-1) != 1 or v.stride(-1) != 1 or q.is_neg() or k.is_neg() or v.is_neg():
        q, k, v = rowwise(q), rowwise(k), rowwise(v)
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return _Plain.apply(frame, q, k, v)
    if q.is_cpu:
        return _plain_forward(frame, q, k, v)
    return _on_gpu().plain_forward(frame, q, k, v, False)[0]


def _plain_forward(frame: Frame, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """As ``_call.forward`` where nothing but the output is needed, without its detours: half of a small call is these."""
    out = empty_rows(q, q.shape if v.shape[-1] == q.shape[-1] else (*q.shape[:-1], v.shape[-1]))
    forward((frame.code, place(), frame.mechanism, _NOTHING_DRAWN, rows(q), rows(k), rows(v)), rows(out), None)
    return out


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
        if q.is_cpu:
            out, lse = _call.forward(_this, frame, (q, k, v), NO_LEARNED, (), True)[:2]
        else:
            out, lse = _on_gpu().plain_forward(frame, q, k, v, True)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.frame = frame
        return out  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> Any:
        q, k, v, out, lse = ctx.saved_tensors
        wants = ctx.needs_input_grad[1:]
        if not q.is_cpu and not torch.is_grad_enabled():
            return None, *_on_gpu().plain_backward(ctx.frame, (q, k, v), (out, lse), rowwise(grad_out), wants)
        wanted = (*wants, False, False, False, False, False)
        if torch.is_grad_enabled():
            return None, *_Gradients.apply(ctx.frame, wanted, (out, lse), grad_out, *(None,) * 4, q, k, v, *(None,) * 4)[:3]
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
        # What is not differentiable: a choice; weights that are all or nothing.
        fixed = (index, weights if hard else None, edge_weights if hard else None)
        ctx.mark_non_differentiable(*(x for x in fixed if x is not None))
        return out, lse, threshold if "threshold" in need else None, index, log_prob, weights, edge_weights

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any = None, *grads: Any) -> Any:
        q, k, v, *head = ctx.saved_tensors
        saved, rest = tuple(head[:4]), head[4 : 4 + ctx.learned]
        frame = ctx.frame
        of_threshold, _, log_prob, weights, edge_weights = grads or (None,) * 5
        refuse_lost(frame.normalizer, grad_lse, of_threshold)
        arrived = (grad_out, weights, edge_weights, log_prob, grad_lse)
        wants = ctx.needs_input_grad[2:]
        wanted = (*wants[:7], any(wants[7:]))
        if torch.is_grad_enabled():
            return None, None, *_Gradients.apply(frame, wanted, saved, *arrived, q, k, v, *rest)
        gradients = _backward(frame, wanted, saved, arrived, (q, k, v), _learned(rest))
        return (None, None, *gradients[:7], *gradients.parameters)


def refuse_lost(normalizer: str, of_lse: Any, of_threshold: Any) -> None:
    """A gradient that arrives where none goes on is refused."""
    if of_threshold is not None:
        raise NotImplementedError("the threshold that return_aux gives has no gradient; detach() it")
    if of_lse is not None and normalizer not in ("softmax", *HARD):
        raise NotImplementedError(f"the lse that return_aux gives has no gradient for {normalizer!r}; detach() it")


def _backward(
    frame: Frame, wanted: Any, saved: tuple[Any, ...], arrived: tuple[Any, ...], qkv: Any, learned: Learned
) -> _call.Gradients:
    grad_out, *others = arrived
    arriving = Arriving(
        None if grad_out is None else rowwise(grad_out),
        *(None if x is None else _settled(x).contiguous() for x in others),
    )
    return _call.backward(kind_of(qkv[0]), frame, qkv, learned, Saved(*saved), arriving, wanted)


class _Gradients(torch.autograd.Function):
    """The fused backward where a graph of it is wanted: its own derivative is the formula's, or refused."""

    @staticmethod
    def forward(ctx: Any, frame: Frame, wanted: Any, saved: tuple[Any, ...], *tensors: Any) -> Any:
        arrived, qkv, rest = tensors[:5], tensors[5:8], tensors[8:]
        ctx.save_for_backward(*tensors)
        ctx.frame, ctx.wanted = frame, wanted
        ctx.set_materialize_grads(False)
        gradients = _backward(frame, wanted, saved, arrived, qkv, _learned(rest))
        return (*gradients[:7], *gradients.parameters)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        frame = ctx.frame
        needed = ctx.needs_input_grad[3:]
        return None, None, None, *second_derivative(frame, ctx.wanted, ctx.saved_tensors, grads, needed)


def second_derivative(frame: Frame, wanted: Any, tensors: Any, grads: Any, needed: Any) -> tuple[Any, ...]:
    """The gradients of a backward's inputs: of what arrived (out, weights, edge_weights, log_prob, lse), of q, k, v and of
    what is learned, from those of its results."""
    score = frame.what[0]
    why = _formula.reason_against(score[0], frame.normalizer, frame.dropout_p, frame.edges)
    if why is not None:
        raise NotImplementedError(f"attention has no second derivative with {why}; softmax over dot products has")
    if _transforms():
        raise NotImplementedError("attention has no second derivative of torch.func.grad's; torch.autograd.grad has")
    repeated = torch.is_grad_enabled()
    with torch.enable_grad():
        own: list[Any] = [None if x is None else _alias(x) for x in tensors]
        arrived, (q, k, v), rest = own[:5], own[5:8], own[8:]
        pattern = _formula.Pattern(score[1], *frame.what[2:])
        out, lse, weights = _formula.attention(q, k, v, _learned(rest), frame.constants, pattern, frame.compute)
        pairs = [(y, g) for y, g in ((out, arrived[0]), (weights, arrived[1]), (lse, arrived[4])) if g is not None]
        inputs = [*own[5:12], *rest[4:]]
        wants = [*wanted[:7], *(wanted[7] for _ in rest[4:])]
        chosen = [n for n, x in enumerate(inputs) if x is not None and wants[n]]
        found = torch.autograd.grad(
            [y for y, _ in pairs], [inputs[n] for n in chosen], [g for _, g in pairs], create_graph=True, allow_unused=True
        )
        twice = [(y, grads[n]) for n, y in zip(chosen, found) if y is not None and grads[n] is not None and y.requires_grad]
        at = [n for n, x in enumerate(own) if x is not None and needed[n]]
        if not twice or not at:
            return (None,) * len(own)
        last = torch.autograd.grad(
            [y for y, _ in twice], [own[n] for n in at], [g for _, g in twice], create_graph=repeated, allow_unused=True
        )
    results: list[Any] = [None] * len(own)
    for n, x in zip(at, last):
        results[n] = x
    return tuple(results)


class _Once(torch.autograd.Function):
    """Gradients as they are, joined to what they came from: a derivative of them is refused, not dropped."""

    @staticmethod
    def forward(ctx: Any, why: str, count: int, *tensors: Any) -> Any:
        ctx.why = why
        return tuple(x.view_as(x) for x in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(f"{ctx.why} has no second derivative")


def once(why: str, gradients: tuple[Tensor, ...], inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Gradients whose own derivative is refused, where a graph of them is made."""
    if not torch.is_grad_enabled():
        return gradients
    joined: tuple[Tensor, ...] = _Once.apply(why, len(gradients), *gradients, *inputs)
    return joined


def _alias(x: Tensor) -> Tensor:
    """The same numbers as a place that a derivative is taken at; what a third one is taken of stays joined."""
    return x.view_as(x) if x.requires_grad else x.detach().requires_grad_(x.is_floating_point())


_this = sys.modules[__name__]
