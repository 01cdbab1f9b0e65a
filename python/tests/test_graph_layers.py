"""Graph layers beside torch_geometric's: every option, compiled, lazy, along sparse adjacencies."""

import copy
import itertools
import warnings

import pytest
import torch

geometric = pytest.importorskip("torch_geometric.nn")

import regard.torch  # noqa: E402

KINDS = ["GATConv", "GATv2Conv", "TransformerConv"]
ATTENDS = {"GATConv": {"add_self_loops": False}, "GATv2Conv": {"add_self_loops": False}, "TransformerConv": {}}
F64 = torch.float64


def pair_of(kind, widths, out, **options):
    theirs = getattr(geometric, kind)(widths, out, **options).double()
    ours = getattr(regard.torch, kind)(widths, out, **options).double()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def graph(sources, targets, edges, twice, seed):
    generator = torch.Generator().manual_seed(seed)
    index = torch.stack([torch.randint(n, (edges,), generator=generator) for n in (sources, targets)])
    return index if twice else index.unique(dim=1)


def gradients(layer, x, index, attr, weights):
    """The output and the gradients of everything that learns or was given."""
    given = [one.clone().requires_grad_() for one in (x if isinstance(x, tuple) else (x,))]
    attr = None if attr is None else attr.clone().requires_grad_()
    nodes = tuple(given) if isinstance(x, tuple) else given[0]
    if weights:
        out, (_, alpha) = layer(nodes, index, attr, return_attention_weights=True)
        loss = out.square().sum() + alpha.square().sum()
    else:
        out = layer(nodes, index, attr)
        loss = out.square().sum()
    names, parameters = zip(*sorted(layer.named_parameters()))
    inputs = [*given, *([] if attr is None else [attr]), *parameters]
    return out, torch.autograd.grad(loss, inputs, allow_unused=True)


def check_same(mine, theirs):
    torch.testing.assert_close(mine[0], theirs[0])
    assert len(mine[1]) == len(theirs[1])
    for a, b in zip(mine[1], theirs[1]):
        # PyG has none where nothing was read, or zeros.
        assert a is not None or b is None or not b.any()
        if a is not None:
            torch.testing.assert_close(a, torch.zeros_like(a) if b is None else b)


def test_the_graph_transformer_gives_torch_geometric_s_outputs_and_gradients_with_every_option():
    count = 0
    choices = ((1, 3), (True, False), (True, False), (None, 2), (True, False), (True, False), (True, False), (True, False))
    for seed, chosen in enumerate(itertools.product(*choices)):
        heads, concat, beta, edge_dim, bias, root_weight, pair, twice = chosen
        torch.manual_seed(seed)
        theirs, ours = pair_of(
            "TransformerConv", (4, 3) if pair else 4, 2, heads=heads, concat=concat, beta=beta, edge_dim=edge_dim,
            bias=bias, root_weight=root_weight, flow="source_to_target" if pair or seed % 3 else "target_to_source",
        )  # fmt: skip
        nodes = (7, 5) if pair else (7, 7)
        x = torch.randn(7, 4, dtype=F64)
        x = (x, torch.randn(5, 3, dtype=F64)) if pair else x
        index = graph(*nodes, 15, twice, seed)
        attr = None if edge_dim is None else torch.randn(index.shape[1], edge_dim, dtype=F64)
        check_same(*(gradients(layer, x, index, attr, seed % 5 < 2) for layer in (ours, theirs)))
        count += 1
    assert count == 2**8


