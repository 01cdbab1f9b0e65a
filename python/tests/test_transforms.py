"""Tracers, transforms and derivatives of derivatives: what is recorded or derived is the formula, or it is refused."""

import itertools
import warnings

import pytest
import torch
from reference import attention as reference
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import functional_call, grad, hessian, jacrev, jvp, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx

import regard
import regard.torch


def numbers(*shape, seed=0, requires_grad=False):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.requires_grad_(requires_grad)


def data(b=2, hq=4, hk=2, nq=5, nk=7, d=8, dv=6):
    return numbers(b, hq, nq, d, seed=1), numbers(b, hk, nk, d, seed=2), numbers(b, hk, nk, dv, seed=3)


EDGES = torch.tensor([[6, 3, 0, 1, 5, 1, 2], [0, 0, 1, 2, 4, 4, 3]])
W = numbers(8, seed=4)
CASES = {
    "plain": {},
    "causal": {"is_causal": True, "offset": 2},
    "scale": {"scale": 0.3},
    "bias": {"attn_mask": numbers(1, 4, 5, 7, seed=5), "return_aux": "weights"},
    "mask": {"attn_mask": numbers(2, 1, 5, 7, seed=6) > -0.5},
    "both": {"attn_mask": (numbers(5, 7, seed=6) > -0.5, numbers(5, 7, seed=7))},
    "distances": {
        "key_bias": numbers(2, 7, seed=8), "relative_bias": numbers(4, 5, seed=9), "alibi_slopes": numbers(4, seed=1).abs(),
        "window": (3, 2), "return_aux": "lse",
    },
    "lengths": {"key_lengths": torch.tensor([7, 0]), "return_aux": ("lse", "weights")},
    "segments": {"segments": (torch.zeros(2, 5, dtype=torch.int64), torch.tensor([[0, 0, 1, 1, 0, 0, 1]] * 2))},
    "sparsemax": {"normalizer": "sparsemax", "return_aux": "weights"},
    "entmax": {"normalizer": "entmax15"},
    "sigmoid": {"normalizer": "sigmoid"},
    "argmax": {"normalizer": "argmax", "return_aux": ("index", "log_prob")},
    "additive": {"score": regard.Additive(W)},
    "expression": {"score": regard.Expression("sum(w * tanh(q * k))", w=W)},
    "edges": {"edges": EDGES, "return_aux": "edge_weights"},
}  # fmt: skip
#: What has derivatives of any order and in forward mode.
SMOOTH = ["plain", "causal", "scale", "bias", "mask", "both", "distances", "lengths", "segments"]


def flat(x):
    return [x] if isinstance(x, torch.Tensor) else [part for y in x if y is not None for part in flat(y)]


def call_of(name):
    return lambda q, k, v: tuple(flat(regard.attention(q, k, v, **CASES[name])))


def loss_of(name):
    return lambda q, k, v: sum(x.nan_to_num(neginf=0.0).square().sum() for x in call_of(name)(q, k, v) if x.is_floating_point())


def same(found, expected, **tolerance):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b, **(tolerance or {"rtol": 1e-10, "atol": 1e-10}))


def traced(kind, call, given):
    if kind == "jit":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.jit.trace(call, given, check_trace=False)
    if kind == "pre-dispatch":
        return make_fx(call, pre_dispatch=True)(*given)
    # What the call is given besides q, k and v is a constant of the graph.
    return make_fx(call, tracing_mode=kind, _allow_non_fake_inputs=True)(*given)


@pytest.mark.parametrize("kind", ["real", "fake", "symbolic", "pre-dispatch", "jit"])
def test_a_recorded_graph_computes_what_the_call_does_for_other_numbers_and_strides(kind):
    for name in CASES:
        call, given = call_of(name), data()
        graph = traced(kind, call, given)
        others = [numbers(*x.shape, seed=11 + n) for n, x in enumerate(given)]
        same(graph(*others), call(*others))
        laid_out = [x.transpose(-1, -2).contiguous().transpose(-1, -2) for x in others]
        same(graph(*laid_out), call(*others))


def test_a_graph_of_forward_and_backward_has_the_gradients_of_the_call():
    for name in CASES:
        call = grad(loss_of(name), argnums=(0, 1, 2))
        graph = make_fx(call)(*data())
        others = [numbers(*x.shape, seed=11 + n) for n, x in enumerate(data())]
        same(graph(*others), call(*others))


def test_a_graph_that_was_recorded_for_another_type_is_refused():
    q, k, v = (x.float() for x in data())
    bias = numbers(5, 7).float()
    graph = make_fx(lambda q, k, v, bias: regard.attention(q, k, v, attn_mask=bias))(q, k, v, bias)
    with pytest.raises(TypeError, match="recorded for another type"):
        graph(q.double(), k.double(), v.double(), bias)


