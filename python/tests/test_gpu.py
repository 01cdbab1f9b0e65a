"""Tensors on an NVIDIA GPU, beside the same on the CPU."""

import pytest

torch = pytest.importorskip("torch")

import regard
import regard.torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")

CASES = {
    "plain": {},
    "causal": {"is_causal": True},
    "window": {"window": (7, 3)},
    "lengths": {"key_lengths": [5, 33]},
    "sparsemax": {"normalizer": "sparsemax"},
    "entmax": {"normalizer": "entmax15", "is_causal": True},
    "sigmoid": {"normalizer": "sigmoid"},
    "dropout": {"dropout_p": 0.3, "seed": 5},
    "text": {"score": "q @ k / sqrt(d)"},
}


def leaves(dtype, nq=40, nk=33, d=16, device="cuda", **more):
    draw = torch.Generator().manual_seed(1)
    shapes = [(2, 4, nq, d), (2, 2, nk, d), (2, 2, nk, 24)]
    return [torch.randn(s, generator=draw).to(device=device, dtype=dtype).requires_grad_() for s in shapes]


def both(dtype, learned=(), **options):
    """Output and gradients on the GPU, and on the CPU in double precision."""
    found = []
    for device, kind in (("cuda", dtype), ("cpu", torch.float64)):
        given = [x.detach().to(device, kind).requires_grad_() for x in leaves(dtype)]
        more = {}
        extra = []
        for name, x in learned:
            x = x.to(device, torch.float32 if kind is not torch.float64 else kind).requires_grad_()
            extra.append(x)
            more[name] = regard.Additive(x) if name == "score" else x
        out = regard.attention(*given, **options, **more)
        grad = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(out)
        found.append([out, *torch.autograd.grad(out, [*given, *extra], grad)])
    return found


def close(dtype, found, truth):
    for a, b in zip(found, truth, strict=True):
        scale = b.abs().max().item() + 1e-6
        bound = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}[dtype]
        assert (a.double().cpu() - b).abs().max().item() <= bound * scale


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", CASES)
def test_output_and_gradients_are_the_cpus(name, dtype):
    close(dtype, *both(dtype, **CASES[name]))


@pytest.mark.parametrize(
    "learned",
    [
        [("score", torch.linspace(-1, 1, 16))],
        [("relative_bias", torch.linspace(-1, 1, 4 * 11).reshape(4, 11))],
        [("key_bias", torch.linspace(-1, 1, 2 * 33).reshape(2, 33))],
        [("attn_mask", torch.linspace(-1, 1, 40 * 33).reshape(40, 33))],
    ],
    ids=lambda learned: learned[0][0],
)
def test_what_is_learned_has_its_gradient(learned):
    close(torch.float32, *both(torch.float32, learned))


def test_work_is_in_the_order_of_the_current_stream():
    q, k, v = (x.detach() for x in leaves(torch.float32, nq=2048, nk=2048))
    expected = regard.attention(q * 2, k, v)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        found = regard.attention(q * 2, k, v) + 0
    torch.cuda.current_stream().wait_stream(stream)
    assert torch.equal(found, expected)


def test_tensors_of_two_devices_are_refused():
    q, k, v = leaves(torch.float32)
    with pytest.raises(TypeError, match="one device"):
        regard.attention(q, k.cpu(), v)


@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax", "sigmoid"])
def test_weights_and_their_gradient(normalizer):
    found = []
    for device, kind in (("cuda", torch.float32), ("cpu", torch.float64)):
        given = [x.detach().to(device, kind).requires_grad_() for x in leaves(torch.float32)]
        out, aux = regard.attention(*given, normalizer=normalizer, is_causal=True, return_aux="weights")
        grad = torch.linspace(-1, 1, aux.weights.numel()).reshape(aux.weights.shape).to(aux.weights)
        found.append([aux.weights, *torch.autograd.grad((aux.weights * grad).sum() + out.sum(), given)])
    close(torch.float32, *found)


@pytest.mark.parametrize("normalizer", ["argmax", "sample"])
def test_one_key_is_chosen_as_on_the_cpu(normalizer):
    found = []
    for device in ("cuda", "cpu"):
        given = [x.detach().to(device).requires_grad_() for x in leaves(torch.float32)]
        out, aux = regard.attention(*given, normalizer=normalizer, seed=3, return_aux=("index", "log_prob"))
        grads = torch.autograd.grad(out.sum() + aux.log_prob.sum(), given)
        found.append((aux.index.cpu(), [out, aux.log_prob, *grads]))
    (chosen, gpu), (expected, cpu) = found
    assert torch.equal(chosen, expected)
    close(torch.float32, gpu, [x.double() for x in cpu])


def modules():
    x, nodes = torch.randn(2, 40, 16), torch.randn(50, 16)
    edges = torch.randint(0, 50, (2, 300), generator=torch.Generator().manual_seed(2))
    yield "multihead", regard.torch.MultiheadAttention(16, 4, batch_first=True), (x, x, x)
    yield "additive", regard.torch.AdditiveAttention(16, 16, 8), (x, x)
    yield "window", regard.torch.SlidingWindowAttention(16, 4, 8), (x,)
    yield "gat", regard.torch.GATConv(16, 8, heads=4), (nodes, edges)
    yield "gatv2", regard.torch.GATv2Conv(16, 8, heads=4), (nodes, edges)


@pytest.mark.parametrize("which", range(5))
def test_a_module_moves_to_the_gpu(which):
    torch.manual_seed(1)
    _, module, given = list(modules())[which]
    found = []
    for device in ("cuda", "cpu"):
        module = module.to(device)
        module.zero_grad()
        out = module(*(x.to(device) for x in given))
        parts = list(out) if isinstance(out, tuple) else [out]
        sum(x.square().sum() for x in parts).backward()
        found.append([x.detach().double().cpu() for x in [*parts, *(p.grad for p in module.parameters() if p.grad is not None)]])
    close(torch.float32, *found)


def test_the_log_sum_exp_and_its_gradient():
    q, k, v = leaves(torch.float32)
    out, aux = regard.attention(q, k, v, return_aux="lse")
    found = torch.autograd.grad(aux.lse.sum() + out.sum(), [q, k, v])
    q, k, v = (x.detach().cpu().double().requires_grad_() for x in (q, k, v))
    out, aux = regard.attention(q, k, v, return_aux="lse")
    close(torch.float32, found, torch.autograd.grad(aux.lse.sum() + out.sum(), [q, k, v]))


def test_a_compiled_module_runs_on_a_gpu():
    q, k, v = (x.detach() for x in leaves(torch.float32))
    compiled = torch.compile(lambda q, k, v: regard.attention(q, k, v, is_causal=True), fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v), regard.attention(q, k, v, is_causal=True))
