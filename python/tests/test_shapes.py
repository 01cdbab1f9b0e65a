"""Shapes, layouts, capped scores, sinks and packed sequences: against PyTorch's own attention and plain formulas."""

import itertools

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

import regard
import regard.torch


def numbers(*shape, seed=0, requires_grad=True):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.requires_grad_(requires_grad)


#: Leading axes of query, of key and of value.
LEADS = [
    ((2,), (2,), (2,)), ((3,), (1,), (1,)), ((1,), (3,), (3,)), ((3,), (1,), (3,)), ((2, 3), (2, 3), (2, 3)),
    ((2, 3), (1, 3), (1, 3)), ((2, 1), (1, 3), (2, 3)), ((2, 1, 3), (2, 2, 3), (1, 2, 1)), ((0, 2), (0, 2), (1, 2)),
]  # fmt: skip
#: Leading axes of a mask, before [H, Nq, Nk]: shorter, as long, and broadcast.
MASKS = ["none", "causal", "[Nq, Nk]", "[H, Nq, Nk]", "[1…, 1, Nq, Nk]", "[…, H, Nq, Nk]", "truths […, 1, Nq, Nk]"]


def mask_of(kind, lead):
    if kind in ("none", "causal"):
        return {"is_causal": kind == "causal"}
    shape = {
        "[Nq, Nk]": (5, 7), "[H, Nq, Nk]": (2, 5, 7), "[1…, 1, Nq, Nk]": (*(1 for _ in lead), 1, 5, 7),
        "[…, H, Nq, Nk]": (*lead, 2, 5, 7), "truths […, 1, Nq, Nk]": (*lead, 1, 5, 7),
    }[kind]  # fmt: skip
    mask = numbers(*shape, seed=9, requires_grad=False)
    return {"attn_mask": mask > -1.0 if kind.startswith("truths") else mask.requires_grad_()}


def test_every_shape_that_pytorch_takes_gives_its_results_and_gradients():
    count = 0
    for leads, kind in itertools.product(LEADS, MASKS):
        lead = torch.broadcast_shapes(*leads)
        q, k, v = (numbers(*own, 2, n, d, seed=s) for s, (own, n, d) in enumerate(zip(leads, (5, 7, 7), (4, 4, 6))))
        options = mask_of(kind, lead)
        inputs = [q, k, v, *(x for x in options.values() if isinstance(x, torch.Tensor) and x.requires_grad)]
        ours, theirs = regard.attention(q, k, v, **options), sdpa(q, k, v, **options)
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
        grads = [torch.autograd.grad(x.square().sum(), inputs) for x in (ours, theirs)]
        for a, b in zip(*grads):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)
        plain = {n: x.detach().numpy() if isinstance(x, torch.Tensor) else x for n, x in options.items()}
        arrays = regard.attention(*(x.detach().numpy() for x in (q, k, v)), **plain)
        np.testing.assert_allclose(arrays, theirs.detach().numpy(), rtol=1e-9, atol=1e-9)
        count += 1
    assert count == 63


def test_what_belongs_to_an_item_of_the_batch_has_the_leading_axes():
    q, k, v = (numbers(2, 3, 2, n, 4, seed=s) for s, n in enumerate((5, 7, 7)))
    lengths = torch.tensor([[7, 3, 1], [2, 7, 5]])
    key_bias, segments = numbers(2, 3, 7, seed=5), (torch.arange(30).view(2, 3, 5) % 2, torch.arange(42).view(2, 3, 7) % 2)
    options = {"key_lengths": lengths, "key_bias": key_bias, "segments": segments}
    out, aux = regard.attention(q, k, v, **options, return_aux=("weights", "lse"))
    assert out.shape == (2, 3, 2, 5, 4) and aux.weights.shape == (2, 3, 2, 5, 7) and aux.lse.shape == (2, 3, 2, 5)
    for a, b in itertools.product(range(2), range(3)):
        own = {"key_lengths": lengths[a, b][None], "key_bias": key_bias[a, b]}
        own["segments"] = tuple(x[a, b] for x in segments)
        expected, more = regard.attention(q[a, b][None], k[a, b][None], v[a, b][None], **own, return_aux=("weights", "lse"))
        torch.testing.assert_close(out[a, b], expected[0])
        torch.testing.assert_close(aux.weights[a, b], more.weights[0])


