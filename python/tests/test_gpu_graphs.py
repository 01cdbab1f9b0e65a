"""Graphs on an NVIDIA GPU: edges that stay there, against the formula in float64."""

import gc
import random
import weakref

import pytest

torch = pytest.importorskip("torch")

import regard
import regard.torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")

#: Of what a number is rounded to; several are added up on the way.
ROUNDING = {torch.float32: 2e-6, torch.bfloat16: 1.6e-2, torch.float16: 2e-3}
SIZES = [(8, 16), (1, 7), (2, 64), (8, 32), (3, 40), (4, 8), (1, 1), (5, 3), (2, 200), (1, 256), (12, 24), (16, 4)]


def along_edges(q, k, v, w, index, slope, keep):
    """The formula edge by edge: q ``[B, H, N, D]``, keep ``[B, H, E]``."""
    source, target = index
    x = torch.nn.functional.leaky_relu(q[:, :, target] + k[:, :, source], slope)
    score = (x * (w if w.ndim == 1 else w[:, None])).sum(-1)
    top = score.new_full(q.shape[:3], float("-inf"))
    at = target.expand_as(score)
    top = top.scatter_reduce(2, at, score.detach(), "amax")
    grown = (score - top.gather(2, at)).exp()
    total = torch.zeros_like(top).scatter_add(2, at, grown)
    alpha = grown / total.gather(2, at) * keep
    out = v.new_zeros(*q.shape[:3], v.shape[-1])
    return out.index_add(2, target, alpha[..., None] * v[:, :, source]), alpha


