"""Our kernels behind PyTorch's own ``scaled_dot_product_attention``."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn import attention as registry

from .. import _call, _tensors
from .._arguments import NO_LEARNED, Frame, Learned, mechanism
from .._call import Arriving, Saved

_NAME = "regard"


def activate() -> None:
    """From now on ``torch.nn.functional.scaled_dot_product_attention`` computes by our kernels wherever
    PyTorch would take its fused ones on the CPU: all of PyTorch's layers, all models built on them.

    >>> import torch, regard.torch
    >>> regard.torch.activate()
    >>> regard.torch.is_active()
    True
    >>> regard.torch.deactivate()
    """
    if not hasattr(registry, "activate_flash_attention_impl"):
        raise RuntimeError(f"activate() wants a PyTorch that takes other kernels; {torch.__version__} does not")
    if not is_active():
        _register_once()
        registry.activate_flash_attention_impl(_NAME)


def deactivate() -> None:
    """Gives ``scaled_dot_product_attention`` its own kernels back."""
    if is_active():
        registry.restore_flash_attention_impl()


def is_active() -> bool:
    """Whether ``scaled_dot_product_attention`` computes by our kernels."""
    # An older PyTorch has no such registry, and everything else of this package works there.
    return hasattr(registry, "current_flash_attention_impl") and registry.current_flash_attention_impl() == _NAME


class _Handle:
    """Keeps the kernels in their place."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def remove(self) -> None:
        self.library._destroy()


def _register() -> _Handle:
    library = torch.library.Library("aten", "IMPL", "CPU")
    library.impl("_scaled_dot_product_flash_attention_for_cpu", _forward, "CPU", allow_override=True)
    library.impl("_scaled_dot_product_flash_attention_for_cpu_backward", _backward, "CPU", allow_override=True)
    return _Handle(library)


@functools.cache
def _register_once() -> None:
    registry.register_flash_attention_impl(_NAME, register_fn=_register)


def _prepared(q: Tensor, is_causal: bool, attn_mask: Tensor | None, scale: float | None) -> tuple[Frame, Learned]:
    code, compute = _tensors._KINDS[q.dtype]
    frame = Frame(mechanism(("dot", scale), "softmax", is_causal, None, 0), "softmax", code, compute)
    if attn_mask is None:
        return frame, NO_LEARNED
    return frame, Learned(bias=_tensors.numbers("attn_mask", attn_mask, compute, 4))


def _refuse_dropout(dropout_p: float) -> None:
    """PyTorch takes its formula where there is dropout, and hands none to its fused kernel."""
    if dropout_p != 0.0:
        raise NotImplementedError(f"dropout_p is {dropout_p}; this kernel has no dropout, regard.attention has")


def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    _refuse_dropout(dropout_p)
    frame, learned = _prepared(query, is_causal, attn_mask, scale)
    qkv = (_tensors.rowwise(query), _tensors.rowwise(key), _tensors.rowwise(value))
    results = _call.forward(_tensors, frame, qkv, learned, ("lse",), False)
    # As PyTorch's own kernel lays it out, which compiled code counts on.
    return results.out, results.lse.transpose(1, 2).contiguous().transpose(1, 2)


def _backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    _refuse_dropout(dropout_p)
    frame, learned = _prepared(query, is_causal, attn_mask, scale)
    qkv = (_tensors.rowwise(query), _tensors.rowwise(key), _tensors.rowwise(value))
    saved = Saved(_tensors.rowwise(out), logsumexp.contiguous())
    wanted = (True, True, True, False, False, False, False, False)
    found = _call.backward(_permuted, frame, qkv, learned, saved, Arriving(_tensors.rowwise(grad_out)), wanted)
    return found.query, found.key, found.value


def _heads_inside(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.empty_permuted(shape, (0, 2, 1, 3), dtype=like.dtype, device=like.device)


_permuted = SimpleNamespace(**{**vars(_tensors), "empty_rows": _heads_inside})