def test_shapes_are_compiled():
    call = torch.compile(lambda q, k, v: regard.attention(q, k, v, softcap=2.0, layout="bnhd"), backend="aot_eager", fullgraph=True)
    q, k, v = numbers(2, 3, 5, 2, 4), numbers(1, 3, 7, 2, 4, seed=1), numbers(1, 3, 7, 2, 4, seed=2)
    torch.testing.assert_close(call(q, k, v), regard.attention(q, k, v, softcap=2.0, layout="bnhd"))


@pytest.mark.parametrize("hk", [4, 2])
def test_heads_inside_of_positions_give_the_same_the_other_way_round(hk):
    q, k, v = numbers(2, 5, 4, 8), numbers(2, 7, hk, 8, seed=1), numbers(2, 7, hk, 6, seed=2)
    swapped = [x.transpose(1, 2) for x in (q, k, v)]
    ours, aux = regard.attention(q, k, v, layout="bnhd", return_aux="weights")
    theirs = sdpa(*swapped, enable_gqa=True).transpose(1, 2)
    torch.testing.assert_close(ours, theirs)
    assert aux.weights.shape == (2, 4, 5, 7)
    for a, b in zip(*(torch.autograd.grad(x.square().sum(), (q, k, v)) for x in (ours, theirs))):
        torch.testing.assert_close(a, b)
    arrays = regard.attention(*(x.detach().numpy() for x in (q, k, v)), layout="bnhd")
    np.testing.assert_allclose(arrays, theirs.detach().numpy(), rtol=1e-9)


def formula(q, k, v, softcap=None, sinks=None, scale=None, mask=None):
    scores = (q @ k.mT) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
    scores = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
    if sinks is not None:
        column = sinks.view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], -1)
    lse = scores.logsumexp(-1)
    weights = scores.softmax(-1)[..., : k.shape[-2]]
    return weights @ v, weights, lse


@pytest.mark.parametrize("softcap", [None, 0.7])
@pytest.mark.parametrize("sunk", [False, True])
@pytest.mark.parametrize("scale", [None, 0.4, "learned"])
def test_capped_scores_and_sinks_are_the_formula_s_with_gradients(softcap, sunk, scale):
    q, k, v = numbers(2, 3, 5, 8), numbers(2, 3, 7, 8, seed=1), numbers(2, 3, 7, 6, seed=2)
    sinks = numbers(3, seed=4) if sunk else None
    scale = torch.tensor(0.4, dtype=torch.float64, requires_grad=True) if scale == "learned" else scale
    # One row sees nothing but the sink.
    mask = torch.ones(5, 7, dtype=torch.bool).tril(-1 if sunk else 0)
    ours, aux = regard.attention(
        q, k, v, attn_mask=mask, softcap=softcap, sinks=sinks, scale=scale, return_aux=("weights", "lse")
    )
    out, weights, lse = formula(q, k, v, softcap, sinks, scale, mask)
    inputs = [x for x in (q, k, v, sinks, scale) if isinstance(x, torch.Tensor)]
    found = []
    for parts in ((ours, aux.weights, aux.lse), (out, weights, lse)):
        loss = sum((x * torch.arange(1, x.numel() + 1).view(x.shape).double().cos()).sum() for x in parts)
        found.append((*parts, *torch.autograd.grad(loss, inputs)))
    for a, b in zip(*found):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
    plain = [x.detach().numpy() for x in (q, k, v)]
    own = {"softcap": softcap, "sinks": None if sinks is None else sinks.detach().numpy()}
    own |= {"scale": scale.item() if isinstance(scale, torch.Tensor) else scale, "attn_mask": mask.numpy()}
    arrays, more = regard.attention(*plain, **own, return_aux=("lse", "weights"))
    for a, b in ((arrays, out), (more.weights, weights), (more.lse, lse)):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_half_a_float_stays_one_with_sinks():
    q, k, v = (numbers(1, 2, 5, 8, seed=s).detach().bfloat16() for s in range(3))
    out = regard.attention(q, k, v, sinks=torch.zeros(2, dtype=torch.bfloat16))
    assert out.dtype is torch.bfloat16


