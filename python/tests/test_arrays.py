"""The operator on NumPy arrays, against the formula in float64."""

import pickle

import numpy as np
import pytest
import torch
from reference import attention as reference

import regard

NORMALIZERS = ["softmax", "sparsemax", "entmax15", "sigmoid", "none", "argmax"]
ACTIVATIONS = {
    "tanh": torch.tanh,
    "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x, 0.2),
    "leaky_relu(0.1)": lambda x: torch.nn.functional.leaky_relu(x, 0.1),
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "identity": lambda x: x,
}


def tensor(x):
    return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float64 if x.dtype.kind == "f" else None))


def data(rng, b=2, hq=4, hk=2, nq=5, nk=7, d=8, dv=6):
    return (
        rng.normal(size=(b, hq, nq, d)),
        rng.normal(size=(b, hk, nk, d)),
        rng.normal(size=(b, hk, nk, dv)),
    )


def compare(ours, theirs, rtol=1e-10):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_every_normalizer_gives_the_formula_s_output_weights_and_lse(rng, normalizer):
    q, k, v = data(rng)
    out, aux = regard.attention(q, k, v, normalizer=normalizer, return_aux=("weights", "lse"))
    expected = reference(tensor(q), tensor(k), tensor(v), normalizer=normalizer)
    for ours, theirs in zip((out, aux.weights, aux.lse), expected):
        compare(ours, theirs)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("per_head", [False, True])
def test_the_additive_score_with_every_activation(rng, activation, per_head):
    q, k, v = data(rng)
    w = rng.normal(size=(4, 8) if per_head else 8)
    out = regard.attention(q, k, v, score=regard.Additive(w, activation))
    expected, _, _ = reference(
        tensor(q), tensor(k), tensor(v), score="additive", activation=ACTIVATIONS[activation], w=tensor(w)
    )
    compare(out, expected)


def test_scores_by_name_and_by_expression(rng):
    q, k, v = data(rng)
    t = tensor(q), tensor(k), tensor(v)
    compare(regard.attention(q, k, v, score="dot"), reference(*t, scale=1.0)[0])
    compare(regard.attention(q, k, v, scale=0.3), reference(*t, scale=0.3)[0])
    w = rng.normal(size=8)
    gaussian = regard.Expression("-sum(square(w * (q - k)))", w=w)
    expected = reference(*t, score="expression", expression=lambda a, b: -((tensor(w) * (a - b)) ** 2).sum(-1))
    compare(regard.attention(q, k, v, score=gaussian), expected[0])
    cosine = reference(
        *t, score="expression", expression=lambda a, b: (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1)) * 5
    )
    compare(regard.attention(q, k, v, score="q @ k / (norm(q) * norm(k)) * 5"), cosine[0])


@pytest.mark.parametrize(
    "mask",
    [
        {"is_causal": True},
        {"is_causal": True, "offset": 2},
        {"window": (2, 1)},
        {"window": (1, 0), "offset": 2},
        {"key_lengths": np.array([7, 3])},
        {"segments": (np.array([[0, 0, 1, 1, 2]] * 2), np.array([[0, 0, 0, 1, 1, 2, 3]] * 2))},
        {"edges": np.array([[0, 3, 6, 1, 1, 5], [0, 0, 1, 2, 4, 4]])},
        {"attn_mask": np.arange(35).reshape(5, 7) % 3 > 0},
        {"attn_mask": np.arange(2 * 4 * 35).reshape(2, 4, 5, 7) % 5 > 1, "is_causal": True, "offset": 3},
    ],
    ids=lambda mask: "+".join(mask),
)
@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax", "sigmoid"])
def test_every_mask_hides_what_it_says(rng, mask, normalizer):
    q, k, v = data(rng)
    out, aux = regard.attention(q, k, v, normalizer=normalizer, return_aux="weights", **mask)
    meant = {name: x if not isinstance(x, np.ndarray) else tensor(x) for name, x in mask.items()}
    if "attn_mask" in meant:
        meant["dense"] = meant.pop("attn_mask")
    if "segments" in meant:
        meant["segments"] = tuple(tensor(x) for x in meant["segments"])
    expected = reference(tensor(q), tensor(k), tensor(v), normalizer=normalizer, **meant)
    compare(out, expected[0])
    compare(aux.weights, expected[1])


def test_truths_and_numbers_go_together(rng):
    q, k, v = data(rng)
    truths, numbers = rng.random((2, 1, 5, 7)) > 0.3, rng.normal(size=(1, 4, 5, 7))
    expected, _, _ = reference(tensor(q), tensor(k), tensor(v), dense=torch.from_numpy(truths), bias=tensor(numbers))
    compare(regard.attention(q, k, v, attn_mask=(truths, numbers)), expected)


