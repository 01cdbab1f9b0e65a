"""α-entmax of tensors by bisection, with the gradient of the equation that its threshold solves."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


#: Below this α everything is computed in float64.
_STEEP = 1.05


def entmax(x: Tensor, alpha: Any, axis: int, n_iter: int | None) -> Tensor:
    """As ``regard.entmax``."""
    from .simplex import _EXACT, _normalized

    if isinstance(alpha, Tensor):
        shape = [1 if n == axis % x.ndim else size for n, size in enumerate(x.shape)]
        if not alpha.is_floating_point() or alpha.device != x.device:
            raise TypeError(f"alpha is {alpha.dtype} on {alpha.device}; it wants fractions on {x.device}")
        try:
            given = alpha.expand(shape)
        except RuntimeError:
            raise ValueError(f"alpha has shape {list(alpha.shape)}, which does not broadcast to {shape}") from None
        wrong = given[~((given > 1.0) & (given < math.inf))]
        if wrong.numel():
            raise ValueError(f"alpha has {wrong[0].item():g}; a tensor of them wants finite numbers above 1, a number from 1 on")
    elif isinstance(alpha, bool) or not isinstance(alpha, (int, float)):
        raise TypeError(f"alpha is {type(alpha).__name__}; it wants a number, or a tensor of them")
    elif not 1.0 <= alpha < math.inf:
        raise ValueError(f"alpha is {alpha}; it wants a number from 1 on")
    elif alpha == 1.0 or (n_iter is None and alpha in _EXACT):
        exact: Tensor = _normalized(x, axis, _EXACT[float(alpha)])
        return exact
    else:
        given = torch.full([1] * x.ndim, float(alpha), dtype=torch.float64, device=x.device)
    # Near 1 the weights are powers of 1/(α − 1), which make rounding that much larger.
    is_steep = bool((given < _STEEP).any()) if isinstance(alpha, Tensor) else alpha < _STEEP
    compute = torch.float64 if is_steep or x.dtype is torch.float64 else torch.float32
    bisections = n_iter or (60 if compute is torch.float64 else 30)
    last: Tensor = _Entmax.apply(x.movedim(axis, -1).to(compute), given.movedim(axis, -1).to(compute), bisections)
    return last.movedim(-1, axis).to(x.dtype)


class _Entmax(torch.autograd.Function):
    """Along the last axis. With β = α − 1 the weights are p = max(β x − τ, 0)^(1/β), where τ makes their sum 1."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, alpha: Tensor, n_iter: int) -> Tensor:
        return _weights(x, alpha - 1.0, n_iter)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, alpha, _ = inputs
        ctx.save_for_backward(x, alpha, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, alpha, p = ctx.saved_tensors
        is_in = p > 0
        safe = torch.where(is_in, p, 1.0)
        share = torch.where(is_in, safe ** (2.0 - alpha), 0.0)  # dp/d(x − τ/β)
        whole = share.sum(-1, keepdim=True)
        whole = torch.where(whole > 0, whole, 1.0)
        of_x = of_alpha = None
        if ctx.needs_input_grad[0]:
            of_x = share * (grad - (share * grad).sum(-1, keepdim=True) / whole)
        if ctx.needs_input_grad[1]:
            # p changes by (share · (x − t) − p log p) / β, where t keeps the sum.
            seen = torch.where(is_in, x, 0.0)
            entropy = p * safe.log()
            t = (share * seen - entropy).sum(-1, keepdim=True) / whole
            change = (share * (seen - t) - entropy) / (alpha - 1.0)
            of_alpha = (grad * torch.where(is_in, change, 0.0)).sum_to_size(alpha.shape)
        return of_x, of_alpha, None


def _weights(x: Tensor, beta: Tensor, n_iter: int) -> Tensor:
    if x.shape[-1] == 0:
        return x.clone()
    top = x.amax(-1, keepdim=True)
    top = torch.where(torch.isneginf(top), 0.0, top)
    # With the largest at 0 the threshold lies between −1, where that alone has all the weight, and 0.
    scores, power = beta * (x - top), 1.0 / beta
    low, high = torch.full_like(top, -1.0), torch.zeros_like(top)
    for _ in range(n_iter):
        middle = (low + high) / 2
        is_heavy = ((scores - middle).clamp(min=0.0) ** power).sum(-1, keepdim=True) >= 1.0
        low, high = torch.where(is_heavy, middle, low), torch.where(is_heavy, high, middle)
    grown = (scores - low).clamp(min=0.0) ** power
    total = grown.sum(-1, keepdim=True)
    return grown / torch.where(total > 0, total, 1.0)