LENGTHS = [3, 0, 7, 1, 12]


@pytest.mark.parametrize("keys", [LENGTHS, [5, 2, 7, 3, 20]])
@pytest.mark.parametrize("options", [
    {}, {"is_causal": True, "offset": "end"}, {"window": (2, 0)}, {"normalizer": "sparsemax"}, {"softcap": 1.5}, {"scale": 0.2},
])  # fmt: skip
def test_packed_sequences_give_what_each_gives_alone(keys, options):
    q, k, v = numbers(sum(LENGTHS), 4, 8), numbers(sum(keys), 2, 8, seed=1), numbers(sum(keys), 2, 6, seed=2)
    at_q, at_k = (torch.tensor([0, *itertools.accumulate(x)], dtype=torch.int32) for x in (LENGTHS, keys))
    ours = regard.torch.attention_varlen(q, k, v, at_q, at_k, **options)
    parts = []
    for a, b, c, d in zip(at_q[:-1], at_q[1:], at_k[:-1], at_k[1:]):
        nq, nk = int(b - a), int(d - c)
        mask = torch.ones(nq, nk, dtype=torch.bool).tril(nk - nq) if "is_causal" in options else None
        one, two, three = (x.transpose(0, 1)[None] for x in (q[a:b], k[c:d], v[c:d]))
        plain = {n: x for n, x in options.items() if n not in ("is_causal", "offset")}
        if mask is not None or not plain:
            parts.append(sdpa(one, two, three, attn_mask=mask, enable_gqa=True)[0].transpose(0, 1))
        else:
            parts.append(regard.attention(one, two, three, attn_mask=mask, **plain)[0].transpose(0, 1))
    theirs = torch.cat(parts)
    torch.testing.assert_close(ours, theirs)
    for a, b in zip(*(torch.autograd.grad(x.square().sum(), (q, k, v)) for x in (ours, theirs))):
        torch.testing.assert_close(a, b)


X, AT = torch.zeros(6, 2, 4), torch.tensor([0, 2, 6])
WRONG = {
    "bounds that end too early": (ValueError, "ends at 5", lambda f: f(X, X, X, torch.tensor([0, 2, 5]))),
    "bounds that begin too late": (ValueError, "begins", lambda f: f(X, X, X, torch.tensor([1, 6]))),
    "bounds that go back": (ValueError, "rise", lambda f: f(X, X, X, torch.tensor([0, 4, 2, 6]))),
    "fractions": (TypeError, "whole", lambda f: f(X, X, X, AT.float())),
    "a table": (ValueError, "shape", lambda f: f(X, X, X, AT[None])),
    "other counts": (ValueError, "sequences", lambda f: f(X, X, X, AT, torch.tensor([0, 6]))),
    "keys without values": (ValueError, "as many", lambda f: f(X, X, X[:5], AT)),
    "a batch": (ValueError, r"\[T, H, D\]", lambda f: f(X[None], X, X, AT)),
    "causal for other lengths": (ValueError, "offset", lambda f: f(X, X, X, AT, torch.tensor([0, 3, 6]), is_causal=True)),
    "a word as offset": (ValueError, "end", lambda f: f(X, X, X, AT, offset="last")),
    "an array": (TypeError, "tensor", lambda f: f(X.numpy(), X, X, AT)),
    "a mask": (TypeError, "attn_mask", lambda f: f(X, X, X, AT, attn_mask=None)),
}


@pytest.mark.parametrize("name", WRONG)
def test_packed_sequences_that_do_not_fit_are_refused(name):
    kind, part, call = WRONG[name]
    with pytest.raises(kind, match=part):
        call(regard.torch.attention_varlen)