def test_every_bias_is_added_and_minus_infinity_masks(rng):
    q, k, v = data(rng)
    bias = rng.normal(size=(1, 4, 5, 7))
    bias[0, 1, 2] = -np.inf
    bias[0, 0, 1, 3] = -np.inf
    key_bias = rng.normal(size=(2, 7))
    slopes = np.array([0.1, 0.2, 0.3, 0.4])
    table = rng.normal(size=(4, 5))
    out = regard.attention(q, k, v, attn_mask=bias, key_bias=key_bias, alibi_slopes=slopes, relative_bias=table, offset=1)
    expected, _, _ = reference(
        tensor(q), tensor(k), tensor(v), bias=tensor(bias), key_bias=tensor(key_bias), alibi=tensor(slopes),
        relative=tensor(table), offset=1,
    )  # fmt: skip
    compare(out, expected)
    assert (out[:, 1, 2] == 0).all()


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_missing_axes_are_missing_in_the_results_too(rng, axes):
    q, k, v = (x[:, 0] for x in data(rng, hq=1, hk=1))
    if axes < 3:
        q, k, v = q[0], k[0], v[0]
    q = q[0] if axes == 1 else q
    out, aux = regard.attention(q, k, v, return_aux=("weights", "lse"))
    expected = reference(tensor(q), tensor(k), tensor(v))
    for ours, theirs in zip((out, aux.weights, aux.lse), expected):
        assert ours.shape == tuple(theirs.shape)
        compare(ours, theirs)


