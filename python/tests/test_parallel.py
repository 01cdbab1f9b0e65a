"""The operator inside DDP and FSDP2: two processes equal one."""

import pytest
import torch
from processes import run

MODEL = """
import sys
import torch
import torch.distributed as dist
import regard, regard.torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = regard.torch.MultiheadAttention(32, 4, batch_first=True)
        self.additive = regard.torch.AdditiveAttention(32, 32, 16)
        self.bias = nn.Parameter(torch.zeros(4, 2 * 5 + 1))
        self.out = nn.Linear(32, 32)

    def forward(self, x):
        x = x + self.attend(x, x, x)[0]
        x = x + self.additive(x, x, x)[0]
        q = x.unflatten(-1, (4, 8)).transpose(1, 2)
        own = regard.attention(q, q, q, relative_bias=self.bias, is_causal=True, normalizer="entmax15")
        return self.out(own.transpose(1, 2).flatten(-2))

def model():
    torch.manual_seed(1)
    return nn.Sequential(Block(), Block()).double()

def data():
    generator = torch.Generator().manual_seed(2)
    return torch.randn(8, 12, 32, generator=generator, dtype=torch.float64)

def steps(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
"""

DDP = """
dist.init_process_group("gloo")
rank = dist.get_rank()
found = nn.parallel.DistributedDataParallel(model())
steps(found, data().chunk(2)[rank])
if rank == 0:
    torch.save(found.module.state_dict(), sys.argv[1])
dist.destroy_process_group()
"""

FSDP = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
found = model()
for block in found:
    fully_shard(block, mesh=mesh)
fully_shard(found, mesh=mesh)
steps(found, data().chunk(2)[dist.get_rank()])
assert all(p.to_local().numel() < p.numel() for p in found.parameters() if p.shape[0] > 1)
whole = {name: value.full_tensor() for name, value in found.state_dict().items()}
if dist.get_rank() == 0:
    torch.save(whole, sys.argv[1])
dist.destroy_process_group()
"""


@pytest.mark.parametrize("script", [DDP, FSDP], ids=["ddp", "fsdp2"])
def test_two_processes_learn_what_one_learns(script, tmp_path):
    place = tmp_path / "state.pt"
    run(MODEL + script, 2, place)
    names = {}
    exec(MODEL, names)
    one, before = names["model"](), names["model"]().state_dict()
    names["steps"](one, names["data"]())
    found = torch.load(place)
    assert found.keys() == one.state_dict().keys()
    for name, value in one.state_dict().items():
        torch.testing.assert_close(found[name], value, rtol=1e-8, atol=1e-10)
    assert any(not torch.equal(found[name], before[name]) for name in found)
