"""Tensors on an NVIDIA GPU, beside the same on the CPU."""

import pytest

torch = pytest.importorskip("torch")

import regard
import regard.torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["plain", "causal", "lengths", "sparsemax", "sigmoid", "dropout"])
def test_gradients_without_autograd_are_autograds(name, dtype):
    q, k, v = leaves(dtype)
    options = CASES[name]
    out, aux = regard.attention(q, k, v, **options, return_aux="lse")
    grad = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(out)
    expected = torch.autograd.grad(out, [q, k, v], grad)
    found = regard.attention_backward(grad, q, k, v, **options)
    for a, b in zip(found, expected):
        assert a.device == q.device
        assert torch.equal(a, b)
    if options.get("normalizer", "softmax") == "softmax":
        again = regard.attention_backward(grad, q, k, v, out=out.detach(), lse=aux.lse.detach(), **options)
        assert all(torch.equal(a, b) for a, b in zip(again, expected))


def test_what_arrives_on_another_device_is_refused():
    q, k, v = (x.detach() for x in leaves(torch.float32))
    grad = torch.ones(2, 4, 40, 24)
    with pytest.raises(TypeError, match="grad_out is on cpu, query on cuda:0"):
        regard.attention_backward(grad, q, k, v)
    with pytest.raises(TypeError, match="grad_out is on cuda:0, query on cpu"):
        regard.attention_backward(grad.cuda(), q.cpu(), k.cpu(), v.cpu())
    with pytest.raises(TypeError, match="lse is on cpu, query on cuda:0"):
        regard.attention_backward(grad.cuda(), q, k, v, out=grad.cuda(), lse=torch.ones(2, 4, 40))


@pytest.mark.parametrize(
    "option",
    [
        {"attn_mask": torch.ones(40, 33, dtype=torch.bool)},
        {"attn_mask": torch.ones(40, 33)},
        {"key_bias": torch.ones(33)},
        {"key_lengths": torch.tensor([5, 33])},
        {"alibi_slopes": torch.ones(4)},
        {"relative_bias": torch.ones(4, 11)},
        {"score": regard.Additive(torch.ones(16))},
    ],
    ids=str,
)
def test_an_option_on_the_gpu_is_refused_by_the_cpu_and_one_of_the_cpu_is_taken(option):
    def moved(x):
        return regard.Additive(x.w.cuda()) if isinstance(x, regard.Additive) else x.cuda()

    q, k, v = (x.detach() for x in leaves(torch.float32))
    on_gpu = {name: moved(x) for name, x in option.items()}
    with pytest.raises(TypeError, match="is on cuda:0 and query on cpu; they want one device"):
        regard.attention(q.cpu(), k.cpu(), v.cpu(), **on_gpu)
    assert torch.equal(regard.attention(q, k, v, **option), regard.attention(q, k, v, **on_gpu))


def test_a_learned_option_on_the_cpu_is_refused():
    q, k, v = leaves(torch.float32)
    with pytest.raises(TypeError, match="key_bias requires a gradient and is on cpu, query on cuda:0"):
        regard.attention(q, k, v, key_bias=torch.ones(33, requires_grad=True))


def graph(device, dtype=torch.float32, heads=2, width=16, nodes=50):
    draw = torch.Generator().manual_seed(4)
    edges = torch.randint(0, nodes, (2, 300), generator=draw)
    x = [torch.randn(1, heads, nodes, width, generator=draw, dtype=torch.float64) for _ in range(3)]
    w = torch.randn(heads, width, generator=draw, dtype=torch.float64)
    return [t.to(device, dtype) for t in (*x, w)], edges.to(device)


def test_the_weights_of_edges_and_their_gradient():
    found = []
    for device, dtype in (("cuda", torch.float32), ("cpu", torch.float64)):
        (q, k, v, w), edges = graph(device, dtype)
        given = [x.requires_grad_() for x in (q, k, v)]
        out, aux = regard.attention(*given, edges=edges, score=regard.Additive(w), return_aux="edge_weights")
        assert aux.edge_weights.device == q.device
        grad = torch.linspace(-1, 1, aux.edge_weights.numel()).reshape(aux.edge_weights.shape).to(q)
        found.append([aux.edge_weights, *torch.autograd.grad((aux.edge_weights * grad).sum() + out.sum(), given)])
        with_lse = {"grad_edge_weights": grad, "edges": edges, "score": regard.Additive(w)}
        found[-1] += regard.attention_backward(torch.ones_like(out), *(x.detach() for x in given), **with_lse)[:3]
    close(torch.float32, *found)


