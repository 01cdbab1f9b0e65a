"""The modules of `regard.torch`, against PyTorch's and torch_geometric's own."""

import copy
import itertools
import pickle
import warnings

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

import regard
import regard.torch

MHA = {
    "plain": {},
    "no bias": {"bias": False},
    "batch first": {"batch_first": True},
    "other widths": {"kdim": 6, "vdim": 10},
    "more keys": {"add_bias_kv": True, "add_zero_attn": True},
}


@pytest.mark.parametrize("name", MHA)
@pytest.mark.parametrize("masks", ["none", "padding", "mask", "numbers", "per head", "causal"])
def test_multihead_attention_loads_pytorch_s_state_and_gives_its_results(name, masks):
    torch.manual_seed(1)
    options = {"dtype": torch.float64, **MHA[name]}
    theirs = torch.nn.MultiheadAttention(8, 2, **options)
    if theirs.in_proj_bias is not None:
        torch.nn.init.normal_(theirs.in_proj_bias)
    ours = regard.torch.MultiheadAttention(8, 2, **options)
    ours.load_state_dict(theirs.state_dict())
    shape = (3, 5) if options.get("batch_first") else (5, 3)
    q, k, v = (torch.randn(*shape, options.get(name, 8), dtype=torch.float64) for name in ("", "kdim", "vdim"))
    call = {
        "none": {},
        "padding": {"key_padding_mask": torch.arange(5)[None, :] >= torch.tensor([5, 3, 1])[:, None]},
        "mask": {"attn_mask": torch.rand(5, 5) > 0.7},
        "numbers": {"attn_mask": torch.randn(5, 5, dtype=torch.float64), "need_weights": False},
        "per head": {"attn_mask": torch.randn(6, 5, 5, dtype=torch.float64), "average_attn_weights": False},
        "causal": {"attn_mask": torch.ones(5, 5).triu(1).bool(), "is_causal": True, "need_weights": False},
    }[masks]
    if masks == "mask":
        call["attn_mask"].fill_diagonal_(False)  # PyTorch gives NaN where nothing is seen
    mine, expected = ours(q, k, v, **call), theirs(q, k, v, **call)
    torch.testing.assert_close(mine[0], expected[0])
    if expected[1] is None:
        assert mine[1] is None
    else:
        torch.testing.assert_close(mine[1], expected[1])
    grads = [torch.autograd.grad(x[0].square().sum(), list(m.parameters())) for x, m in ((mine, ours), (expected, theirs))]
    for a, b in zip(*grads):
        torch.testing.assert_close(a, b)