def test_a_mask_of_a_batch_without_heads_belongs_to_the_batch(rng):
    q, k, v = (x[:, 0] for x in data(rng, b=3, hq=1, hk=1))
    mask = rng.random((3, 5, 7)) > 0.4
    expected, _, _ = reference(tensor(q), tensor(k), tensor(v), dense=torch.from_numpy(mask)[:, None])
    compare(regard.attention(q, k, v, attn_mask=mask), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_every_type_keeps_its_precision(rng, dtype):
    q, k, v = (x.astype(dtype) for x in data(rng))
    out = regard.attention(q, k, v)
    assert out.dtype == dtype
    expected, _, _ = reference(tensor(q), tensor(k), tensor(v))
    compare(out.astype(np.float64), expected, rtol=8 * float(np.finfo(dtype).eps))


def test_any_strides_give_the_same_bits(rng):
    q, k, v = data(rng, hk=4)
    plain = regard.attention(q, k, v)
    bundled = np.ascontiguousarray(q.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    reversed_rows = np.ascontiguousarray(k[:, :, ::-1])[:, :, ::-1]
    by_columns = np.asfortranarray(v)
    assert not bundled.flags.c_contiguous and reversed_rows.strides[2] < 0 and by_columns.strides[-1] != 8
    np.testing.assert_array_equal(regard.attention(bundled, reversed_rows, by_columns), plain)
    every_other = np.repeat(q, 2, axis=-1)[..., ::2]
    np.testing.assert_array_equal(regard.attention(every_other, k, v), plain)
    shared = np.broadcast_to(k[:1], k.shape)
    np.testing.assert_array_equal(regard.attention(q, shared, v), regard.attention(q, shared.copy(), v))


def test_unaligned_and_read_only_arrays_are_read(rng):
    q, k, v = data(rng)
    raw = np.frombuffer(b"x" + q.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(q.shape)
    assert not raw.flags.aligned
    k.flags.writeable = False
    np.testing.assert_array_equal(regard.attention(raw, k, v), regard.attention(q, k, v))


def test_truths_that_are_any_byte_mask_like_truths(rng):
    q, k, v = data(rng)
    odd = np.array([0, 2, 255, 1, 0, 7, 0], np.uint8).view(np.bool_)
    even = np.array([0, 1, 1, 1, 0, 1, 0], np.uint8).view(np.bool_)
    np.testing.assert_array_equal(regard.attention(q, k, v, attn_mask=odd), regard.attention(q, k, v, attn_mask=even))


def test_dropout_zeroes_its_share_and_scales_the_rest(rng):
    q, k, v = data(rng, nq=40, nk=50)
    plain = regard.attention(q, k, v, return_aux="weights")[1].weights
    out, aux = regard.attention(q, k, v, dropout_p=0.25, seed=3, return_aux="weights")
    dropped = aux.weights == 0
    assert abs(dropped.mean() - 0.25) < 0.02
    np.testing.assert_allclose(aux.weights[~dropped], plain[~dropped] / 0.75, rtol=1e-12)
    group = v.repeat(2, axis=1)
    np.testing.assert_allclose(out, aux.weights @ group, rtol=1e-9, atol=1e-12)
    again = regard.attention(q, k, v, dropout_p=0.25, seed=3)
    np.testing.assert_array_equal(again, out)
    assert (regard.attention(q, k, v, dropout_p=0.25, seed=4) != out).any()
    np.random.seed(1)
    first = regard.attention(q, k, v, dropout_p=0.25)
    np.random.seed(1)
    np.testing.assert_array_equal(regard.attention(q, k, v, dropout_p=0.25), first)


def test_hard_attention_tells_what_it_chose(rng):
    q, k, v = data(rng)
    soft = regard.attention(q, k, v, return_aux="weights")[1].weights
    out, aux = regard.attention(q, k, v, normalizer="argmax", return_aux=("index", "log_prob"))
    np.testing.assert_array_equal(aux.index, soft.argmax(-1))
    np.testing.assert_allclose(aux.log_prob, np.log(soft.max(-1)), rtol=1e-9)
    drawn = regard.attention(q, k, v, normalizer="sample", seed=1, return_aux=("index", "log_prob"))[1]
    np.testing.assert_allclose(
        drawn.log_prob, np.log(np.take_along_axis(soft, drawn.index[..., None], -1))[..., 0], rtol=1e-9
    )


def test_samples_are_drawn_as_often_as_their_weights_say(rng):
    q, k = np.zeros((1, 2)), np.array([[1.0, 0], [0, 0], [0, 0]])
    q = np.repeat(np.array([[np.log(2.0), 0]]), 6000, axis=0)
    drawn = regard.attention(q, k, k, score="dot", normalizer="sample", seed=5, return_aux="index")[1].index
    share = np.bincount(drawn, minlength=3) / 6000
    np.testing.assert_allclose(share, [0.5, 0.25, 0.25], atol=0.03)


def test_prepared_edges_and_an_edge_index_agree_and_weights_come_in_the_order_given(rng):
    q, k, v = data(rng)
    index = np.array([[6, 3, 0, 1, 5, 1, 3], [0, 0, 1, 2, 4, 4, 0]])  # one of them twice
    edges = regard.Edges(index, 5, 7)
    assert len(edges) == 6 and not edges.is_in_order
    out, aux = regard.attention(q, k, v, edges=index, return_aux=("weights", "edge_weights"))
    np.testing.assert_array_equal(regard.attention(q, k, v, edges=edges), out)
    np.testing.assert_array_equal(aux.edge_weights, aux.weights[:, :, index[1], index[0]])


def test_prepared_edges_are_copied_and_sent_to_other_processes():
    edges = regard.Edges(np.array([[1, 0], [0, 1]]), 2)
    again = pickle.loads(pickle.dumps(edges))
    assert len(again) == 2 and (again.places == edges.places).all() and repr(again) == repr(edges)


def test_bfloat16_of_ml_dtypes(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q, k, v = (x.astype(ml_dtypes.bfloat16) for x in data(rng))
    out = regard.attention(q, k, v)
    assert out.dtype == ml_dtypes.bfloat16
    expected, _, _ = reference(*(tensor(x.astype(np.float64)) for x in (q, k, v)))
    compare(out.astype(np.float64), expected, rtol=2**-6)


def test_nothing_to_see_gives_zeros_and_nothing_at_all_is_fine(rng):
    q, k, v = data(rng)
    out, aux = regard.attention(q, k, v, key_lengths=[0, 7], return_aux="lse")
    assert (out[0] == 0).all() and np.isneginf(aux.lse[0]).all() and np.isfinite(aux.lse[1]).all()
    for shape_q, shape_k in [((0, 4), (3, 4)), ((2, 4), (0, 4)), ((2, 0), (3, 0))]:
        out = regard.attention(np.ones(shape_q), np.ones(shape_k), np.ones((shape_k[0], 5)))
        assert out.shape == (shape_q[0], 5)
        assert shape_k[0] > 0 or (out == 0).all()


def test_merged_parts_are_the_whole(rng):
    q, k, v = data(rng)
    whole, aux = regard.attention(q, k, v, is_causal=True, return_aux="lse")
    parts = [
        regard.attention(q, k[:, :, a:b], v[:, :, a:b], is_causal=True, offset=-a, return_aux="lse")
        for a, b in [(0, 2), (2, 6), (6, 7)]
    ]
    out, lse = regard.merge_attentions([out for out, _ in parts], [aux.lse for _, aux in parts])
    np.testing.assert_allclose(out, whole, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(lse, aux.lse, rtol=1e-10)
    out, lse = regard.merge_attentions([np.zeros((2, 3))] * 2, [np.full(2, -np.inf)] * 2)
    assert (out == 0).all() and np.isneginf(lse).all()


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_sparsemax_and_entmax_along_any_axis(rng, axis):
    from reference import entmax15, sparsemax

    x = rng.normal(size=(4, 5, 6)) * 2
    for ours, theirs in ((regard.sparsemax, sparsemax), (regard.entmax15, entmax15)):
        expected = theirs(torch.from_numpy(x).movedim(axis, -1)).movedim(-1, axis)
        np.testing.assert_allclose(ours(x, axis), expected.numpy(), rtol=1e-9, atol=1e-9)


def test_any_producer_of_dlpack_is_read(rng):
    class Foreign:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **options):
            return self.x.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    q, k, v = data(rng)
    out = regard.attention(Foreign(q), Foreign(k), Foreign(v))
    np.testing.assert_array_equal(out, regard.attention(q, k, v))
