#!/usr/bin/env python3
"""The Python package beside PyTorch, entmax, torch_geometric and transformers, in turns, a process for each case.

    python3 bench/compare_python.py                     every case, as a table
    python3 bench/compare_python.py --filter gat        the cases whose name contains "gat"

Needs an environment with `regard`, torch, and, for the cases named after them, entmax, torch_geometric and
transformers. A round is one turn each, with a pause in which the other side's threads fall asleep; the ratio of a
round is the peer's time over ours, so above 1 Regard is faster; the table has the median over the rounds. A case has
a process of its own, since what earlier ones taught the allocator would make a later one faster or slower.
"""

import argparse
import copy
import importlib.util
import subprocess
import sys
import time
from statistics import median

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

import regard
import regard.torch

FORWARD, BOTH, STEP = "forward", "forward+backward", "step"


def leaves(*shapes, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]


def passes(call, inputs):
    """Forward without gradients, and forward and backward with them."""
    grad = torch.ones_like(call(*inputs))

    def forward():
        with torch.no_grad():
            call(*inputs)

    def both():
        torch.autograd.grad(call(*inputs), inputs, grad)

    return {FORWARD: forward, BOTH: both}


def dense(b, h, n, d, dtype=torch.float32, **options):
    inputs = leaves(*[(b, h, n, d)] * 3, dtype=dtype)
    ours = passes(lambda q, k, v: regard.attention(q, k, v, **options), inputs)
    return ours, passes(lambda q, k, v: sdpa(q, k, v, **options), inputs)


def behind_sdpa(b, h, n, d):
    """PyTorch's own function, with our kernels active and without."""
    inputs = leaves(*[(b, h, n, d)] * 3)

    def active(q, k, v):
        regard.torch.activate()
        return sdpa(q, k, v)

    def inactive(q, k, v):
        regard.torch.deactivate()
        return sdpa(q, k, v)

    return passes(active, inputs), passes(inactive, inputs)


def sparse(name, b, h, n, d):
    import entmax

    inputs = leaves(*[(b, h, n, d)] * 3)
    theirs = getattr(entmax, name)

    def plain(q, k, v):
        return theirs(q @ k.transpose(-1, -2) / d**0.5, dim=-1) @ v

    return passes(lambda q, k, v: regard.attention(q, k, v, normalizer=name), inputs), passes(plain, inputs)


def window(b, h, n, d, reach):
    inputs = leaves(*[(b, h, n, d)] * 3)
    distance = (torch.arange(n)[None] - torch.arange(n)[:, None]).abs()
    mask = distance <= reach
    ours = passes(lambda q, k, v: regard.attention(q, k, v, window=reach), inputs)
    return ours, passes(lambda q, k, v: sdpa(q, k, v, attn_mask=mask), inputs)


def t5_bias(b, h, n, d):
    """A learned bias for each head and pair, its gradient included."""
    inputs = leaves(*[(b, h, n, d)] * 3, (1, h, n, n))

    def eager(q, k, v, bias):
        return torch.softmax(q @ k.transpose(-1, -2) + bias, dim=-1) @ v

    return passes(lambda q, k, v, bias: regard.attention(q, k, v, attn_mask=bias, scale=1.0), inputs), passes(eager, inputs)


def gatv2(nodes, edges, features, heads, width):
    from torch_geometric.nn import GATv2Conv

    torch.manual_seed(1)
    theirs = GATv2Conv(features, width, heads=heads)
    ours = regard.torch.GATv2Conv(features, width, heads=heads)
    ours.load_state_dict(theirs.state_dict())
    index = torch.randint(nodes, (2, edges)).unique(dim=1)
    (x,) = leaves((nodes, features))
    return passes(lambda x: ours(x, index), [x]), passes(lambda x: theirs(x, index), [x])


def gpt2(length, batch):
    import transformers

    import regard.transformers

    regard.transformers.register()
    config = transformers.GPT2Config(
        vocab_size=1000, n_embd=256, n_layer=4, n_head=4, n_positions=length, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
    )
    ids = torch.randint(1000, (batch, length))

    def step(name):
        torch.manual_seed(1)
        # A model keeps what it is given, and writes there which attention it uses.
        model = transformers.GPT2LMHeadModel._from_config(copy.deepcopy(config), attn_implementation=name)
        assert model.config._attn_implementation == name
        optimizer = torch.optim.AdamW(model.parameters())

        def run():
            optimizer.zero_grad()
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()

        return {STEP: run}

    return step("regard"), step("sdpa")


# The case, how it is made, and the ratios asked for.
CASES = {
    "sdpa b2h8n1024d64": (lambda: dense(2, 8, 1024, 64), 1.25),
    "sdpa b2h8n1024d64 causal": (lambda: dense(2, 8, 1024, 64, is_causal=True), 1.25),
    "sdpa b1h8n4096d64": (lambda: dense(1, 8, 4096, 64), 1.25),
    "sdpa b32h8n128d32": (lambda: dense(32, 8, 128, 32), 1.25),
    "sdpa b2h8n1024d64 bf16": (lambda: dense(2, 8, 1024, 64, torch.bfloat16), 1.25),
    "sdpa b2h8n1024d64 behind PyTorch's function": (lambda: behind_sdpa(2, 8, 1024, 64), 1.25),
    "sparsemax b2h8n512d64": (lambda: sparse("sparsemax", 2, 8, 512, 64), 5),
    "entmax15 b2h8n512d64": (lambda: sparse("entmax15", 2, 8, 512, 64), 5),
    "window128 b1h8n4096d64": (lambda: window(1, 8, 4096, 64, 128), 10),
    "t5 bias b4h8n512d64": (lambda: t5_bias(4, 8, 512, 64), 2),
    "gatv2 n20000e400000h8d16": (lambda: gatv2(20000, 400000, 64, 8, 16), 15),
    "gpt2 step 8×256": (lambda: gpt2(256, 8), 1),
    "gpt2 step 2×1024": (lambda: gpt2(1024, 2), 1),
}
NEEDS = {"sparsemax": "entmax", "entmax15": "entmax", "gatv2": "torch_geometric", "gpt2": "transformers"}


def turn(call, seconds):
    """The median time of a call, repeated for so long."""
    call()
    times = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times)


def compare(name, options):
    make, asked = CASES[name]
    package = NEEDS.get(name.split()[0], "torch")
    if importlib.util.find_spec(package) is None:
        print(f"| {name} | needs {package} | | | | {asked} |")
        return
    ours, theirs = make()
    for which in ours:
        rounds = []
        for _ in range(options.rounds):
            pair = []
            for side in (ours, theirs):
                time.sleep(0.05)
                pair.append(turn(side[which], options.seconds))
            rounds.append(pair)
        mine, peer = (median(pair[side] for pair in rounds) * 1e3 for side in (0, 1))
        ratio = median(b / a for a, b in rounds)
        print(f"| {name} | {which} | {mine:.2f} | {peer:.2f} | {ratio:.2f} | {asked} |", flush=True)
    regard.torch.deactivate()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--filter", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="how long a turn takes")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--case", help="the rows of this case alone, in this process")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.case is not None:
        return compare(options.case, options)
    print(f"{regard.instruction_set()}, {options.threads} threads, torch {torch.__version__}\n")
    print("| case | pass | ours, ms | peer, ms | peer / ours | asked |\n|---|---|---|---|---|---|", flush=True)
    for name in CASES:
        if options.filter in name:
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--case", name], check=True)


if __name__ == "__main__":
    main()