#: Rows of a graph's arrays that no load of four numbers fits: a stride, and where they begin.
LAYOUTS = [(17, 0), (18, 0), (19, 0), (20, 0), (20, 1), (20, 2), (16, 3), (24, 4)]


@pytest.mark.parametrize("width", [16, 1])
@pytest.mark.parametrize("stride, start", LAYOUTS)
@pytest.mark.parametrize("which", ["q", "k", "v", "grad"])
def test_rows_of_a_graph_may_lie_anywhere(which, stride, start, width):
    found = []
    for device, dtype in (("cuda", torch.float32), ("cpu", torch.float64)):
        (q, k, v, w), edges = graph(device, dtype)
        q, k, w = (x[..., :width].contiguous() for x in (q, k, w))
        grad = v.flip(2)
        rows = {"q": q, "k": k, "v": v, "grad": grad}
        x = rows[which]
        room = torch.zeros(x.shape[1] * x.shape[2] * stride + start, dtype=x.dtype, device=x.device)
        laid = room[start:].as_strided(x.shape, (0, x.shape[2] * stride, stride, 1), start)
        rows[which] = laid.copy_(x)
        given = [rows[name].requires_grad_() if rows[name].is_leaf else rows[name].detach().requires_grad_() for name in "qkv"]
        score = regard.Additive(w.clone().requires_grad_(), activation="leaky_relu")
        out = regard.attention(*given, edges=edges, score=score)
        found.append([out, *torch.autograd.grad(out, [*given, score.w], rows["grad"])])
    close(torch.float32, *found)


def test_more_heads_than_a_grid_has_rows():
    many = 70_000
    draw = torch.Generator("cuda").manual_seed(1)
    q, k, v = (torch.randn(many, 1, n, 16, generator=draw, device="cuda") for n in (1, 3, 3))
    some = torch.tensor([0, 1, 65_534, 65_535, 65_536, many - 1], device="cuda")
    w = torch.linspace(-1, 1, 16, device="cuda")
    for options in ({}, {"score": regard.Additive(w)}, {"key_lengths": torch.full((many,), 2)}):
        few = {**options, **({"key_lengths": torch.full((6,), 2)} if "key_lengths" in options else {})}
        for dtype in (torch.float32, torch.bfloat16):
            given = [x.to(dtype).requires_grad_() for x in (q, k, v)]
            of_few = [x.detach()[some].requires_grad_() for x in given]
            out, expected = regard.attention(*given, **options), regard.attention(*of_few, **few)
            assert torch.equal(out[some], expected)
            found = torch.autograd.grad(out.float().square().sum(), given)
            for a, b in zip(found, torch.autograd.grad(expected.float().square().sum(), of_few), strict=True):
                torch.testing.assert_close(a[some], b)


@pytest.mark.parametrize("nq", [1, 200])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_infinite_key_hides_itself_as_in_the_formula(dtype, is_causal, nq):
    draw = torch.Generator().manual_seed(2)
    q, k, v = (torch.randn(2, 2, n, 64, generator=draw) for n in (nq, 200, 200))
    q[..., 0] = 1 + q[..., 0].abs()
    k[:, :, 70, 0] = float("-inf")
    found = []
    for device, kind in (("cuda", dtype), ("cpu", torch.float64)):
        given = [x.to(device, dtype).to(kind).requires_grad_() for x in (q, k, v)]
        out, aux = regard.attention(*given, is_causal=is_causal, offset=200 - nq, return_aux="lse")
        of_q, of_k, of_v = torch.autograd.grad(out.sum() + aux.lse.sum(), given)
        # In the formula q's gradient has 0 · −∞ where the key is infinite.
        found.append([out, aux.lse, of_q[..., 1:], of_k, of_v])
    assert all(x.isfinite().all() for x in found[1])
    close(dtype, *found)


