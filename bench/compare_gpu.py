#!/usr/bin/env python3
"""The operator on an NVIDIA GPU beside PyTorch, in turns, timed by the GPU's own events.

    cargo build --release
    python3 bench/compare_gpu.py target/release/regard [--rounds 3] [--filter additive] [--out table.md]

The peer of each case is the fastest of what PyTorch offers for it: the formula as it is written, the same under
`torch.compile`, torch_geometric for graphs. Nothing is copied between host and device while the clock runs.
"""
import argparse
import json
import statistics
import subprocess

import torch

# The least ratio asked for, forward and backward.
BARS = {
    "additive-f32-b16n512h128": (5.0, 4.0),
    "additive-f32-b8n1024h256": (7.0, 12.0),
    "gatv2-f32-n100ke2mh8d16": (40.0, 17.0),
    "gat-f32-n100ke2mh8d16": (28.0, 10.0),
}


def median_ms(call, rounds=20):
    for _ in range(3):
        call()
    times = []
    for _ in range(rounds):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        call()
        after.record()
        torch.cuda.synchronize()
        times.append(before.elapsed_time(after))
    return statistics.median(times)


def additive(batch, length, width):
    q, k, v = (torch.randn(batch, length, width, device="cuda", requires_grad=True) for _ in range(3))
    w = torch.randn(width, device="cuda", requires_grad=True)

    def formula(q, k, v, w):
        scores = torch.tanh(q[:, :, None, :] + k[:, None, :, :]) @ w
        return scores.softmax(-1) @ v

    return [("eager", formula), ("compile", torch.compile(formula, dynamic=False))], (q, k, v, w)


def graph(name, nodes, edges, heads, width):
    from torch_geometric.nn import GATConv, GATv2Conv

    kind = GATv2Conv if name == "gatv2" else GATConv
    layer = kind(heads * width, width, heads=heads, add_self_loops=False, bias=False).cuda()
    # The projections are not attention: the operator is timed without them too.
    for part in ("lin", "lin_src", "lin_dst", "lin_l", "lin_r"):
        if getattr(layer, part, None) is not None:
            setattr(layer, part, torch.nn.Identity())
    index = torch.randint(nodes, (2, edges), device="cuda")
    x = torch.randn(nodes, heads * width, device="cuda", requires_grad=True)
    return [("torch_geometric", lambda x: layer(x, index))], (x,)


def peer(name):
    if name.startswith("additive"):
        sizes = {"additive-f32-b16n512h128": (16, 512, 128), "additive-f32-b8n1024h256": (8, 1024, 256)}
        return additive(*sizes[name])
    return graph(name.split("-")[0], 100_000, 2_000_000, 8, 16)


def peer_times(name):
    """The fastest peer's forward and backward, each with its name."""
    calls, leaves = peer(name)
    best = {}
    for label, call in calls:
        try:
            grad = torch.randn_like(call(*leaves))
            with torch.no_grad():
                forward = median_ms(lambda: call(*leaves))
            out = call(*leaves)
            backward = median_ms(lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True))
        except torch.OutOfMemoryError:
            print(f"{name}: {label} has no room", flush=True)
            continue
        for which, time in (("forward", forward), ("backward", backward)):
            if which not in best or time < best[which][0]:
                best[which] = (time, label)
        del out, grad
    torch.cuda.empty_cache()
    return best


def our_times(program, name):
    command = [program, "bench", "--device", "cuda", "--json", "--filter", name]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for line in map(json.loads, lines):
        if line["case"] == name:
            found[line["pass"]] = line["median_ms"]
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--filter", default="")
    options.add_argument("--out")
    options = options.parse_args()
    rows = ["| case | pass | Regard ms | peer ms | peer | ratio | asked |", "|---|---|---|---|---|---|---|"]
    for name, bars in BARS.items():
        if options.filter not in name:
            continue
        ours, theirs = {}, {}
        for _ in range(options.rounds):
            for which, time in our_times(options.program, name).items():
                ours.setdefault(which, []).append(time)
            for which, found in peer_times(name).items():
                theirs.setdefault(which, []).append(found)
        for which, bar in zip(("forward", "backward"), bars):
            our = statistics.median(ours[which])
            their, label = sorted(theirs[which])[len(theirs[which]) // 2]
            rows.append(f"| {name} | {which} | {our:.3f} | {their:.3f} | {label} | {their / our:.1f} | {bar:g} |")
            print(rows[-1], flush=True)
    if options.out:
        with open(options.out, "w") as file:
            file.write(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n\n" + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
