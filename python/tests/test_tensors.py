"""The operator on PyTorch tensors: forward, autograd, compile, export, autocast."""

import inspect

import numpy as np
import pytest
import torch
from reference import attention as reference

import regard

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def data(b=2, hq=4, hk=2, nq=5, nk=7, d=8, dv=6, dtype=torch.float64, grad=False):
    generator = torch.Generator().manual_seed(3)
    shapes = ((b, hq, nq, d), (b, hk, nk, d), (b, hk, nk, dv))
    return tuple(
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_(grad) for shape in shapes
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_forward_and_backward(dtype):
    q, k, v = data(dtype=dtype, grad=True)
    out = regard.attention(q, k, v, is_causal=True, offset=2)
    assert out.dtype == dtype
    wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
    expected, _, _ = reference(*wide, is_causal=True, offset=2)
    tolerance = 16 * torch.finfo(dtype).eps
    torch.testing.assert_close(out.double(), expected, rtol=tolerance, atol=tolerance)
    grads = torch.autograd.grad(out.sum(), (q, k, v))
    for mine, theirs in zip(grads, torch.autograd.grad(expected.sum(), wide)):
        assert mine.dtype == dtype
        torch.testing.assert_close(mine.double(), theirs, rtol=tolerance, atol=tolerance)


def test_shared_arguments_mean_what_they_mean_in_pytorch():
    sdpa = torch.nn.functional.scaled_dot_product_attention
    q, k, v = data(hk=4, dtype=torch.float64)
    bias = torch.randn(4, 5, 7, dtype=torch.float64)
    for options in (
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": bias},
        {"attn_mask": bias > 0},
        {"attn_mask": bias[0] > 0},
    ):
        torch.testing.assert_close(regard.attention(q, k, v, **options), sdpa(q, k, v, **options))


def test_the_signature_begins_as_pytorch_s_and_takes_its_positional_arguments():
    sdpa = torch.nn.functional.scaled_dot_product_attention
    q, k, v = data(nq=7)
    mask = torch.randn(7, 7, dtype=torch.float64)
    for arguments in ((mask,), (mask > 0, 0.0), (None, 0.0, True)):
        for options in ({"enable_gqa": True}, {"scale": 0.3, "enable_gqa": True}):
            torch.testing.assert_close(regard.attention(q, k, v, *arguments, **options), sdpa(q, k, v, *arguments, **options))
    names = list(inspect.signature(regard.attention).parameters)[:8]
    assert names == ["query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"]


def test_results_lie_in_memory_as_the_query_does():
    q, k, v = data(hk=4)
    split = q.transpose(1, 2).contiguous().transpose(1, 2)
    out = regard.attention(split, k, v)
    assert out.transpose(1, 2).is_contiguous()
    torch.testing.assert_close(out, regard.attention(q, k, v), rtol=0, atol=0)
    split.requires_grad_()
    (grad,) = torch.autograd.grad(regard.attention(split, k, v).sum(), split)
    assert grad.transpose(1, 2).is_contiguous()


@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax", "entmax15", "sigmoid", "none"])
def test_gradcheck_of_q_k_v_and_every_learned_bias(normalizer):
    q, k, v = data(b=1, hq=2, hk=1, nq=3, nk=4, d=3, dv=2, grad=True)
    bias = torch.randn(2, 1, 4, dtype=torch.float64, requires_grad=True)
    key_bias = torch.randn(1, 4, dtype=torch.float64, requires_grad=True)
    table = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)

    def call(q, k, v, bias, key_bias, table):
        out, aux = regard.attention(
            q, k, v, attn_mask=bias, key_bias=key_bias, relative_bias=table, normalizer=normalizer, return_aux="weights"
        )
        return out, aux.weights

    assert torch.autograd.gradcheck(call, (q, k, v, bias, key_bias, table))