def test_an_infinite_value_reaches_the_rows_that_see_it_and_no_other():
    q, k, v = (torch.randn(1, 2, 150, 64, generator=torch.Generator().manual_seed(n)).cuda() for n in range(3))
    expected = regard.attention(q, k, v, is_causal=True)
    v[:, :, 100, 5] = float("inf")
    out = regard.attention(q, k, v, is_causal=True)
    assert out[:, :, 100:, 5].isposinf().all()
    out[:, :, 100:, 5] = expected[:, :, 100:, 5]
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("width", [16, 1])
def test_a_key_without_edges_may_hold_anything(width):
    """The lanes of a warp that have no edge look at key 0."""
    found = []
    for device, dtype in (("cuda", torch.float32), ("cpu", torch.float64)):
        (q, k, v, w), edges = graph(device, dtype)
        q, k, w = (x[..., :width].contiguous() for x in (q, k, w))
        edges = edges[:, edges[0] != 0]
        k[:, :, 0], v[:, :, 0] = float("nan"), float("inf")
        given = [x.requires_grad_() for x in (q, k, v, w)]
        out = regard.attention(*given[:3], edges=edges, score=regard.Additive(w, activation="leaky_relu"))
        found.append([out, *torch.autograd.grad(out.sum(), given)])
    assert all(x.isfinite().all() for x in found[0])
    close(torch.float32, *found)


def test_what_lies_behind_key_lengths_is_not_looked_at():
    q, k, v = (torch.randn(2, 4, n, 64, generator=torch.Generator().manual_seed(n)).bfloat16().cuda() for n in (1, 700, 701))
    v = v[:, :, :700]
    lengths = torch.tensor([300, 517])
    expected = regard.attention(q, k, v, key_lengths=lengths)
    for b, length in enumerate(lengths.tolist()):
        k[b, :, length:] = v[b, :, length:] = float("nan")
    assert torch.equal(regard.attention(q, k, v, key_lengths=lengths), expected)


def test_the_current_context_and_device_are_as_before():
    import ctypes

    driver = ctypes.CDLL("libcuda.so.1")

    def current():
        context = ctypes.c_void_p()
        assert driver.cuCtxGetCurrent(ctypes.byref(context)) == 0
        return context.value

    q, k, v = leaves(torch.float32)
    before, device = current(), torch.cuda.current_device()
    regard.attention(q, k, v).sum().backward()
    assert current() == before and torch.cuda.current_device() == device
    # A thread that has none has none afterwards.
    driver.cuCtxSetCurrent(None)
    regard.attention(q.detach(), k.detach(), v.detach())
    torch.cuda.set_device(device)
    driver.cuCtxSetCurrent(ctypes.c_void_p(before))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_call_on_another_gpu_leaves_the_current_one():
    q, k, v = (x.detach() for x in leaves(torch.float32))
    expected = regard.attention(q, k, v)
    found = regard.attention(*(x.to("cuda:1") for x in (q, k, v)))
    assert found.device == torch.device("cuda:1") and torch.cuda.current_device() == 0
    torch.testing.assert_close(found.to("cuda:0"), expected)
    assert torch.ones(1, device="cuda").device.index == 0


