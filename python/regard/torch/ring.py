"""Attention over a sequence that is split across processes."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _call, _tensors
from .._arguments import NO_LEARNED, Frame, check_ranks, mechanism, number
from .._call import Saved
from ..merge import merge_attentions


def ring_attention(
    query: Tensor, key: Tensor, value: Tensor, group: Any = None, *, is_causal: bool = False, scale: float | None = None
) -> Tensor:
    """Softmax attention over a sequence whose parts lie on the ranks of a group, in their order.

    Each rank has its part of the queries ``[B, Hq, N, D]``, keys ``[B, Hk, N, D]`` and values
    ``[B, Hk, N, Dv]``, all of one length, and gets its part of the output. Keys and values go round the
    ring; no rank ever holds more than two parts. Forward and backward equal one process's.

    >>> import os, torch, torch.distributed as dist, regard.torch
    >>> store = dist.HashStore()
    >>> dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    >>> x = torch.ones(1, 2, 4, 8)
    >>> regard.torch.ring_attention(x, x, x, is_causal=True).shape
    torch.Size([1, 2, 4, 8])
    >>> dist.destroy_process_group()
    """
    code, compute = _tensors.check_inputs(query, key, value)
    if _tensors.is_observed(query, key, value):
        raise TypeError("ring_attention computes on plain tensors, not under a tracer, a transform or forward mode")
    check_ranks(query, key, value)
    if query.ndim != 4:
        raise ValueError(f"query has shape {list(query.shape)}; ring_attention wants [B, H, N, D]")
    if query.shape[2] != key.shape[2]:
        raise ValueError(f"query has {query.shape[2]} rows and key {key.shape[2]}; each rank has its part of both")
    kind = (("dot", None if scale is None else number("scale", scale)), is_causal, code, compute)
    return _Ring.apply(query, key, value, group, kind)  # type: ignore[no-any-return]


class _Place:
    """Where this process stands in the ring."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def peer(self, step: int) -> int:
        rank = (self.rank + step) % self.size
        return rank if self.group is None else dist.get_global_rank(self.group, rank)

    def start(self, parts: list[Tensor]) -> tuple[list[Tensor], list[Any]]:
        """Begins to hand parts to the next process and to take those of the one before."""
        arriving = [torch.empty_like(part) for part in parts]
        # Tags, because messages of one tag may overtake each other.
        ops = [dist.P2POp(dist.isend, part, self.peer(1), self.group, tag) for tag, part in enumerate(parts)]
        ops += [dist.P2POp(dist.irecv, part, self.peer(-1), self.group, tag) for tag, part in enumerate(arriving)]
        return arriving, dist.batch_isend_irecv(ops)


def _frame(kind: tuple[Any, ...], place: _Place, owner: int, rows: int) -> Frame | None:
    """For the keys that began at a rank; none where they all come later than the queries."""
    score, is_causal, code, compute = kind
    if is_causal and owner > place.rank:
        return None
    offset = (place.rank - owner) * rows
    return Frame(mechanism(score, "softmax", is_causal, None, offset), "softmax", code, compute)


class _Ring(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, group: Any, kind: tuple[Any, ...]) -> Tensor:
        place = _Place(group)
        q, k, v = (x.contiguous() for x in (q, k, v))
        parts, moving = [k, v], list[Any]()
        merged: tuple[Tensor, Tensor] | None = None
        for step in range(place.size):
            arriving, moving = place.start(parts) if step + 1 < place.size else (parts, [])
            frame = _frame(kind, place, (place.rank - step) % place.size, q.shape[2])
            if frame is not None:
                part = _call.forward(_tensors.kind_of(q), frame, (q, parts[0], parts[1]), NO_LEARNED, ("lse",), False)
                # Parts are summed in the type computed in, and rounded once.
                found = part.out.to(frame.compute), part.lse
                merged = found if merged is None else merge_attentions([merged[0], found[0]], [merged[1], found[1]])
            for request in moving:
                request.wait()
            parts = arriving
        assert merged is not None  # a process sees its own keys
        out, lse = merged[0].to(q.dtype), merged[1]
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.group, ctx.kind = group, kind
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> Any:
        with torch.no_grad():
            gradients = _round(ctx, grad_out)
        return *_tensors.once("ring_attention", gradients, (*ctx.saved_tensors[:3], grad_out)), None, None


def _round(ctx: Any, grad_out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients, after keys and values have gone round once more."""
    q, k, v, out, lse = ctx.saved_tensors
    place = _Place(ctx.group)
    compute = ctx.kind[3]
    grad_out = grad_out.contiguous()
    saved = Saved(out, lse)
    grad_q = torch.zeros(q.shape, dtype=compute, device=q.device)
    # Keys, values and their gradients go round together, and once more: then they are home.
    parts = [k, v, torch.zeros(k.shape, dtype=compute, device=k.device), torch.zeros(v.shape, dtype=compute, device=v.device)]
    for step in range(place.size):
        frame = _frame(ctx.kind, place, (place.rank - step) % place.size, q.shape[2])
        if frame is not None:
            found = _call.backward_of_part(_tensors.kind_of(q), frame, (q, parts[0], parts[1]), NO_LEARNED, saved, grad_out)
            grad_q += found.query
            parts[2] += found.key
            parts[3] += found.value
        if place.size > 1:
            going = parts if step + 1 < place.size else parts[2:]
            arriving, moving = place.start(going)
            for request in moving:
                request.wait()
            parts = arriving if len(arriving) == 4 else [k, v, *arriving]
    return grad_q.to(q.dtype), parts[2].to(k.dtype), parts[3].to(v.dtype)
