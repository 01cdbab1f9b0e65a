"""Softmax over dot products in PyTorch's own operations: what derivatives of derivatives are taken of.

The kernels have one derivative. A second one, or one in forward mode, is that of this formula: the same numbers, in
memory that grows with the number of pairs, and differentiable as often as one likes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._arguments import Constants, Learned


class Pattern(NamedTuple):
    """What softmax over dot products is taken over, in plain words."""

    scale: float | None = None
    is_causal: bool = False
    window: tuple[int, int] | None = None
    offset: int = 0


def reason_against(kind: str, normalizer: str, dropout_p: float, edges: Any) -> str | None:
    """Why a call has no second derivative."""
    if kind != "dot" or normalizer != "softmax":
        return f"{normalizer} over the {kind} score"
    if dropout_p > 0.0:
        return "dropout"
    return None if edges is None else "edges"


def attention(
    q: Tensor, k: Tensor, v: Tensor, learned: Learned, constants: Constants, pattern: Pattern, compute: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """The output, the log-sum-exp and the weights, in the axes of q."""
    lead = q.shape[:-1]
    dtype = q.dtype
    q, k, v = (_four_axes(x).to(compute) for x in (q, k, v))
    group = q.shape[1] // max(k.shape[1], 1)
    if group > 1:
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scale = q.shape[-1] ** -0.5 if pattern.scale is None and q.shape[-1] > 0 else pattern.scale
    scores = (q @ k.transpose(-1, -2)) * (1.0 if scale is None else scale)
    scores = _biased(scores, learned, constants.alibi, pattern.offset)
    visible = _visible(scores, constants, pattern)
    is_finite = scores != float("-inf")
    visible = is_finite if visible is None else visible & is_finite
    seen = visible.any(-1, keepdim=True)
    # Finite everywhere: −inf has NaN for a derivative.
    low = torch.where(visible, scores, torch.finfo(compute).min)
    top = low.detach().amax(-1, keepdim=True) if low.shape[-1] > 0 else low.new_zeros((*low.shape[:-1], 1))
    grown = torch.where(visible, (torch.where(visible, scores, top) - top).exp(), 0.0)
    total = torch.where(seen, grown.sum(-1, keepdim=True), 1.0)
    weights = grown / total
    lse = torch.where(seen, total.log() + top, float("-inf")).squeeze(-1)
    out = (weights @ v).to(dtype)
    return out.reshape(*lead, v.shape[-1]), lse.reshape(lead), weights.reshape(*lead, k.shape[-2])


def _four_axes(x: Tensor) -> Tensor:
    if x.ndim == 3:
        return x.unsqueeze(1)
    return x.reshape((1,) * (4 - x.ndim) + tuple(x.shape))


def _distance(scores: Tensor, offset: int) -> Tensor:
    nq, nk = scores.shape[-2:]
    keys, queries = (torch.arange(n, device=scores.device) for n in (nk, nq))
    return keys[None, :] - (queries[:, None] + offset)


def _biased(scores: Tensor, learned: Learned, alibi: Tensor | None, offset: int) -> Tensor:
    for bias in (learned.key_bias, learned.bias):
        scores = scores if bias is None else scores + bias.to(scores)
    if alibi is not None:
        scores = scores - alibi.to(scores)[None, :, None, None] * _distance(scores, offset).abs()
    if learned.relative is not None:
        table = learned.relative.to(scores)
        table = table if table.ndim == 2 else table[None]
        reach = table.shape[1] // 2
        scores = scores + table[:, _distance(scores, offset).clamp(-reach, reach) + reach]
    return scores


def _visible(scores: Tensor, constants: Constants, pattern: Pattern) -> Tensor | None:
    parts = []
    distance = _distance(scores, pattern.offset)
    if pattern.is_causal:
        parts.append(distance <= 0)
    if pattern.window is not None:
        left, right = pattern.window
        parts.append((distance >= -left) & (distance <= right))
    if constants.key_lengths is not None:
        keys = torch.arange(scores.shape[-1], device=scores.device)
        parts.append((keys < constants.key_lengths.to(scores.device)[:, None])[:, None, None, :])
    if constants.q_segments is not None:
        parts.append((constants.q_segments[:, :, None] == constants.k_segments[:, None, :])[:, None].to(scores.device))
    if constants.dense is not None:
        parts.append(constants.dense.to(scores.device))
    found: Tensor | None = None
    for part in parts:
        found = part if found is None else found & part
    return found