@pytest.mark.parametrize("kind", ["meta", "fake"])
def test_tensors_without_numbers_give_the_shapes_and_types_of_the_results(kind):
    from torch._subclasses import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    for name in CASES:
        to = mode.from_tensor if kind == "fake" else lambda x: x.to("meta")
        found = call_of(name)(*(to(x) for x in data()))
        expected = call_of(name)(*data())
        assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in expected], name


def test_a_meta_bias_for_a_real_query_is_refused_before_it_is_read():
    q, k, v = data()
    with pytest.raises(TypeError, match="attn_mask is on meta and query on cpu"):
        regard.attention(q, k, v, attn_mask=torch.zeros(5, 7, dtype=torch.float64, device="meta"))


def test_vmap_equals_a_loop_forward_and_backward_for_every_choice_of_mapped_inputs():
    count = 0
    for name, dims in itertools.product(CASES, itertools.product((0, None, 2), repeat=3)):
        if dims == (None, None, None):
            continue
        count += 1
        call, loss = call_of(name), loss_of(name)
        many = [torch.stack([x, x + 0.3, x * 0.5], d) if d is not None else x for x, d in zip(data(), dims)]
        single = [[x if d is None else x.select(d, n) for x, d in zip(many, dims)] for n in range(3)]
        expected = [torch.stack(parts) for parts in zip(*(call(*one) for one in single))]
        same(vmap(call, dims)(*many), expected)
        if count % 5 == 0:
            of = grad(loss, argnums=(0, 1, 2))
            expected = [torch.stack(parts) for parts in zip(*(of(*one) for one in single))]
            same(vmap(of, dims)(*many), expected)
    assert count == 26 * len(CASES)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_vmap_over_fewer_axes_and_over_what_is_learned(axes):
    q, k, v = data(hq=1, hk=1)
    at = {1: (0, 0, 0), 2: (0, 0), 3: (slice(None), 0)}[axes]
    many = torch.stack([q, q + 1])
    k, v = (x[at[:2]] for x in (k, v))
    found = vmap(lambda q: regard.attention(q, k, v))(many[(slice(None), *at)])
    same([found], [torch.stack([regard.attention(x, k, v) for x in many[(slice(None), *at)]])])
    w = numbers(3, 8, seed=9)
    of = grad(lambda w: regard.attention(q, q, q, score=regard.Additive(w)).square().sum())
    same([vmap(of)(w)], [torch.stack([of(x) for x in w])])


def test_vmap_draws_as_its_randomness_says():
    q, k, v = data(nq=20, nk=20)
    many = torch.stack([q, q])

    def call(q):
        return regard.attention(q, k, v, dropout_p=0.5)

    same_draws = vmap(call, randomness="same")(many)
    assert torch.equal(same_draws[0], same_draws[1])
    other_draws = vmap(call, randomness="different")(many)
    assert not torch.equal(other_draws[0], other_draws[1])
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(call)(many)


def test_torch_func_s_gradients_are_autograd_s():
    for name in CASES:
        leaves = [x.requires_grad_() for x in data()]
        expected = torch.autograd.grad(loss_of(name)(*leaves), leaves, allow_unused=True)
        found = grad(loss_of(name), argnums=(0, 1, 2))(*data())
        same(found, [torch.zeros_like(x) if g is None else g for g, x in zip(expected, leaves)])
        _, pull = vjp(loss_of(name), *data())
        same(pull(torch.ones((), dtype=torch.float64)), found)


def small():
    return data(b=2, hq=2, hk=1, nq=3, nk=4, d=3, dv=2)


SMALL = {
    "plain": {},
    "causal and scaled": {"is_causal": True, "offset": 1, "scale": 0.7},
    "masked": {"attn_mask": torch.tensor([[True, False, True, True]] * 2 + [[False] * 4])},
    "window, lengths, slopes": {"window": (2, 1), "key_lengths": torch.tensor([4, 2]), "alibi_slopes": numbers(2).abs()},
    "segments": {"segments": (torch.zeros(2, 3, dtype=torch.int64), torch.tensor([[0, 1, 0, 0]] * 2))},
}


@pytest.mark.parametrize("name", SMALL)
def test_second_derivatives_and_forward_mode_of_softmax_over_dot_products(name):
    leaves = [x.requires_grad_() for x in small()]

    def call(q, k, v):
        out, aux = regard.attention(q, k, v, **SMALL[name], return_aux=("lse", "weights"))
        return out, aux.lse.nan_to_num(neginf=0.0), aux.weights

    assert gradgradcheck(call, leaves)
    assert gradgradcheck(lambda q, k, v: regard.attention(q, k, v, **SMALL[name]), leaves)
    assert gradcheck(call, leaves, check_forward_ad=True)