def test_gradcheck_of_w_parameters_lse_and_edges():
    q, k, v = data(b=1, hq=2, hk=1, nq=3, nk=4, d=3, dv=2, grad=True)
    w = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    tau = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([[3, 1, 0, 2, 2], [0, 0, 1, 2, 1]])

    def additive(q, k, v, w):
        out, aux = regard.attention(q, k, v, score=regard.Additive(w), edges=index, return_aux=("lse", "edge_weights"))
        return out, aux.lse, aux.edge_weights

    def written(q, k, v, w, tau):
        score = regard.Expression("tau * sum(w * tanh(q * k))", w=w, tau=tau)
        out, aux = regard.attention(q, k, v, score=score, return_aux="lse")
        return out, aux.lse

    assert torch.autograd.gradcheck(additive, (q, k, v, w))
    assert torch.autograd.gradcheck(written, (q, k, v, w, tau))


def test_gradcheck_of_sparsemax_entmax_and_merged_parts():
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(regard.sparsemax, (x,))
    assert torch.autograd.gradcheck(lambda x: regard.entmax15(x, 0), (x,))
    q, k, v = data(b=1, hq=1, hk=1, nq=3, nk=4, d=3, dv=2, grad=True)

    def merged(q, k, v):
        parts = [
            regard.attention(q, k[:, :, a:b], v[:, :, a:b], is_causal=True, offset=-a, return_aux="lse")
            for a, b in [(0, 1), (1, 4)]
        ]
        return regard.merge_attentions([out for out, _ in parts], [aux.lse for _, aux in parts])[0]

    assert torch.autograd.gradcheck(merged, (q, k, v))
    torch.testing.assert_close(merged(q, k, v), regard.attention(q, k, v, is_causal=True))


def test_only_what_requires_a_gradient_gets_one():
    q, k, v = data()
    bias = torch.zeros(7, dtype=torch.float64, requires_grad=True)
    out = regard.attention(q, k, v, attn_mask=bias)
    (grad,) = torch.autograd.grad(out.square().sum(), bias)
    assert grad.shape == (7,) and grad.abs().sum() > 0
    k.requires_grad_()
    regard.attention(q, k, v).sum().backward()
    assert k.grad is not None and q.grad is None and v.grad is None
    with torch.no_grad():
        assert not regard.attention(q, k, v).requires_grad


def test_an_expanded_bias_sends_its_gradient_back_whole():
    q, k, v = data()
    bias = torch.randn(1, 1, 5, 7, dtype=torch.float64, requires_grad=True)
    out = regard.attention(q, k, v, attn_mask=bias.expand(2, 4, 5, 7))
    other = bias.detach().clone().requires_grad_()
    expected, _, _ = reference(q, k, v, bias=other)
    torch.testing.assert_close(
        torch.autograd.grad(out.square().sum(), bias), torch.autograd.grad(expected.square().sum(), other)
    )


def test_a_change_in_place_before_backward_is_noticed():
    q, k, v = data(grad=True)
    mask = torch.ones(5, 7, dtype=torch.bool)
    out = regard.attention(q, k, v, attn_mask=mask)
    mask[0] = False
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_manual_seed_repeats_dropout_and_sampling():
    q, k, v = data(nq=30, nk=30)
    for options in ({"dropout_p": 0.3}, {"normalizer": "sample"}):
        torch.manual_seed(5)
        first = regard.attention(q, k, v, **options)
        second = regard.attention(q, k, v, **options)
        torch.manual_seed(5)
        assert torch.equal(regard.attention(q, k, v, **options), first)
        assert not torch.equal(second, first)