class Drawn:
    """One graph, its tensors on the GPU, and the same for the formula."""

    def __init__(self, seed, size, dtype):
        draw, self.tensors = random.Random(seed), torch.Generator().manual_seed(seed)
        self.dtype, (self.heads, width) = dtype, size
        self.b, self.nq, self.nk = draw.choice([1, 2]), draw.choice([1, 30, 77]), draw.choice([1, 12, 90])
        d = draw.choice([width, 1])
        shapes = [(self.b, self.heads, self.nq, d), (self.b, self.heads, self.nk, d), (self.b, self.heads, self.nk, width)]
        self.leaves = [self.rows(shape, draw.random() < 0.3) for shape in shapes]
        w = torch.randn(*((self.heads, d) if draw.random() < 0.5 else (d,)), generator=self.tensors)
        self.leaves.append(w.cuda().requires_grad_())
        count = draw.choice([0, 1, 200, 900])
        self.index = torch.stack([torch.randint(n, (count,), generator=self.tensors) for n in (self.nk, self.nq)])
        if draw.random() < 0.3:
            self.index[1] = 0  # one query with all the edges
        self.slope = draw.choice([0.2, 1.0])
        self.p = draw.choice([0.0, 0.4])
        self.seed = seed

    def rows(self, shape, by_node):
        b, h, n, d = shape
        x = torch.randn(b, n, h, d, generator=self.tensors).transpose(1, 2) if by_node else torch.randn(shape, generator=self.tensors)
        return x.to("cuda", self.dtype).requires_grad_()

    def run(self, repeated):
        edges = regard.Edges(self.index.cuda(), self.nq, self.nk, repeated=repeated)
        score = regard.Additive(self.leaves[3], f"leaky_relu({self.slope})")
        options = {"edges": edges, "score": score, "dropout_p": self.p, "seed": self.seed}
        out, aux = regard.attention(*self.leaves[:3], **options, return_aux="edge_weights")
        same = regard.attention(*self.leaves[:3], **options)
        grad = torch.randn(out.shape, generator=self.tensors).to(out)
        found = [same, aux.edge_weights, *torch.autograd.grad(same, self.leaves, grad, allow_unused=True)]
        index = self.index if repeated else self.index.unique(dim=1)
        exact = [x.detach().cpu().double().requires_grad_() for x in self.leaves]
        expected, alpha = along_edges(*exact, index, self.slope, self.keep(index))
        truth = [expected, alpha if repeated else None, *torch.autograd.grad(expected, exact, grad.cpu().double(), allow_unused=True)]
        found[1] = found[1] if repeated else None
        return found, truth, [x.detach().abs().max() if x.numel() else torch.ones(()) for x in exact], grad.abs().max()

    def keep(self, index):
        """What the CPU keeps for the same seed: the n-th of equal edges is as one to a key n times all keys further."""
        if self.p == 0 or index.shape[1] == 0:
            return torch.ones(self.b, self.heads, index.shape[1]).double()
        before, keys = {}, []
        for j, i in index.t().tolist():
            before[j, i] = before.get((j, i), -1) + 1
            keys.append(j + before[j, i] * self.nk)
        keys = torch.tensor(keys)
        q, k = torch.zeros(self.b, self.heads, self.nq, 1), torch.zeros(self.b, self.heads, int(keys.max()) + 1, 1)
        _, aux = regard.attention(q, k, k, normalizer="sigmoid", dropout_p=self.p, seed=self.seed, return_aux="weights")
        return aux.weights[:, :, index[1], keys].double() * 2


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("dtype", list(ROUNDING), ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_graphs_by_chance_agree_with_the_formula(size, dtype, repeated):
    compared = 0
    for seed in range(6):
        drawn = Drawn(seed + 100 * SIZES.index(size), size, dtype)
        found, truth, largest, grad = drawn.run(repeated)
        terms = {0: 0.0, 1: 0.0, 4: 0.0}
        for n, (a, b) in enumerate(zip(found, truth)):
            if a is None or b is None or b.numel() == 0:
                continue
            scale = max(float(b.abs().max()), terms.get(n, float(grad * largest[2] * largest[3].clamp(min=1) * size[1] ** 0.5)), 1e-30)
            error = float((a.detach().double().cpu() - b.detach()).abs().max()) / scale
            assert error <= 6 * ROUNDING[dtype], f"{n} of {seed}: {error:.1e}"
            compared += 1
    assert compared >= 20


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
@pytest.mark.parametrize("options", [{"heads": 4}, {"heads": 2, "concat": False}, {"add_self_loops": False}, {"flow": "target_to_source"}], ids=str)
def test_a_layer_with_doubled_edges_gives_torch_geometric_s_results(kind, options):
    geometric = pytest.importorskip("torch_geometric.nn")
    torch.manual_seed(0)
    theirs = getattr(geometric, kind)(16, 24, **options).double()
    ours = getattr(regard.torch, kind)(16, 24, **options)
    ours.load_state_dict(theirs.state_dict())
    ours = ours.float().cuda()
    x, index = torch.randn(60, 16, dtype=torch.float64), torch.randint(60, (2, 500))
    index = torch.cat([index, index[:, :50]], 1)
    out = ours(x.float().cuda(), index.cuda())
    expected = theirs(x, index)
    torch.testing.assert_close(out.double().cpu(), expected, rtol=1e-5, atol=1e-5)
    names = [name for name, _ in theirs.named_parameters()]
    mine = torch.autograd.grad(out.square().sum(), [ours.get_parameter(n) for n in names])
    for a, b in zip(mine, torch.autograd.grad(expected.square().sum(), list(theirs.parameters()))):
        torch.testing.assert_close(a.double().cpu(), b, rtol=1e-4, atol=1e-4 * float(b.abs().max()))


def test_a_second_call_waits_for_nothing():
    layer = regard.torch.GATv2Conv(16, 8, heads=4, dropout=0.5).cuda()
    x, index = torch.randn(60, 16, device="cuda", requires_grad=True), torch.randint(60, (2, 500), device="cuda")
    layer(x, index).sum().backward()
    try:
        torch.cuda.set_sync_debug_mode("error")
        layer(x, index).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_edges_changed_in_place_are_sorted_again_and_forgotten_with_their_tensor():
    q = torch.randn(1, 2, 5, 8, device="cuda")
    index = torch.tensor([[0, 1, 2], [1, 2, 3]], device="cuda")
    first = regard.attention(q, q, q, edges=index)
    index[0, 0] = 4
    second = regard.attention(q, q, q, edges=index)
    torch.testing.assert_close(second, regard.attention(q, q, q, edges=index.clone()))
    assert not torch.equal(first[0, 0, 1], second[0, 0, 1])
    made = weakref.ref(regard.Edges.of(index, 5, 5))
    assert made() is not None
    del index
    gc.collect()
    assert made() is None


def test_prepared_edges_serve_the_cpu_and_the_gpu():
    index = torch.tensor([[3, 1, 1, 2, 1], [0, 2, 0, 0, 0]])
    x = torch.randn(1, 2, 4, 8, dtype=torch.float64)
    for repeated in (False, True):
        for edges in (regard.Edges(index, 4, repeated=repeated), regard.Edges(index.cuda(), 4, repeated=repeated)):
            assert len(edges) == (5 if repeated else 4) and edges.has_repeats == repeated
            there, at_there = regard.attention(*[x.cuda()] * 3, edges=edges, return_aux="edge_weights")
            here, at_here = regard.attention(x, x, x, edges=edges, return_aux="edge_weights")
            torch.testing.assert_close(there.cpu(), here)
            torch.testing.assert_close(at_there.edge_weights.cpu(), at_here.edge_weights)


@pytest.mark.parametrize("index, reason", [
    ([[0, 5], [1, 1]], "edge 1 joins query 1 to key 5; there are 4 queries and 4 keys"),
    ([[0], [4]], "edge 0 joins query 4 to key 0; there are 4 queries and 4 keys"),
    ([[-1], [0]], "edge 0 joins key -1 to query 0; places are counted from 0"),
])  # fmt: skip
def test_an_edge_beyond_the_graph_is_refused(index, reason):
    x = torch.randn(1, 1, 4, 8, device="cuda")
    with pytest.raises(ValueError, match=reason):
        regard.attention(x, x, x, edges=torch.tensor(index, device="cuda"))
    assert regard.attention(x, x, x).isfinite().all()


def test_a_graph_without_edges_gives_zeros():
    x = torch.randn(1, 2, 4, 8, device="cuda", requires_grad=True)
    out = regard.attention(x, x, x, edges=torch.empty(2, 0, dtype=torch.int64, device="cuda"), score=regard.Additive(torch.ones(8, device="cuda"), "leaky_relu"))
    assert not out.any()
    assert not torch.autograd.grad(out.sum(), x)[0].any()


def test_calls_along_prepared_edges_are_captured_on_any_stream():
    q = torch.randn(1, 4, 60, 16, device="cuda")
    w, index = torch.randn(16, device="cuda"), torch.randint(60, (2, 500), device="cuda")
    call = lambda: regard.attention(q, q, q, edges=index, score=regard.Additive(w, "leaky_relu"))
    expected = call()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        out = call()
    recorded.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, expected)


def test_backward_gives_the_same_bits_every_time():
    torch.manual_seed(0)
    layer = regard.torch.GATv2Conv(32, 16, heads=8).cuda()
    x, index = torch.randn(500, 32, device="cuda"), torch.randint(500, (2, 9000), device="cuda")
    given = [x.requires_grad_(), layer.att]
    first = torch.autograd.grad(layer(x, index).square().sum(), given)
    for _ in range(20):
        assert all(torch.equal(a, b) for a, b in zip(first, torch.autograd.grad(layer(x, index).square().sum(), given)))