def test_second_derivatives_of_what_is_learned_and_third_ones():
    q, k, v = (x.requires_grad_() for x in small())
    bias, key_bias = numbers(2, 3, 4, seed=4, requires_grad=True), numbers(2, 4, seed=5, requires_grad=True)
    table = numbers(2, 3, seed=6, requires_grad=True)

    def call(q, k, v, bias, key_bias, table):
        return regard.attention(q, k, v, attn_mask=bias, key_bias=key_bias, relative_bias=table)

    assert gradgradcheck(call, (q, k, v, bias, key_bias, table))

    def third(attend):
        (first,) = torch.autograd.grad(attend(q).sum(), q, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), q, create_graph=True)
        return torch.autograd.grad(second.square().sum(), q)

    same(third(lambda q: regard.attention(q, k, v)), third(lambda q: reference(q, k, v)[0]))


def test_the_second_derivative_is_whole_where_what_arrives_does_not_depend_on_the_inputs():
    # The sum's gradient is ones: PyTorch's own guard against a second derivative looks at that alone, and stays silent.
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-4)):
        q, k, v = (x.to(dtype).requires_grad_() for x in data())
        (mine,) = torch.autograd.grad(regard.attention(q, k, v).sum(), q, create_graph=True)
        found = torch.autograd.grad(mine.square().sum(), (q, k, v))
        wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
        (theirs,) = torch.autograd.grad(reference(*wide)[0].sum(), wide[0], create_graph=True)
        expected = torch.autograd.grad(theirs.square().sum(), wide)
        same([x.double() for x in found], expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [name for name in CASES if name not in SMOOTH])
def test_what_has_no_second_derivative_refuses_one_and_forward_mode(name):
    q, k, v = (x.requires_grad_() for x in data())
    out = regard.attention(q, k, v, **{**CASES[name], "return_aux": None})
    found = torch.autograd.grad(out.sum(), v, create_graph=True)[0]
    assert found.requires_grad
    with pytest.raises(NotImplementedError, match="no second derivative"):
        found.square().sum().backward()
    with pytest.raises(NotImplementedError, match="forward mode"):
        jvp(loss_of(name), data(), data())
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="forward mode"):
        regard.attention(forward_ad.make_dual(data()[0], data()[0]), *data()[1:], **CASES[name])
    with pytest.raises(NotImplementedError, match="no second|second one"):
        given = data()
        grad(lambda q: grad(loss_of(name))(q, *given[1:]).square().sum())(given[0])


@pytest.mark.parametrize("name", SMOOTH)
def test_torch_func_s_second_derivatives_and_tangents_are_the_formula_s(name):
    options = {k: x for k, x in CASES[name].items() if k != "return_aux"}
    renamed = {"attn_mask": "bias", "alibi_slopes": "alibi", "relative_bias": "relative"}
    theirs = {renamed.get(k, k): x for k, x in options.items()}
    for given in (theirs.get("bias"),):
        if isinstance(given, tuple):
            theirs |= {"dense": given[0], "bias": given[1]}
        elif given is not None and given.dtype is torch.bool:
            theirs |= {"dense": given, "bias": None}
    q, k, v = data()

    def mine(q, k, v):
        return regard.attention(q, k, v, **options)

    def formula(q, k, v):
        return reference(q, k, v, **theirs)[0]

    tangents = tuple(numbers(*x.shape, seed=20 + n) for n, x in enumerate((q, k, v)))
    expected = jvp(formula, (q, k, v), tangents)
    same(jvp(mine, (q, k, v), tangents), expected)
    with forward_ad.dual_level():
        out = mine(*(forward_ad.make_dual(x, t) for x, t in zip((q, k, v), tangents)))
        same([forward_ad.unpack_dual(out).tangent], [expected[1]])
    part = q[:, :, :1, :2]

    def of_part(attend):
        return lambda x: attend(torch.cat([x, q[:, :, :1, 2:]], -1), k, v).square().sum()

    if name not in ("bias", "mask", "both", "segments"):  # whose masks are for five queries
        expected = hessian(of_part(formula))(part)
        same([hessian(of_part(mine))(part), jacrev(grad(of_part(mine)))(part)], [expected, expected])


def test_torch_func_s_gradient_inside_autograd_keeps_the_outer_gradient():
    q, k, v = data()
    w = numbers(8, 8, seed=7, requires_grad=True)

    def outer(attend):
        inner = grad(lambda x: attend(x @ w, k, v).square().sum())(q)
        return torch.autograd.grad(inner.square().sum(), w)

    same(outer(regard.attention), outer(lambda *x: reference(*x)[0]))