def test_autocast_computes_in_its_type():
    q, k, v = data(dtype=torch.float32, grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = regard.attention(q, k, v, attn_mask=torch.zeros(7))
        plain = regard.attention(q, k, v)
        double = regard.attention(q.double(), k.double(), v.double())
    assert out.dtype == plain.dtype == torch.bfloat16 and double.dtype == torch.float64
    out.sum().backward()
    assert q.grad.dtype == torch.float32
    expected = regard.attention(q.bfloat16(), k.bfloat16(), v.bfloat16())
    assert torch.equal(plain, expected)


def test_inference_mode_and_views_with_a_noted_sign():
    q, k, v = data()
    edges = torch.tensor([[0, 1], [1, 0]])
    with torch.inference_mode():
        inside = regard.attention(q + 0, k + 0, v + 0, edges=edges + 0)
    assert torch.equal(inside, regard.attention(q, k, v, edges=edges))
    imaginary = torch.complex(torch.zeros_like(q), q).conj().imag
    assert imaginary.is_neg()
    assert torch.equal(regard.attention(imaginary, k, v), regard.attention(-q, k, v))


def test_numpy_and_torch_give_the_same_bits():
    q, k, v = data(dtype=torch.float32)
    out = regard.attention(q.numpy(), k.numpy(), v.numpy(), normalizer="entmax15", is_causal=True)
    np.testing.assert_array_equal(out, regard.attention(q, k, v, normalizer="entmax15", is_causal=True).numpy())


EDGES = torch.tensor([[6, 3, 0, 1, 5, 1, 2], [0, 0, 1, 2, 4, 4, 3]])
CASES = {
    "plain": {},
    "causal": {"is_causal": True, "offset": 2},
    "everything": {
        "attn_mask": torch.randn(1, 4, 5, 7, dtype=torch.float64),
        "key_bias": torch.randn(2, 7, dtype=torch.float64),
        "relative_bias": torch.randn(4, 5, dtype=torch.float64),
        "alibi_slopes": torch.rand(4, dtype=torch.float64),
        "window": (3, 2),
        "key_lengths": torch.tensor([7, 4]),
        "segments": (torch.zeros(2, 5, dtype=torch.int64), torch.zeros(2, 7, dtype=torch.int64)),
        "return_aux": ("weights", "lse"),
    },
    "mask": {"attn_mask": torch.rand(2, 1, 5, 7) > 0.3},
    "additive": {"score": "w", "normalizer": "sparsemax", "return_aux": "weights"},
    "expression": {"score": "text", "normalizer": "entmax15"},
    "edges": {"edges": EDGES, "return_aux": "edge_weights"},
    "prepared edges": {"edges": regard.Edges(EDGES, 5, 7)},
    "argmax": {"normalizer": "argmax", "return_aux": ("index", "log_prob")},
}


def flat(x):
    if isinstance(x, torch.Tensor):
        return [x]
    return [part for y in x if y is not None for part in flat(y)]


def call_of(options):
    options = dict(options)
    score = options.pop("score", None)

    def call(q, k, v, w):
        if score == "w":
            return regard.attention(q, k, v, score=regard.Additive(w), **options)
        if score == "text":
            return regard.attention(q, k, v, score=regard.Expression("sum(w * tanh(q * k))", w=w), **options)
        return regard.attention(q, k, v, **options)

    return call


@pytest.mark.parametrize("name", CASES)
def test_compiled_whole_it_gives_the_same_forward_and_backward(name):
    call = call_of(CASES[name])
    q, k, v = data(grad=True)
    w = torch.randn(8, dtype=torch.float64, requires_grad=True)
    eager = flat(call(q, k, v, w))
    compiled = flat(torch.compile(call, fullgraph=True, backend="aot_eager")(q, k, v, w))
    inputs = [x for x in (q, k, v, w) if x is not w or "score" in CASES[name]]

    def gradients(results):
        loss = sum((x * (x.detach() + 1)).sum() for x in results if x.requires_grad)
        return torch.autograd.grad(loss, inputs, allow_unused=True)

    assert len(eager) == len(compiled)
    for a, b in zip(eager, compiled):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    for a, b in zip(gradients(eager), gradients(compiled)):
        if a is None or b is None:
            assert a is None or a.abs().sum() == 0
            assert b is None or b.abs().sum() == 0
        else:
            torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.slow
def test_compiled_by_inductor_it_gives_the_same():
    def call(q, k, v, bias):
        return (regard.attention(q * 2, k, v, attn_mask=bias, is_causal=True).transpose(1, 2) + 1).sum(-1)

    inputs = [*data(dtype=torch.float32, grad=True), torch.randn(4, 5, 7, requires_grad=True)]
    compiled, eager = torch.compile(call, fullgraph=True)(*inputs), call(*inputs)
    torch.testing.assert_close(compiled, eager)
    for a, b in zip(*(torch.autograd.grad(x.square().sum(), inputs) for x in (compiled, eager))):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_compiled_dropout_draws_afresh_and_is_repeated_by_the_seed():
    q, k, v = data(nq=30, nk=30)
    compiled = torch.compile(lambda q, k, v: regard.attention(q, k, v, dropout_p=0.5), fullgraph=True, backend="aot_eager")
    torch.manual_seed(1)
    first, second = compiled(q, k, v), compiled(q, k, v)
    torch.manual_seed(1)
    assert torch.equal(compiled(q, k, v), first) and not torch.equal(first, second)


def test_compiled_under_autocast_and_for_other_lengths():
    call = torch.compile(lambda q, k, v: regard.attention(q, k, v, is_causal=True), fullgraph=True, backend="aot_eager")
    for n in (5, 6, 9):
        q, k, v = data(nq=n, nk=n, dtype=torch.float32)
        assert torch.equal(call(q, k, v), regard.attention(q, k, v, is_causal=True))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert call(q, k, v).dtype == torch.bfloat16


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(8, dtype=torch.float64))

    def forward(self, q, k, v):
        return regard.attention(q, k, v, score=regard.Additive(self.w), window=2)


