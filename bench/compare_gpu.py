#!/usr/bin/env python3
"""The operator on an NVIDIA GPU beside PyTorch, in turns, timed by the GPU's own events.

    cargo build --release
    python3 bench/compare_gpu.py target/release/regard [--rounds 3] [--filter additive] [--out table.md]

The peer of each case is the fastest of what PyTorch offers for it: the formula as it is written, the same under
`torch.compile`, cuDNN, FlashAttention-2 and Flex for dot products, torch_geometric for graphs. Nothing is copied between host and device while the clock runs.
"""
import argparse
import json
import statistics
import subprocess

import torch
import torch.nn.functional as F

# The least ratio asked for, forward and backward.
BARS = {
    "dot-bf16-b4h16n8192d128": (0.85, 0.65),
    "causal-bf16-b4h16n8192d128": (0.85, 0.65),
    "dot-bf16-b4h16n8192d64": (0.9, 0.65),
    "causal-bf16-b4h16n8192d64": (0.9, 0.65),
    "window-bf16-b4h16n8192d128": (2.0, 1.5),
    "dot-f32-b4h8n4096d64": (1.5, 1.2),
    "entmax-bf16-b4h8n4096d64": (1.3, 1.3),
    "t5-bf16-b8h12n2048d64": (1.5, 2.0),
    "decode-bf16-b8h32k8n8192d128": (0.95,),
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


def leaves_of(batch, heads, keys_heads, queries, keys, width, kind):
    def normal(h, n):
        return torch.randn(batch, h, n, width, device="cuda", dtype=kind, requires_grad=True)

    return normal(heads, queries), normal(keys_heads, keys), normal(keys_heads, keys)


def with_backend(backend, **options):
    from torch.nn.attention import sdpa_kernel

    def call(q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, **options)

    return call


def flex(length, mask=None, score=None):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    compiled = torch.compile(flex_attention, dynamic=False)
    blocks = create_block_mask(mask, None, None, length, length) if mask else None
    return lambda q, k, v: compiled(q, k, v, block_mask=blocks, score_mod=score)


def dot(causal, leaves):
    from torch.nn.attention import SDPBackend

    length = leaves[0].shape[2]
    mask = (lambda b, h, i, j: i >= j) if causal else None
    return [
        ("cuDNN", with_backend(SDPBackend.CUDNN_ATTENTION, is_causal=causal)),
        ("FlashAttention-2", with_backend(SDPBackend.FLASH_ATTENTION, is_causal=causal)),
        ("Flex", flex(length, mask)),
    ], leaves


def dot_f32(leaves):
    from torch.nn.attention import SDPBackend

    def formula(q, k, v):
        return (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1) @ v

    return [
        ("mem-efficient", with_backend(SDPBackend.EFFICIENT_ATTENTION)),
        ("formula", formula),
        ("compile", torch.compile(formula, dynamic=False)),
    ], leaves


def entmax(leaves):
    """α = 1.5 by halving the threshold's range, as AdaSplash's reference does: what compiles into few kernels."""

    def weights(z):
        top = z.amax(-1, keepdim=True)
        low, high = top - 1, top
        for _ in range(24):
            middle = (low + high) / 2
            above = ((z - middle).clamp(min=0) ** 2).sum(-1, keepdim=True) >= 1
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        p = (z - low).clamp(min=0) ** 2
        return p / p.sum(-1, keepdim=True)

    class Entmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, scores):
            p = weights(scores.float() / 2)
            ctx.save_for_backward(p)
            return p.to(scores.dtype)

        @staticmethod
        def backward(ctx, grad):
            slope = ctx.saved_tensors[0].sqrt()
            mean = (slope * grad).sum(-1, keepdim=True) / slope.sum(-1, keepdim=True)
            return (slope * (grad - mean)).to(grad.dtype)

    def formula(q, k, v):
        return Entmax.apply(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5) @ v

    calls = [("formula", formula), ("compile", torch.compile(formula, dynamic=False))]
    try:
        from adasplash import adasplash

        calls.append(("AdaSplash", lambda q, k, v: adasplash(q, k, v, alpha=1.5, is_causal=False)))
    except ImportError:
        pass
    return calls, leaves


