"""`attention_backward` on plain arrays, against autograd through the formula."""

import numpy as np
import pytest
import torch
from reference import attention as reference

import regard


def leaf(x):
    return torch.from_numpy(np.array(x, order="C")).requires_grad_()


def close(ours, theirs, rtol=1e-8):
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=rtol, atol=rtol)


@pytest.fixture
def qkv(rng):
    return rng.normal(size=(2, 4, 5, 8)), rng.normal(size=(2, 2, 7, 8)), rng.normal(size=(2, 2, 7, 6))


@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax", "entmax15", "sigmoid", "none"])
def test_gradients_of_everything_that_learns(rng, qkv, normalizer):
    q, k, v = qkv
    bias, key_bias, table = rng.normal(size=(1, 4, 1, 7)), rng.normal(size=(2, 7)), rng.normal(size=(4, 5))
    w = rng.normal(size=(4, 8))
    grad_out, grad_weights = rng.normal(size=(2, 4, 5, 6)), rng.normal(size=(2, 4, 5, 7))
    ours = regard.attention_backward(
        grad_out, q, k, v, grad_weights=grad_weights, attn_mask=bias, key_bias=key_bias, relative_bias=table,
        is_causal=True, offset=2, normalizer=normalizer, score=regard.Additive(w),
    )  # fmt: skip
    leaves = [leaf(x) for x in (q, k, v, w, key_bias, bias, table)]
    tq, tk, tv, tw, tkey, tbias, ttable = leaves
    out, weights, _ = reference(
        tq, tk, tv, score="additive", activation=torch.tanh, w=tw, bias=tbias, key_bias=tkey, relative=ttable,
        is_causal=True, offset=2, normalizer=normalizer,
    )  # fmt: skip
    loss = (out * torch.from_numpy(grad_out)).sum() + (weights * torch.from_numpy(grad_weights)).sum()
    expected = torch.autograd.grad(loss, leaves)
    for mine, theirs in zip(ours[:4], expected[:4]):
        close(mine, theirs)
    close(ours.key_bias[:, 0, 0], expected[4])
    close(ours.attn_mask, expected[5])
    close(ours.relative_bias, expected[6])


def test_gradients_of_an_expression_s_parameters_and_of_lse(rng, qkv):
    q, k, v = qkv
    w, tau = rng.normal(size=8), np.array(0.7)
    grad_out, grad_lse = rng.normal(size=(2, 4, 5, 6)), rng.normal(size=(2, 4, 5))
    ours = regard.attention_backward(
        grad_out, q, k, v, grad_lse=grad_lse, score=regard.Expression("tau * sum(w * abs(q - k))", w=w, tau=tau)
    )
    leaves = [leaf(x) for x in (q, k, v, tau, w)]
    tq, tk, tv, ttau, tw = leaves
    out, _, lse = reference(tq, tk, tv, score="expression", expression=lambda a, b: ttau * (tw * (a - b).abs()).sum(-1))
    loss = (out * torch.from_numpy(grad_out)).sum() + (lse * torch.from_numpy(grad_lse)).sum()
    expected = torch.autograd.grad(loss, leaves)
    for mine, theirs in zip((*ours[:3], *ours.parameters), expected):
        assert mine.shape == tuple(theirs.shape)
        close(mine, theirs)


@pytest.mark.parametrize("rows", [5, 90])
def test_what_forward_left_may_be_handed_over_and_stands_for_the_whole(rng, qkv, rows):
    _, k, v = qkv
    q, grad_out = rng.normal(size=(2, 4, rows, 8)), rng.normal(size=(2, 4, rows, 6))
    whole = regard.attention_backward(grad_out, q, k, v)
    out, aux = regard.attention(q, k, v, return_aux="lse")
    handed = regard.attention_backward(grad_out, q, k, v, out=out, lse=aux.lse)
    for a, b in zip(whole[:3], handed[:3]):
        np.testing.assert_array_equal(a, b)
    # A ring: each part of the keys by itself, with the whole's output and lse.
    parts = [
        regard.attention_backward(grad_out, q, k[:, :, a:b], v[:, :, a:b], out=out, lse=aux.lse, is_part=True)
        for a, b in [(0, 3), (3, 7)]
    ]
    np.testing.assert_allclose(sum(part.query for part in parts), whole.query, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([part.key for part in parts], 2), whole.key, rtol=1e-9, atol=1e-12)


def test_dropout_is_drawn_again_from_its_seed(rng, qkv):
    q, k, v = qkv
    grad_out = rng.normal(size=(2, 4, 5, 6))
    options = {"dropout_p": 0.5, "seed": 9}
    kept = regard.attention(q, k, v, return_aux="weights", **options)[1].weights != 0
    ours = regard.attention_backward(grad_out, q, k, v, **options)
    leaves = [leaf(x) for x in (q, k, v)]
    out, _, _ = reference(*leaves, keep=torch.from_numpy(kept * 2.0))
    for mine, theirs in zip(ours, torch.autograd.grad(out, leaves, torch.from_numpy(grad_out))):
        close(mine, theirs)
    with pytest.raises(ValueError, match="seed"):
        regard.attention_backward(grad_out, q, k, v, dropout_p=0.5)


def test_hard_choices_learn_by_their_log_probability(rng, qkv):
    q, k, v = qkv
    grad_out, grad_log_prob = rng.normal(size=(2, 4, 5, 6)), rng.normal(size=(2, 4, 5))
    ours = regard.attention_backward(grad_out, q, k, v, grad_log_prob=grad_log_prob, normalizer="argmax")
    leaves = [leaf(x) for x in (q, k, v)]
    _, weights, _ = reference(*leaves)
    log_prob = weights.max(-1).values.log()
    expected = torch.autograd.grad(log_prob, leaves[:2], torch.from_numpy(grad_log_prob))
    close(ours.query, expected[0])
    close(ours.key, expected[1])


def test_gradients_along_edges_come_in_the_order_given(rng, qkv):
    q, k, v = qkv
    index = np.array([[6, 3, 0, 1, 5, 1], [0, 0, 1, 2, 4, 4]])
    grad_out, grad_edges = np.zeros((2, 4, 5, 6)), rng.normal(size=(2, 4, 6))
    ours = regard.attention_backward(grad_out, q, k, v, edges=index, grad_edge_weights=grad_edges)
    leaves = [leaf(x) for x in (q, k, v)]
    _, weights, _ = reference(*leaves, edges=torch.from_numpy(index))
    expected = torch.autograd.grad(weights[:, :, index[1], index[0]], leaves[:2], torch.from_numpy(grad_edges))
    close(ours.query, expected[0])
    close(ours.key, expected[1])