def captured(call):
    """What a graph of a call gives at its replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        out = call()
    recorded.replay()
    torch.cuda.synchronize()
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_plain_call_is_captured(dtype):
    q, k, v = (x.detach() for x in leaves(dtype))
    assert torch.equal(captured(lambda: regard.attention(q, k, v)), regard.attention(q, k, v))


@pytest.mark.parametrize(
    "options",
    [
        {"key_lengths": torch.tensor([5, 33])},
        {"attn_mask": torch.ones(40, 33)},
        {"attn_mask": torch.ones(40, 33).tril() > 0},
        {"score": regard.Additive(torch.linspace(-1, 1, 16, device=DEVICE))},
        {"score": regard.Expression("q @ k * t", t=torch.tensor([0.3], device=DEVICE))},
        {"score": regard.Expression("w @ tanh(q + k)", w=torch.linspace(-1, 1, 16, device=DEVICE))},
    ],
    ids=str,
)
def test_a_call_whose_options_lie_on_the_gpu_is_captured(options):
    q, k, v = (x.detach() for x in leaves(torch.float32))
    options = {name: x.cuda() if isinstance(x, torch.Tensor) else x for name, x in options.items()}
    expected = regard.attention(q, k, v, **options)
    assert torch.equal(captured(lambda: regard.attention(q, k, v, **options)), expected)


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"key_lengths": torch.tensor([5, 33])}, "key_lengths would be copied through the host"),
        ({"attn_mask": torch.ones(40, 33)}, "attn_mask would be copied through the host"),
        ({"score": regard.Additive(torch.ones(16))}, "w would be copied through the host"),
        ({"edges": torch.tensor([[1], [2]])}, "captured"),
        ({"edges": torch.tensor([[1], [2]], device=DEVICE)}, "captured"),
        ({"dropout_p": 0.5}, "every replay of it would draw the same"),
    ],
    ids=str,
)
def test_a_call_that_cannot_be_captured_is_refused_in_words(options, reason):
    q, k, v = (x.detach() for x in leaves(torch.float32))
    recorded = torch.cuda.CUDAGraph()
    said = []
    with torch.cuda.graph(recorded):
        try:
            regard.attention(q, k, v, **options)
        except (RuntimeError, ValueError) as error:
            said.append(str(error))
        q + 1
    assert reason in said[0]
    # The capture it was refused in is whole, and the GPU goes on.
    recorded.replay()
    assert regard.attention(q, k, v).isfinite().all()


@pytest.mark.parametrize("options", [{"key_lengths": torch.ones(0, dtype=torch.int64)}, {"attn_mask": torch.ones(40, 33)}], ids=str)
def test_a_batch_of_nothing_has_options_too(options):
    q, k, v = (x.detach()[:0].requires_grad_() for x in leaves(torch.float32))
    out = regard.attention(q, k, v, **{name: x.cuda() for name, x in options.items()})
    assert out.shape == (0, 4, 40, 24)
    assert all(x.numel() == 0 for x in torch.autograd.grad(out.sum(), [q, k, v]))


def test_pinned_options_may_be_written_at_once():
    q, k, v = (x.detach() for x in leaves(torch.float32, nq=2048, nk=2048))
    bias = torch.randn(2048, generator=torch.Generator().manual_seed(6))
    expected = regard.attention(q, k, v, key_bias=bias)
    for _ in range(20):
        pinned = bias.clone().pin_memory()
        torch.cuda._sleep(10_000_000)
        found = regard.attention(q, k, v, key_bias=pinned)
        pinned.fill_(float("nan"))
        assert torch.equal(found, expected)


def test_threads_that_compile_at_once_get_what_one_gets():
    from concurrent.futures import ThreadPoolExecutor

    texts = [f"-{n}.5 * sum(square(q - k)) / d" for n in range(6)]
    q, k, v = (x.detach() for x in leaves(torch.float32))
    call = lambda text: regard.attention(q, k, v, score=text)  # noqa: E731
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(call, texts * 2))
    for text, out in zip(texts * 2, found):
        assert torch.equal(out, call(text))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_ring_of_one_is_attention(dtype, is_causal):
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        found = []
        for device, kind in (("cuda", dtype), ("cpu", torch.float64)):
            q, k, v = (x.detach().to(device, kind).requires_grad_() for x in leaves(dtype, nq=33))
            out = regard.torch.ring_attention(q, k, v, is_causal=is_causal)
            assert out.device == q.device
            found.append([out, *torch.autograd.grad(out.square().sum(), [q, k, v])])
    finally:
        dist.destroy_process_group()
    close(dtype, *found)


def test_a_part_of_the_keys_has_its_gradients():
    q, k, v = (x.detach() for x in leaves(torch.float32))
    out, aux = regard.attention(q, k, v, return_aux="lse")
    grad = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(out)
    whole = regard.attention_backward(grad, q, k, v, out=out, lse=aux.lse)
    parts = [
        regard.attention_backward(grad, q, k[:, :, at], v[:, :, at], out=out, lse=aux.lse, is_part=True)
        for at in (slice(0, 10), slice(10, None))
    ]
    torch.testing.assert_close(parts[0].query + parts[1].query, whole.query, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.cat([x.key for x in parts], 2), whole.key, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.cat([x.value for x in parts], 2), whole.value, rtol=1e-4, atol=1e-5)


def test_a_forked_process_is_told_that_it_has_no_gpu():
    import multiprocessing

    q, k, v = (x.detach() for x in leaves(torch.float32))
    regard.attention(q, k, v)

    def child(said):
        try:
            regard.attention(q, k, v)
            said.put("it computed")
        except Exception as error:
            said.put(str(error))

    context = multiprocessing.get_context("fork")
    said = context.Queue()
    process = context.Process(target=child, args=(said,))
    process.start()
    answer = said.get(timeout=60)
    process.join(60)
    assert "fork" in answer


EVERYDAY = {
    "plain": {},
    "causal": {"is_causal": True},
    "lengths": {"key_lengths": torch.tensor([5, 33], device=DEVICE)},
    "a mask": {"attn_mask": torch.ones(40, 33, device=DEVICE).tril() > 0},
    "a bias": {"attn_mask": torch.ones(40, 33, device=DEVICE)},
    "segments": {"segments": (torch.arange(80, device=DEVICE).reshape(2, 40) // 9, torch.arange(66, device=DEVICE).reshape(2, 33) // 9)},
    "ALiBi": {"alibi_slopes": torch.linspace(0.1, 1, 4, device=DEVICE)},
    "by distance": {"relative_bias": torch.linspace(-1, 1, 11, device=DEVICE)[None]},
    "dropout": {"dropout_p": 0.3},
    "additive": {"score": regard.Additive(torch.linspace(-1, 1, 16, device=DEVICE))},
    "an expression": {"score": regard.Expression("q @ k * t", t=torch.tensor([0.3], device=DEVICE))},
    "weights": {"return_aux": "weights"},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", EVERYDAY)
def test_a_call_does_not_wait_for_the_gpu(name, dtype):
    q, k, v = leaves(dtype)

    def call():
        out = regard.attention(q, k, v, **EVERYDAY[name])
        out = out[0] if isinstance(out, tuple) else out
        return torch.autograd.grad(out, [q, k, v], torch.ones_like(out))

    call()
    try:
        torch.cuda.set_sync_debug_mode("error")
        call()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", [name for name in EVERYDAY if name not in ("an expression", "weights")])
def test_no_everyday_call_takes_the_generic_kernels(name):
    options = {key: x for key, x in EVERYDAY[name].items()}
    for dtype in (torch.float32, torch.bfloat16):
        if name == "additive" and dtype is torch.bfloat16:
            continue
        forms = regard.gpu_forms(*leaves(dtype), **options)
        assert "Generic" not in forms or name == "additive", (forms, dtype)
    assert regard.gpu_forms(*leaves(torch.float64)) == ("Generic", "Generic")
    with pytest.raises(TypeError, match="query is on the CPU"):
        regard.gpu_forms(*leaves(torch.float32, device="cpu"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("what", ["key", "value", "both"])
@pytest.mark.parametrize("option", ["attn_mask", "relative_bias", "key_bias"])
def test_a_bias_of_minus_infinity_hides_what_is_no_number(option, what, dtype):
    n, d = 130, 64
    draw = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(1, 2, n, d, generator=draw).to("cuda", dtype) for _ in range(3))
    # Queries see keys up to 20 ahead; the last key is no number, and so the last queries see it alone.
    distance = torch.arange(n)[None] - torch.arange(n)[:, None]
    table = torch.zeros(1, 2 * 40 + 1)
    table[0, 40 + 21 :] = float("-inf")
    bias = {
        "attn_mask": torch.zeros(n, n).masked_fill(distance > 20, float("-inf")),
        "relative_bias": table,
        "key_bias": torch.zeros(n).index_fill(0, torch.tensor([n - 1]), float("-inf")),
    }[option].cuda().requires_grad_()
    sees = torch.ones(n, n, dtype=torch.bool) if option == "key_bias" else distance <= 20
    sees = (sees if option != "key_bias" else sees.index_fill(1, torch.tensor([n - 1]), False)).cuda()
    clean = [x.clone() for x in (q, k, v)]
    if what != "value":
        k[..., n - 1, :] = float("nan")
    if what != "key":
        v[..., n - 1, :] = float("nan")
    blind = ~sees[:, n - 1]
    found = [x.requires_grad_() for x in (q, k, v)]
    out = regard.attention(*found, **{option: bias})
    exact = [x.double().requires_grad_() for x in clean]
    expected = torch.nn.functional.scaled_dot_product_attention(*exact, attn_mask=sees)
    assert int(blind.sum()) > 100
    bound = 1e-5 if dtype is torch.float32 else 3e-2
    torch.testing.assert_close(out[:, :, blind].double(), expected[:, :, blind], rtol=bound, atol=bound)
    # Gradients of what the blind queries alone have.
    grad = torch.zeros_like(out)
    grad[:, :, blind] = 1
    mine, learned = torch.autograd.grad(out, [found[0], bias], grad)
    truth = torch.autograd.grad(expected, exact[0], grad.double())[0]
    torch.testing.assert_close(mine[:, :, blind].double(), truth[:, :, blind], rtol=bound, atol=bound * float(truth.abs().max()))
    assert not learned[bias == float("-inf")].any()
    assert option != "attn_mask" or learned[blind].isfinite().all()
    assert option != "key_bias" or learned.isfinite().all()
