"""What the peers' own tests check, with our kernels in place of theirs."""

import itertools
import os
import re
import subprocess
import sys

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

import regard.torch

HERE = os.path.dirname(__file__)
# Forward and gradients, as PyTorch's tests of its fused kernels on the CPU have them.
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1e-5, 1e-5),
    torch.bfloat16: (5e-2, 5e-2),
    torch.float16: (1e-2, 1e-1),
}
MASKS = ["none", "causal", "truths [Nq, Nk]", "truths [B, 1, Nq, Nk]", "numbers [Nq, Nk]", "numbers [B, H, Nq, Nk]"]
SHAPES = list(itertools.product((2,), (11, 267), (17, 267), (1, 3), (8, 16)))


def mask_of(kind, b, h, nq, nk, dtype):
    shape = {"[Nq, Nk]": (nq, nk), "[B, 1, Nq, Nk]": (b, 1, nq, nk), "[B, H, Nq, Nk]": (b, h, nq, nk)}
    if kind in ("none", "causal"):
        return None
    what, axes = kind.split(" ", 1)
    return torch.randint(0, 2, shape[axes]).bool() if what == "truths" else torch.randn(shape[axes], dtype=dtype)


@pytest.fixture
def active():
    regard.torch.activate()
    yield
    regard.torch.deactivate()


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("train", [False, True])
def test_pytorch_s_fused_attention_against_its_plain_formula(active, dtype, kind, train):
    for b, nq, nk, h, d in SHAPES:
        torch.manual_seed(0)
        # As projections give them: heads inside rows.
        made = (torch.randn(b, n, h * d, dtype=dtype, requires_grad=train) for n in (nq, nk, nk))
        q, k, v = leaves = tuple(made)
        mask = mask_of(kind, b, h, nq, nk, dtype)
        wide = [x.detach().to(torch.float64 if dtype is torch.float64 else torch.float32) for x in leaves]
        wide = [x.requires_grad_(train) for x in wide]
        results = []
        for backend, (q, k, v) in ((SDPBackend.FLASH_ATTENTION, leaves), (SDPBackend.MATH, wide)):
            q, k, v = (x.view(b, -1, h, d).transpose(1, 2) for x in (q, k, v))
            own = mask if mask is None or mask.dtype is torch.bool else mask.to(q.dtype)
            with sdpa_kernel(backend):
                results.append(sdpa(q, k, v, attn_mask=own, is_causal=kind == "causal"))
        ours, expected = results
        forward, backward = TOLERANCES[dtype]
        torch.testing.assert_close(ours.to(expected.dtype), expected, rtol=forward, atol=forward)
        if train:
            ours.sum().backward()
            expected.sum().backward()
            for mine, theirs in zip(leaves, wide):
                torch.testing.assert_close(mine.grad.to(theirs.dtype), theirs.grad, rtol=backward, atol=backward)


def test_entmax_s_own_tests_pass_with_our_functions():
    pytest.importorskip("entmax")
    wanted = "test_mask or test_mapping or test_sparsemax or test_entmax15 or test_budget"
    modules = ["entmax.test_mask", "entmax.test_topk", "entmax.test_root_finding"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "entmax_by_regard", "--pyargs", *modules]
    command += ["-k", f"({wanted}) and not grad and not alphas and not sparsemax_topk", "-p", "no:cacheprovider", "--rootdir", HERE]
    environment = {**os.environ, "PYTHONPATH": HERE + os.pathsep + os.environ.get("PYTHONPATH", "")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=HERE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 14, done.stdout