def test_features_of_edges_are_fused_and_nothing_goes_edge_by_edge(monkeypatch):
    monkeypatch.setattr(regard.torch.graph._Graph, "_along_edges", None)
    for kind in KINDS:
        theirs, ours = pair_of(kind, 4, 2, heads=2, edge_dim=3)
        x, index = torch.randn(7, 4, dtype=F64), graph(7, 7, 15, True, 1)
        attr = torch.randn(15, 3, dtype=F64)
        check_same(*(gradients(layer, x, index, attr, True) for layer in (ours, theirs)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_layer_compiles_whole_with_repeated_edges_and_loops(kind):
    cases = [({}, None, False), ({"edge_dim": 3, **({} if kind == "TransformerConv" else {"fill_value": "max"})}, 3, True)]
    if kind == "GATConv":
        cases.append((ATTENDS[kind], None, True))
    for seed, (options, edge_dim, pair) in enumerate(cases):
        torch._dynamo.reset()
        torch.manual_seed(seed)
        theirs, ours = pair_of(kind, (4, 3) if pair else 4, 2, heads=2, **options)
        x = (torch.randn(7, 4, dtype=F64), torch.randn(5, 3, dtype=F64)) if pair else torch.randn(7, 4, dtype=F64)
        index = torch.cat([graph(7, 5, 15, True, seed), torch.tensor([[1, 1, 2], [1, 1, 2]])], 1)
        attr = None if edge_dim is None else torch.randn(18, 3, dtype=F64)
        compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
        compiled.named_parameters = ours.named_parameters
        check_same(gradients(compiled, x, index, attr, False), gradients(theirs, x, index, attr, False))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sparse_adjacency_is_its_edges(kind, layout):
    for options in ({}, ATTENDS[kind]):
        theirs, ours = pair_of(kind, 4, 2, heads=2, **options)
        x, index = torch.randn(7, 4, dtype=F64), graph(7, 7, 15, False, 1)
        adjacency = torch.sparse_coo_tensor(index.flip(0), torch.rand(index.shape[1], dtype=F64), (7, 7)).coalesce()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sparse = adjacency.to_sparse(layout=layout)
        expected = theirs(x, index)
        torch.testing.assert_close(ours(x, sparse), expected)
        if layout is not torch.sparse_csc:  # which PyG refuses
            torch.testing.assert_close(theirs(x, sparse), expected)
    with pytest.raises(ValueError, match="return_attention_weights"):
        ours(x, sparse, return_attention_weights=True)
    with pytest.raises(ValueError, match="target_to_source"):
        getattr(regard.torch, kind)(4, 2, flow="target_to_source").double()(x, sparse)


@pytest.mark.parametrize("kind", KINDS)
def test_channels_that_are_not_given_are_read_from_the_first_nodes(kind):
    for widths, pair in ((-1, False), ((-1, -1), True)):
        ours = getattr(regard.torch, kind)(widths, 2, heads=2, edge_dim=-1, **ATTENDS[kind])
        theirs = getattr(geometric, kind)(widths, 2, heads=2, edge_dim=-1, **ATTENDS[kind])
        x = (torch.randn(7, 4), torch.randn(5, 3)) if pair else torch.randn(7, 4)
        index, attr = graph(7, 5, 15, True, 2), torch.randn(15, 3)
        fresh = copy.deepcopy(ours)
        first = [layer(x, index, attr) for layer in (ours, theirs)]
        assert first[0].shape == first[1].shape and list(ours.state_dict()) == list(theirs.state_dict())
        ours.load_state_dict(theirs.state_dict())
        torch.testing.assert_close(ours(x, index, attr), first[1])
        fresh.load_state_dict(theirs.state_dict())
        torch.testing.assert_close(fresh(x, index, attr), first[1])
        assert all(p.abs().max() > 0 for n, p in ours.named_parameters() if not n.endswith("bias"))


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_edges_and_features_are_refused_in_a_sentence(kind):
    x, index = torch.randn(5, 4), graph(5, 5, 7, False, 1)
    plain, featured = (getattr(regard.torch, kind)(4, 2, edge_dim=dim) for dim in (None, 3))
    for wrong, match in (
        (index.t(), r"edge_index has shape"),
        (index[0], r"edge_index has shape"),
        (index.tolist(), "edge_index is list"),
        (index.float(), "whole numbers"),
        (index + 1, "5 queries and 5 keys"),
        (index - 1, "counted from 0"),
    ):
        with pytest.raises((TypeError, ValueError), match=match):
            plain(x, wrong)
    with pytest.raises(ValueError, match="made without edge_dim"):
        plain(x, index, torch.randn(index.shape[1], 3))
    for rows in (3, index.shape[1] + 1):
        with pytest.raises(ValueError, match="a row for each of"):
            featured(x, index, torch.randn(rows, 3))


def test_dropout_of_the_graph_transformer_falls_on_the_weights():
    layer = regard.torch.TransformerConv(4, 2, heads=2, dropout=0.5, edge_dim=3)
    x, index, attr = torch.randn(7, 4), graph(7, 7, 30, True, 3), torch.randn(30, 3)
    with torch.no_grad():
        mean = torch.stack([layer(x, index, attr) for _ in range(3000)]).mean(0)
        torch.testing.assert_close(mean, layer.eval()(x, index, attr), rtol=0.1, atol=0.1)
    _, (_, alpha) = layer.train()(x, index, attr, return_attention_weights=True)
    assert (alpha == 0).any() and (layer.eval()(x, index, attr, return_attention_weights=True)[1][1] > 0).all()
