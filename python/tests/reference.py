"""The formula in plain PyTorch, in float64, differentiable: what the kernels are compared with."""

import math

import torch


def lifted(x):
    """[B, H, N, D] of whatever axes there are."""
    if x.ndim == 3:
        return x[:, None]
    while x.ndim < 4:
        x = x[None]
    return x


def _dropped(x, axes):
    return {4: lambda: x, 3: lambda: x[:, 0], 2: lambda: x[0, 0], 1: lambda: x[0, 0, 0]}[axes]()


def scores_of(q, k, score, scale=None, activation=None, w=None, expression=None):
    """[B, Hq, Nq, Nk] before biases; keys already repeated for the query heads."""
    if score == "dot":
        return (q @ k.transpose(-1, -2)) * scale
    pair_q, pair_k = q[:, :, :, None, :], k[:, :, None, :, :]
    if score == "additive":
        w = w if w.ndim == 2 else w[None]
        return (activation(pair_q + pair_k) * w[None, :, None, None, :]).sum(-1)
    return expression(pair_q, pair_k)


def allowed(shape, offset, is_causal=False, window=None, key_lengths=None, segments=None, dense=None, edges=None):
    b, _, nq, nk = shape
    distance = torch.arange(nk)[None, :] - (torch.arange(nq)[:, None] + offset)
    see = torch.ones(shape, dtype=torch.bool)
    if is_causal:
        see &= distance <= 0
    if window is not None:
        left, right = window
        see &= (distance >= -left) & (distance <= right)
    if key_lengths is not None:
        see &= (torch.arange(nk)[None, :] < key_lengths[:, None])[:, None, None, :]
    if segments is not None:
        qs, ks = segments
        see &= (qs[:, :, None] == ks[:, None, :])[:, None]
    if dense is not None:
        see &= dense
    if edges is not None:
        joined = torch.zeros(nq, nk, dtype=torch.bool)
        joined[edges[1], edges[0]] = True
        see &= joined
    return see


def bias_of(shape, offset, bias=None, key_bias=None, alibi=None, relative=None):
    _, hq, nq, nk = shape
    distance = torch.arange(nk)[None, :] - (torch.arange(nq)[:, None] + offset)
    total = torch.zeros(shape, dtype=torch.float64)
    if bias is not None:
        total = total + bias
    if key_bias is not None:
        key_bias = key_bias[:, None, None, :] if key_bias.ndim == 2 else key_bias
        total = total + key_bias
    if alibi is not None:
        total = total - alibi[None, :, None, None] * distance.abs()
    if relative is not None:
        relative = relative if relative.ndim == 2 else relative[None]
        reach = relative.shape[1] // 2
        total = total + relative[:, distance.clamp(-reach, reach) + reach]
    return total


def _largest_first(s):
    ordered, _ = s.sort(dim=-1, descending=True)
    count = torch.arange(1, s.shape[-1] + 1, dtype=s.dtype)
    return ordered, count


def sparsemax(s):
    """Of finite scores."""
    ordered, count = _largest_first(s)
    tau = (ordered.cumsum(-1) - 1) / count
    support = (ordered > tau).sum(-1, keepdim=True)
    return (s - tau.gather(-1, support - 1)).clamp_min(0)


def entmax15(s):
    """Of finite scores."""
    s = s / 2
    ordered, count = _largest_first(s)
    mean = ordered.cumsum(-1) / count
    square = (ordered**2).cumsum(-1) / count
    tau = mean - ((1 / count) - (square - mean**2)).clamp_min(1e-30).sqrt()
    valid = (1 / count) - (square - mean**2) >= 0
    support = ((ordered >= tau) & valid).sum(-1, keepdim=True)
    return (s - tau.gather(-1, support - 1)).clamp_min(0) ** 2


def normalized(s, see, normalizer):
    """Weights of scores; rows that see nothing get zeros."""
    if normalizer == "sigmoid":
        return torch.sigmoid(s) * see
    if normalizer == "none":
        return torch.where(see, s, 0.0)
    any_seen = see.any(-1, keepdim=True)
    low = torch.where(see, s, -1e9)
    if normalizer == "softmax":
        weights = torch.softmax(low, -1)
    elif normalizer == "sparsemax":
        weights = sparsemax(low)
    elif normalizer == "entmax15":
        weights = entmax15(low)
    else:  # argmax, the first of equals
        weights = torch.nn.functional.one_hot(low.argmax(-1), s.shape[-1]).to(s.dtype)
    return torch.where(see & any_seen, weights, 0.0)


def attention(q, k, v, *, score="dot", scale=None, activation=None, w=None, expression=None, normalizer="softmax",
              offset=0, keep=None, bias=None, key_bias=None, alibi=None, relative=None, **masks):  # fmt: skip
    """out, weights and lse, in the axes of q."""
    axes = q.ndim
    q, k, v = lifted(q), lifted(k), lifted(v)
    group = q.shape[1] // max(k.shape[1], 1)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scale = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None and score == "dot" else scale
    shape = (*q.shape[:3], k.shape[2])
    if 0 in shape:
        out, weights, lse = q.new_zeros(*shape[:3], v.shape[3]), q.new_zeros(shape), q.new_full(shape[:3], -torch.inf)
        return _dropped(out, axes), _dropped(weights, axes), _dropped(lse, axes)
    s = scores_of(q, k, score, scale, activation, w, expression)
    s = s + bias_of(shape, offset, bias, key_bias, alibi, relative)
    see = allowed(shape, offset, **masks) & ~torch.isneginf(s)
    lse = torch.logsumexp(torch.where(see, s, -1e300), -1)
    lse = torch.where(see.any(-1), lse, float("-inf"))
    weights = normalized(torch.where(torch.isneginf(s), 0.0, s), see, normalizer)
    if keep is not None:
        weights = weights * keep
    out = weights @ v
    return _dropped(out, axes), _dropped(weights, axes), _dropped(lse, axes)