def test_keys_that_are_added_have_no_place_that_a_causal_mask_or_a_window_could_hide():
    count = 0
    added = ({"add_bias_kv": True}, {"add_zero_attn": True}, {"add_bias_kv": True, "add_zero_attn": True}, {})
    choices = (added, (True, False), ("truths", "numbers"), (None, "truths", "numbers"), (True, False), (True, False))
    for options, need, kind, pad, is_causal, batch_first in itertools.product(*choices):
        torch.manual_seed(count)
        theirs = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first, **options, dtype=torch.float64)
        ours = regard.torch.MultiheadAttention(8, 2, batch_first=batch_first, **options, dtype=torch.float64)
        ours.load_state_dict(theirs.state_dict())
        x = torch.randn(*((3, 5) if batch_first else (5, 3)), 8, dtype=torch.float64)
        hidden, padding = torch.ones(5, 5).triu(1).bool(), torch.arange(5)[None] >= torch.tensor([5, 3, 4])[:, None]
        low = float("-inf")
        call = {"attn_mask": hidden, "need_weights": need, "is_causal": is_causal}
        if kind == "numbers":
            call["attn_mask"] = torch.zeros(5, 5, dtype=torch.float64).masked_fill(hidden, low)
        if pad is not None:
            call["key_padding_mask"] = padding
        if pad == "numbers":
            call["key_padding_mask"] = torch.zeros(3, 5, dtype=torch.float64).masked_fill(padding, low)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine, expected = ours(x, x, x, **call), theirs(x, x, x, **call)
        torch.testing.assert_close(mine[0], expected[0])
        if need:
            torch.testing.assert_close(mine[1], expected[1])
        # A window is a mask of its own.
        ours.window = (3, 2)
        distance = torch.arange(5)[None] - torch.arange(5)[:, None]
        far = (distance < -3) | (distance > 2)
        if need or pad is not None or not is_causal:
            near = {**call, "attn_mask": hidden | far if kind == "truths" else call["attn_mask"].masked_fill(far, low)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.testing.assert_close(ours(x, x, x, **call)[0], theirs(x, x, x, **{**near, "is_causal": False})[0])
        count += 1
    assert count == 4 * 2 * 2 * 3 * 2 * 2


def test_masks_of_multihead_attention_are_refused_by_their_own_names():
    layer, x = regard.torch.MultiheadAttention(8, 2), torch.randn(5, 3, 8)
    with pytest.raises(TypeError, match="key_padding_mask is torch.int64"):
        layer(x, x, x, key_padding_mask=torch.zeros(3, 5, dtype=torch.int64))
    for wrong in ((3, 5, 5), (1, 5, 5), (2, 5, 5)):
        with pytest.raises(ValueError, match=r"attn_mask has shape .* here 3 · 2 of them"):
            layer(x, x, x, attn_mask=torch.zeros(wrong))


def encoders(normalizer, window):
    """PyTorch's own encoder, and two with our attention: put into the layer before the encoder was made, and after."""
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    theirs = torch.nn.TransformerEncoder(layer, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = []
        for before in (True, False):
            one = copy.deepcopy(layer)
            ours = regard.torch.MultiheadAttention(16, 2, batch_first=True, normalizer=normalizer, window=window)
            if before:
                one.self_attn = ours
            encoder = torch.nn.TransformerEncoder(one, 2)
            for each in encoder.layers:
                each.self_attn = copy.deepcopy(ours)
            encoder.load_state_dict(theirs.state_dict())
            made.append(encoder.eval())
    return theirs.eval(), made


@pytest.mark.parametrize("masks", ["none", "padding", "causal"])
@pytest.mark.parametrize("normalizer,window", [("softmax", None), ("sparsemax", None), ("softmax", 1), ("entmax15", (2, 0))])
def test_pytorch_s_encoder_computes_by_our_attention_with_and_without_gradients(normalizer, window, masks):
    theirs, ours = encoders(normalizer, window)
    x = torch.randn(3, 5, 16)
    padding = torch.arange(5)[None] >= torch.tensor([5, 3, 1])[:, None]
    given = {
        "none": {},
        "padding": {"src_key_padding_mask": padding},
        "causal": {"mask": torch.nn.Transformer.generate_square_subsequent_mask(5), "is_causal": True},
    }[masks]
    real = ~padding if masks == "padding" else slice(None)
    for encoder in ours:
        recorded = encoder(x, **given)
        assert recorded.requires_grad
        with torch.no_grad():
            plain = encoder(x, **given)
            expected = theirs(x, **given)
        torch.testing.assert_close(plain[real], recorded[real], rtol=1e-5, atol=1e-5)
        same = normalizer == "softmax" and window is None
        assert torch.allclose(plain[real], expected[real], atol=1e-5) == same


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_sequences_give_what_each_gives_alone_with_gradients(layout):
    torch.manual_seed(1)
    layer = regard.torch.MultiheadAttention(16, 2, batch_first=True, normalizer="sparsemax", window=2)
    rows = [torch.randn(n, 16, requires_grad=True) for n in (3, 5, 1)]
    nested = torch.nested.as_nested_tensor(rows, layout=layout)
    out, weights = layer(nested, nested, nested, need_weights=False)
    assert out.is_nested and weights is None
    for mine, row in zip(out.unbind(), rows):
        expected = layer(row, row, row, need_weights=False)[0]
        torch.testing.assert_close(mine, expected)
        grads = [torch.autograd.grad(x.square().sum(), row, retain_graph=True)[0] for x in (mine, expected)]
        torch.testing.assert_close(*grads)
    with pytest.raises(ValueError, match="no mask"):
        layer(nested, nested, nested)
    with pytest.raises(TypeError, match="either all of them"):
        layer(nested, rows[0][None], rows[0][None], need_weights=False)


def test_multihead_attention_is_reset_copied_and_pickled():
    layer = regard.torch.MultiheadAttention(8, 2, kdim=6)
    packed = regard.torch.MultiheadAttention(8, 2)
    for one in (layer, packed):
        one._reset_parameters()
        again = pickle.loads(pickle.dumps(one))
        q, k = torch.randn(4, 8), torch.randn(5, one.kdim)
        v = torch.randn(5, one.vdim)
        torch.testing.assert_close(again(q, k, v), copy.deepcopy(one)(q, k, v))


def test_multihead_attention_without_a_batch_and_trained_with_dropout():
    layer = regard.torch.MultiheadAttention(8, 2, dropout=0.5)
    x = torch.randn(5, 8)
    out, weights = layer(x, x, x)
    assert out.shape == (5, 8) and weights.shape == (5, 5)
    assert not torch.equal(layer(x, x, x)[0], layer(x, x, x)[0])
    layer.eval()
    assert torch.equal(layer(x, x, x)[0], layer(x, x, x)[0])


def test_sliding_windows_are_masked_attention_with_pytorch_s_state():
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    ours = regard.torch.SlidingWindowAttention(8, 2, window=(2, 1), dtype=torch.float64)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 9, 8, dtype=torch.float64)
    distance = torch.arange(9)[None] - torch.arange(9)[:, None]
    forbidden = (distance < -2) | (distance > 1)
    torch.testing.assert_close(ours(x), theirs(x, x, x, attn_mask=forbidden)[0])


def test_additive_attention_is_bahdanau_s():
    layer = regard.torch.AdditiveAttention(6, 10, 16, dtype=torch.float64)
    assert sorted(layer.state_dict()) == ["W_k.weight", "W_q.weight", "w_v.weight"]
    q, k = torch.randn(2, 3, 6, dtype=torch.float64), torch.randn(2, 7, 10, dtype=torch.float64)
    out, weights = layer(q, k, key_lengths=torch.tensor([7, 4]))
    scores = layer.w_v(torch.tanh(layer.W_q(q)[:, :, None] + layer.W_k(k)[:, None])).squeeze(-1)
    scores[1, :, 4:] = -torch.inf
    expected = torch.softmax(scores, -1)
    torch.testing.assert_close(weights, expected)
    torch.testing.assert_close(out, expected @ k)


GRAPHS = {
    "plain": {},
    "heads": {"heads": 4},
    "mean of heads": {"heads": 4, "concat": False},
    "no loops": {"add_self_loops": False, "heads": 2},
    "edge features": {"edge_dim": 3, "heads": 2},
    "features filled in": {"edge_dim": 3, "fill_value": 0.5},
    "residual": {"residual": True, "bias": False},
    "another slope": {"negative_slope": 0.05, "heads": 2},
    "pairs": {"pair": True, "heads": 2},
    "pairs without loops": {"pair": True, "heads": 2, "add_self_loops": False},
    "the other way": {"flow": "target_to_source", "heads": 2},
}


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("twice", [False, True], ids=["each edge once", "some edges twice"])
def test_graph_attention_loads_torch_geometric_s_state_and_gives_its_results(kind, name, twice):
    geometric = pytest.importorskip("torch_geometric.nn")
    torch.manual_seed(1)
    options = dict(GRAPHS[name])
    pair = options.pop("pair", False)
    widths = (8, 6) if pair else 8
    theirs = getattr(geometric, kind)(widths, 5, **options).double()
    ours = getattr(regard.torch, kind)(widths, 5, **options).double()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    sources = torch.randn(20, 8, dtype=torch.float64)
    x = (sources, torch.randn(12, 6, dtype=torch.float64)) if pair else sources
    index = torch.stack([torch.randint(20, (60,)), torch.randint(12 if pair else 20, (60,))])
    index = index if twice else index.unique(dim=1)[:, torch.randperm(index.unique(dim=1).shape[1])]
    attr = torch.randn(index.shape[1], 3, dtype=torch.float64) if "edge_dim" in options else None
    out, (seen, alpha) = ours(x, index, attr, return_attention_weights=True)
    expected, (their_index, their_alpha) = theirs(x, index, attr, return_attention_weights=True)
    assert torch.equal(seen, their_index)
    torch.testing.assert_close(alpha, their_alpha)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(ours(x, index, attr), expected)
    names = [name for name, _ in theirs.named_parameters()]
    mine = torch.autograd.grad(out.square().sum() + alpha.square().sum(), [ours.get_parameter(n) for n in names])
    losses = expected.square().sum() + their_alpha.square().sum()
    for a, b in zip(mine, torch.autograd.grad(losses, list(theirs.parameters()))):
        torch.testing.assert_close(a, b)


def test_shared_weights_and_dropout_of_a_graph():
    layer = regard.torch.GATv2Conv(8, 5, share_weights=True, dropout=0.5)
    x, index = torch.randn(20, 8), torch.stack([torch.randint(20, (60,)), torch.randint(20, (60,))]).unique(dim=1)
    assert not torch.equal(layer(x, index), layer(x, index))
    layer.eval()
    assert torch.equal(layer(x, index), layer(x, index))


def test_a_graph_changed_in_place_is_read_again():
    layer = regard.torch.GATConv(4, 4)
    x, index = torch.randn(5, 4), torch.tensor([[0, 1, 2], [1, 2, 3]])
    first = layer(x, index)
    index[0, 0] = 4
    assert not torch.equal(layer(x, index)[1], first[1])


@pytest.fixture
def active():
    regard.torch.activate()
    yield
    regard.torch.deactivate()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("masks", ["none", "causal", "truths", "numbers", "grouped"])
def test_active_kernels_serve_pytorch_s_own_attention(active, dtype, masks, monkeypatch):
    calls = []
    from regard import _tensors
    from regard.torch import sdpa as ours

    for name, place in [("forward", _tensors), ("backward", ours._permuted)]:
        real = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *a, real=real, name=name: calls.append(name) or real(*a))
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 33, 16, dtype=dtype, requires_grad=True) for _ in range(3))
    options = {
        "none": {},
        "causal": {"is_causal": True},
        "truths": {"attn_mask": torch.rand(2, 1, 33, 33) > 0.2},
        "numbers": {"attn_mask": torch.randn(33, 33, dtype=dtype)},
        "grouped": {"enable_gqa": True},
    }[masks]
    if masks == "grouped":
        k, v = (x.detach()[:, :2].clone().requires_grad_() for x in (k, v))
    out = sdpa(q, k, v, **options)
    grads = torch.autograd.grad(out.float().square().sum(), (q, k, v))
    assert calls == ["forward", "backward"]
    regard.torch.deactivate()
    theirs = sdpa(q, k, v, **options)
    assert len(calls) == 2
    their_grads = torch.autograd.grad(theirs.float().square().sum(), (q, k, v))
    tolerance = {"rtol": 4e-2, "atol": 4e-2} if dtype in (torch.bfloat16, torch.float16) else {}
    torch.testing.assert_close(out, theirs, **tolerance)
    for a, b in zip(grads, their_grads):
        torch.testing.assert_close(a, b, **tolerance)


