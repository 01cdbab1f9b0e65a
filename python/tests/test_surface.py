"""What a session shows of the package: names, representations, types, costs that PyTorch's own tools count."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode

import regard
import regard.torch


def test_dir_lists_what_is_public_and_what_is_imported_when_it_is_asked_for():
    assert {*regard.__all__, "torch", "transformers", "ray"} <= set(dir(regard))


SHOWN = [
    (regard.torch.MultiheadAttention(8, 2, normalizer="sparsemax", window=(2, 0)), "8, 2, normalizer='sparsemax', window=(2, 0)"),
    (regard.torch.MultiheadAttention(8, 2, dropout=0.1, batch_first=True), "8, 2, dropout=0.1, batch_first=True"),
    (regard.torch.SlidingWindowAttention(8, 2, window=3), "window=3"),
    (regard.torch.GATConv(8, 4, heads=2, dropout=0.5, edge_dim=3), "GATConv(8, 4, heads=2, dropout=0.5, edge_dim=3)"),
    (regard.torch.GATv2Conv((8, 6), 4, concat=False, share_weights=True), "GATv2Conv((8, 6), 4, heads=1, concat=False, share_weights=True)"),
    (regard.torch.GATConv(8, 4, flow="target_to_source"), "flow='target_to_source'"),
    (regard.torch.EntmaxBisect(1.3), "alpha=1.3, dim=-1"),
    (regard.torch.SparsemaxLoss(reduction="sum"), "ignore_index=-100, reduction='sum'"),
    (regard.Expression("c * (q @ k) + sum(w * q)", c=2.0, w=torch.zeros(8)), "c=2.0, w=float32[8]"),
    (regard.Expression("c * (q @ k)", c=np.float64(0.5)), "c=0.5"),
    (regard.Additive([1.0, 2.0]), "Additive([1.0, 2.0], 'tanh')"),
    (regard.Additive(np.ones((4, 8)), "relu"), "Additive(float64[4, 8], 'relu')"),
]  # fmt: skip


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case[1])
def test_what_was_chosen_is_shown(case):
    assert case[1] in repr(case[0])


def test_importing_without_pytorch_is_quick():
    code = (
        "import time, sys, numpy; start = time.process_time(); import regard; print(time.process_time() - start); "
        "assert not {'torch', 'transformers', 'ray', 'pandas'} & set(sys.modules)"
    )
    found = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    print(f"import regard: {1000 * min(found):.0f} ms beside NumPy's")
    assert min(found) < 0.15


def test_pytorch_s_counter_counts_attention_as_its_own():
    q, k, v = (torch.randn(2, 4, n, d, requires_grad=True) for n, d in ((5, 8), (7, 8), (7, 6)))
    counted = []
    for options in ({}, {"normalizer": "sparsemax"}):
        with FlopCounterMode(display=False) as counter:
            regard.attention(q, k, v, **options).sum().backward()
        counted.append(counter.get_total_flops())
    forward, backward = 2 * 8 * 5 * 7 * (8 + 6), 2 * 8 * 5 * 7 * (3 * 8 + 2 * 6)
    assert counted == [forward + backward] * 2
    edges = torch.tensor([[0, 1, 6], [0, 1, 4]])
    with FlopCounterMode(display=False) as counter:
        regard.attention(q, k, v, edges=edges)
    assert counter.get_total_flops() == 2 * 8 * 3 * (8 + 6)


def test_selective_checkpointing_saves_attention_and_does_not_compute_it_again():
    op, calls = torch.ops.regard.attention.default, []
    q, k, v = (torch.randn(2, 4, 5, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))

    def call(q, k, v):
        return regard.attention(q.sin(), k, v, is_causal=True)

    def policy(context, what, *arguments, **options):
        if what is op:
            calls.append(context.is_recompute)
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE

    out = checkpoint(call, q, k, v, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy))
    found = torch.autograd.grad(out.square().sum(), (q, k, v))
    for a, b in zip(found, torch.autograd.grad(call(q, k, v).square().sum(), (q, k, v))):
        torch.testing.assert_close(a, b)
    assert calls.count(False) == 1


class Tracer:
    """As JAX's is named."""

    __module__ = "jax._src.core"
    ndim, shape = 2, (3, 3)