def t5(leaves, distance=128):
    table = torch.randn(leaves[0].shape[1], 2 * distance + 1, device="cuda", requires_grad=True)
    length = leaves[0].shape[2]
    position = torch.arange(length, device="cuda")
    index = (position[None, :] - position[:, None]).clamp(-distance, distance) + distance

    def formula(q, k, v, table):
        bias = table[:, index].to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None])

    def flexible(q, k, v, table):
        def score(s, b, h, i, j):
            return s + table[h, (j - i).clamp(-distance, distance) + distance]

        return compiled(q, k, v, score_mod=score)

    from torch.nn.attention.flex_attention import flex_attention

    compiled = torch.compile(flex_attention, dynamic=False)
    calls = [("formula", formula), ("compile", torch.compile(formula, dynamic=False)), ("Flex", flexible)]
    return calls, (*leaves, table)


def decode(leaves):
    from torch.nn.attention import SDPBackend

    return [
        ("cuDNN", with_backend(SDPBackend.CUDNN_ATTENTION, enable_gqa=True)),
        ("FlashAttention-2", with_backend(SDPBackend.FLASH_ATTENTION, enable_gqa=True)),
    ], leaves


def attention(name):
    """The peers of a case of dot products, by the words of its name."""
    kind = torch.float32 if "-f32-" in name else torch.bfloat16
    words = name.split("-")[0]
    if words == "decode":
        return decode(leaves_of(8, 32, 8, 1, 8192, 128, kind))
    if words == "t5":
        return t5(leaves_of(8, 12, 12, 2048, 2048, 64, kind))
    if words == "entmax":
        return entmax(leaves_of(4, 8, 8, 4096, 4096, 64, kind))
    if kind == torch.float32:
        return dot_f32(leaves_of(4, 8, 8, 4096, 4096, 64, kind))
    leaves = leaves_of(4, 16, 16, 8192, 8192, 64 if name.endswith("d64") else 128, kind)
    if words == "window":
        return [("Flex", flex(8192, lambda b, h, i, j: (i >= j) & (i - j <= 256)))], leaves
    return dot(words == "causal", leaves)


def peer(name):
    if name.startswith(("dot", "causal", "window", "entmax", "t5", "decode")):
        return attention(name)
    if name.startswith("additive"):
        sizes = {"additive-f32-b16n512h128": (16, 512, 128), "additive-f32-b8n1024h256": (8, 1024, 256)}
        return additive(*sizes[name])
    return graph(name.split("-")[0], 100_000, 2_000_000, 8, 16)


def peer_times(name, calls, leaves):
    """The fastest peer's forward and backward, each with its name; a peer that does not have the case is left out."""
    best = {}
    for label, call in list(calls):
        try:
            grad = torch.randn_like(call(*leaves))
            with torch.no_grad():
                forward = median_ms(lambda: call(*leaves))
            found = [("forward", forward)]
            out = None
            if len(BARS[name]) > 1:
                out = call(*leaves)
                backward = median_ms(lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True))
                found.append(("backward", backward))
        except Exception as error:  # a peer that does not have the case is no peer
            no_room = isinstance(error, torch.OutOfMemoryError)
            why = "has no room" if no_room else f"cannot: {str(error).splitlines()[0][:120]}"
            print(f"{name}: {label} {why}", flush=True)
            calls.remove((label, call))
            continue
        for which, time in found:
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
        torch._dynamo.reset()  # what it compiled for other cases counts against this one's
        calls, leaves = peer(name)
        for _ in range(options.rounds):
            for which, time in our_times(options.program, name).items():
                ours.setdefault(which, []).append(time)
            for which, found in peer_times(name, calls, leaves).items():
                theirs.setdefault(which, []).append(found)
        for which, bar in zip(("forward", "backward"), bars):
            our = statistics.median(ours[which])
            their, label = sorted(theirs[which])[len(theirs[which]) // 2]
            rows.append(f"| {name} | {which} | {our:.3f} | {their:.3f} | {label} | {their / our:.2f} | {bar:g} |")
            print(rows[-1], flush=True)
    if options.out:
        with open(options.out, "w") as file:
            file.write(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n\n" + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