def test_active_kernels_serve_compiled_code_and_whole_layers(active):
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    x = torch.randn(2, 9, 16)
    ours = layer(x)
    compiled = torch.compile(lambda x: sdpa(x, x, x), backend="aot_eager")
    y = torch.randn(1, 2, 7, 8)
    mine = compiled(y)
    regard.torch.deactivate()
    torch.testing.assert_close(ours, layer(x))
    torch.testing.assert_close(mine, sdpa(y, y, y))


def test_a_pytorch_without_a_registry_of_kernels_loses_activate_alone(monkeypatch):
    from regard.torch import sdpa as ours

    class Older:
        pass

    monkeypatch.setattr(ours, "registry", Older)
    assert not regard.torch.is_active()
    regard.torch.deactivate()
    with pytest.raises(RuntimeError, match="other kernels"):
        regard.torch.activate()


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
def test_a_batch_of_graphs_in_one_array_is_refused_and_edges_are_handed_out_as_a_copy(kind):
    layer = getattr(regard.torch, kind)(4, 4)
    x, index = torch.randn(5, 4), torch.tensor([[0, 1, 2], [1, 2, 3]])
    for wrong in (x[None], (x, x[None]), x[0]):
        with pytest.raises(ValueError, match=r"wants nodes \[N, F\]"):
            layer(wrong, index)
    out, (seen, _) = layer(x, index, return_attention_weights=True)
    seen.zero_()
    torch.testing.assert_close(layer(x, index), out)


def test_a_direct_call_of_pytorch_s_kernel_with_dropout_is_refused(active):
    x = torch.randn(1, 2, 3, 4)
    with pytest.raises(NotImplementedError, match="dropout"):
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(x, x, x, 0.5)