class Array:
    """As JAX's arrays are read."""

    def __init__(self, x):
        self.x, self.shape, self.ndim = x, x.shape, x.ndim

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __array__(self, dtype=None, copy=None):
        return self.x


def foreign_calls(array):
    """Calls with arrays of another framework, and with NumPy's."""
    random = np.random.default_rng(0)
    q, k, v = (random.normal(size=(2, 4, n, 8)).astype(np.float32) for n in (5, 7, 7))
    mask, bias = random.normal(size=(5, 7)) > -1, random.normal(size=(4, 5, 7)).astype(np.float32)
    w, sinks = random.normal(size=8).astype(np.float32), random.normal(size=4).astype(np.float32)
    for options in (
        lambda f: {"attn_mask": f(mask)},
        lambda f: {"attn_mask": (f(mask), f(bias))},
        lambda f: {"key_bias": f(bias[0, 0]), "key_lengths": f(np.array([7, 3], np.int32))},
        lambda f: {"segments": (f(np.arange(5) % 2), f(np.arange(7) % 2))},
        lambda f: {"score": regard.Additive(f(w))},
        lambda f: {"score": regard.Expression("sum(w * q * k)", w=f(w))},
        lambda f: {"edges": f(np.array([[0, 3, 1], [0, 1, 2]]))},
        lambda f: {"sinks": f(sinks), "softcap": 2.0, "layout": "bhnd"},
    ):
        ours = regard.attention(*(array(x) for x in (q, k, v)), **options(array))
        yield ours, regard.attention(q, k, v, **options(lambda x: x))


def test_arrays_of_another_framework_may_be_everything_that_is_given():
    count = 0
    for ours, plain in foreign_calls(Array):
        np.testing.assert_array_equal(ours, plain)
        count += 1
    assert count == 8


def test_a_tracer_of_jax_is_refused_with_the_way_out():
    x = np.eye(3)
    for given in ((Tracer(), x, x), (Array(x), Tracer(), x)):
        with pytest.raises(TypeError, match="jax.pure_callback"):
            regard.attention(*given)
    with pytest.raises(TypeError, match="attn_mask is a tracer"):
        regard.attention(Array(x), Array(x), Array(x), attn_mask=Tracer())


def test_jax_s_own_arrays_are_read_and_its_tracers_refused():
    jax = pytest.importorskip("jax")
    for ours, plain in foreign_calls(jax.numpy.asarray):
        np.testing.assert_allclose(ours, plain, rtol=1e-6, atol=1e-6)
    x = jax.numpy.eye(3)
    half = regard.attention(*[x.astype("bfloat16")] * 3)
    assert half.dtype.name == "bfloat16"
    for wrapped in (jax.jit, jax.vmap, lambda f: jax.grad(lambda y: f(y).sum())):
        with pytest.raises(TypeError, match="tracer of JAX's"):
            wrapped(lambda y: regard.attention(y, y, y))(x[None] if wrapped is jax.vmap else x)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = jax.jit(lambda y: jax.pure_callback(lambda z: regard.attention(*[np.asarray(z)] * 3), shape, y))
    np.testing.assert_allclose(call(x), regard.attention(*[np.eye(3, dtype=np.float32)] * 3), rtol=1e-6)


@pytest.mark.slow
def test_types_of_results_are_those_of_what_is_given(tmp_path):
    pytest.importorskip("mypy")
    file = tmp_path / "call.py"
    file.write_text(
        "import numpy as np, torch, regard\nx = np.eye(3)\nt = torch.eye(3)\n"
        "reveal_type(regard.attention(x, x, x))\nreveal_type(regard.attention(t, t, t, is_causal=True))\n"
        "reveal_type(regard.attention(x, x, x, return_aux='lse')[1])\nreveal_type(regard.attention(t, t, t, return_aux=('lse',))[0])\n"
    )
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    found = [line.split("Revealed type is ")[1] for line in done.stdout.splitlines() if "Revealed" in line]
    for told, said in zip(found, ("numpy.ndarray", "torch._tensor.Tensor", "Aux", "torch._tensor.Tensor"), strict=True):
        assert said in told
