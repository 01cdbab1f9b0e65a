"""Tensors on an NVIDIA GPU, beside the same on the CPU."""

import pytest

torch = pytest.importorskip("torch")

import regard

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


def test_what_is_not_given_is_refused_with_a_way_out():
    q, k, v = leaves(torch.float32)
    with pytest.raises(NotImplementedError, match="weights"):
        regard.attention(q, k, v, return_aux="weights")
    with pytest.raises(TypeError, match="one device"):
        regard.attention(q, k.cpu(), v)


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