def test_exported_it_gives_the_same():
    q, k, v = data()
    block = Block()
    program = torch.export.export(block, (q, k, v))
    assert torch.equal(program.module()(q, k, v), block(q, k, v))
    assert "regard.attention" in str(program.graph)


@pytest.mark.parametrize("name", ["plain", "everything", "additive", "expression", "edges", "argmax"])
def test_opcheck_of_the_custom_ops(name):
    import regard._compiled as compiled

    options = dict(CASES[name])
    score = options.pop("score", None)
    q, k, v = data(grad=True)
    w = torch.randn(8, dtype=torch.float64, requires_grad=True)
    if score == "w":
        options["score"] = regard.Additive(w)
    elif score == "text":
        options["score"] = regard.Expression("sum(w * tanh(q * k))", w=w)
    seen = []
    real = compiled._forward_op
    compiled._forward_op = lambda *arguments: seen.append(arguments) or real(*arguments)
    try:
        return_aux = options.pop("return_aux", None)
        compiled.attention(q, k, v, regard._arguments.Options(**options), return_aux)
    finally:
        compiled._forward_op = real
    torch.library.opcheck(real, seen[0])


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_calls_on_the_cpu_are_served_where_new_tensors_go_elsewhere(device):
    q, k, v = (torch.randn(2, 4, n, 8, dtype=torch.float64, requires_grad=True) for n in (5, 7, 7))
    options = [
        {"dropout_p": 0.5, "seed": 3}, {"normalizer": "sparsemax", "return_aux": "weights"}, {"key_bias": [0.5] * 7},
        {"key_lengths": [7, 4], "segments": ([0] * 5, [0] * 7)}, {"score": regard.Additive([0.5] * 8)},
        {"normalizer": "argmax"}, {"edges": [[0, 1], [1, 2]]},
    ]  # fmt: skip

    def results(one):
        found = regard.attention(q, k, v, **one)
        out = found[0] if isinstance(found, tuple) else found
        return out, *torch.autograd.grad(out, (q, k, v), torch.ones(out.shape, dtype=out.dtype, device="cpu"))

    for one in options:
        expected = results(one)
        with torch.device(device):
            regard.attention(q, k, v, dropout_p=0.5)
            found = results(one)
        for a, b in zip(found, expected):
            assert torch.equal(a, b), one
