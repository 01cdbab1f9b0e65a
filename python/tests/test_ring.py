"""Ring attention over processes: equal to one process."""

import os

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.functional import scaled_dot_product_attention as sdpa

import regard.torch

N = 6


def whole(world, dtype):
    generator = torch.Generator().manual_seed(4)
    shapes = ((2, 4, N * world, 8), (2, 2, N * world, 8), (2, 2, N * world, 5), (2, 4, N * world, 5))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


CASES = [(is_causal, dtype) for is_causal in (False, True) for dtype in (torch.float64, torch.bfloat16)]


def on_rank(rank, world, port, found):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    for case, (is_causal, dtype) in enumerate(CASES):
        q, k, v, grad = (x.chunk(world, dim=2)[rank] for x in whole(world, dtype))
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        out = regard.torch.ring_attention(*leaves, is_causal=is_causal)
        grads = torch.autograd.grad(out, leaves, grad)
        torch.save([x.detach().clone() for x in (out, *grads)], f"{found}/{case}-{rank}.pt")
    dist.destroy_process_group()


def free_port():
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize("world", [2, 3])
def test_processes_in_a_ring_equal_one_process(world, tmp_path):
    mp.spawn(on_rank, (world, free_port(), str(tmp_path)), nprocs=world)
    for case, (is_causal, dtype) in enumerate(CASES):
        found = [torch.load(tmp_path / f"{case}-{rank}.pt") for rank in range(world)]
        parts = [torch.cat([found[rank][n] for rank in range(world)], dim=2) for n in range(4)]
        q, k, v, grad = whole(world, dtype)
        leaves = [x.double().requires_grad_() for x in (q, k, v)]
        expected = sdpa(*leaves, is_causal=is_causal, enable_gqa=True)
        grads = torch.autograd.grad(expected, leaves, grad.double())
        tolerance = 1e-10 if dtype is torch.float64 else 4e-2
        for mine, theirs in zip(parts, (expected, *grads)):
            assert mine.dtype == dtype
            torch.testing.assert_close(mine.double(), theirs, rtol=tolerance, atol=tolerance)