def test_gradients_per_sample_of_a_whole_layer():
    layer = regard.torch.MultiheadAttention(8, 2, batch_first=True).double().eval()
    parameters = {name: x.detach() for name, x in layer.named_parameters()}
    x = numbers(4, 5, 8)

    def loss(parameters, x):
        return functional_call(layer, parameters, (x[None],) * 3)[0].square().sum()

    found = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
    for n in range(4):
        for name, expected in grad(loss)(parameters, x[n]).items():
            torch.testing.assert_close(found[name][n], expected)


def test_a_scale_that_learns_gets_its_gradient_everywhere():
    q, k, v = (x.requires_grad_() for x in small())
    scale = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    for options in ({}, {"score": "dot"}, {"is_causal": True, "window": 2}, {"normalizer": "sparsemax"}):
        assert gradcheck(lambda q, s, o=options: regard.attention(q, k, v, scale=s, **o), (q, scale))

    def loss(scale):
        return regard.attention(q, k, v, scale=scale).square().sum()

    (expected,) = torch.autograd.grad(loss(scale), scale)
    same([grad(loss)(scale.detach())], [expected])
    graph = make_fx(loss)(scale.detach())
    same([graph(torch.tensor(0.9, dtype=torch.float64))], [loss(0.9)])
    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    same(torch.autograd.grad(compiled(scale), scale), [expected])
    with torch.no_grad():
        assert torch.equal(regard.attention(q, k, v, scale=scale), regard.attention(q, k, v, scale=0.4))


def test_options_whose_gradient_would_be_lost_are_refused():
    q, k, v = data()
    x = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match="dropout_p requires a gradient"):
        regard.attention(q, k, v, dropout_p=x)
    with pytest.raises(ValueError, match="alibi_slopes requires a gradient"):
        regard.attention(q, k, v, alibi_slopes=x.expand(4))
    with pytest.raises(TypeError, match="torch.stack"):
        regard.attention(q, k, v, key_bias=[x] * 7)
    with pytest.raises(TypeError, match="torch.stack"):
        regard.attention(q, k, v, score=regard.Expression("t * (q @ k)", t=[x]))
    with pytest.raises((NotImplementedError, ValueError), match="alibi_slopes"):
        vmap(grad(lambda a, q: regard.attention(q, k, v, alibi_slopes=a).sum()), (None, 0))(numbers(4).abs(), q[None])
    for name in ("lse", "threshold"):
        _, aux = regard.attention(q.clone().requires_grad_(), k, v, normalizer="entmax15", return_aux=("lse", "threshold"))
        with pytest.raises(NotImplementedError, match=name):
            getattr(aux, name).sum().backward()


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
def test_graph_layers_are_recorded_and_transformed_as_they_compute(kind):
    torch.manual_seed(0)
    layer = getattr(regard.torch, kind)(4, 3, heads=2).double()
    x, index = numbers(5, 4), torch.tensor([[0, 1, 2, 0], [1, 2, 3, 1]])
    graph = make_fx(lambda x: layer(x, index))(x)
    same([graph(x + 1)], [layer(x + 1, index)])
    many = torch.stack([x, x + 1])
    same([vmap(lambda x: layer(x, index))(many)], [torch.stack([layer(x, index) for x in many])])


def test_a_flop_counter_and_other_modes_see_the_operator():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    q, k, v = data()
    with Watch():
        out = regard.attention(q, k, v)
    assert "regard.attention.default" in seen
    same([out], [regard.attention(q, k, v)])


def test_gradients_of_attention_backward_are_refused_and_it_is_not_recorded():
    q, k, v = data(hk=4)
    grad_out = numbers(2, 4, 5, 6, seed=8)

    def call(grad_out, q, k, v):
        return regard.attention_backward(grad_out, q, k, v).query

    for kind in ("real", "fake", "jit"):
        with pytest.raises(NotImplementedError, match="neither traced"):
            traced(kind, call, (grad_out, q, k, v))
    plain = call(grad_out, q, k, v)
    for position in range(4):
        given = [grad_out, q, k, v]
        given[position] = given[position].clone().requires_grad_()
        found = call(*given)
        assert torch.equal(found, plain) and found.requires_grad
        with pytest.raises(NotImplementedError, match="attention_backward has no second derivative"):
            found.sum().backward()
    w = W.clone().requires_grad_()
    assert regard.attention_backward(grad_out, q, k, v, score=regard.Additive(w)).w.requires_grad
    assert not plain.requires_grad
