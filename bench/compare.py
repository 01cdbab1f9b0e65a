#!/usr/bin/env python3
"""The same attention cases and training steps through Regard and through PyTorch, side by side, in one sitting.

    python3 bench/compare.py                    every case: a table on stdout, a picture in target/compare.svg
    python3 bench/compare.py --filter causal    the cases whose name contains "causal"
    python3 bench/compare.py --record           write the table and the picture into docs/

The first run makes a virtual environment of its own (~/.cache/regard/bench-venv) and installs PyTorch in it.

Three processes stay up for the whole sitting and take turns, each asleep on its standard input while another
computes: `regard bench --serve`, PyTorch as it comes, and PyTorch with OMP_WAIT_POLICY=passive. All three speak
one protocol: a line `CASE PASS REPETITIONS` in, a line of JSON with `times_ms` out. A round is one turn each; the
ratio of a round is PyTorch's time over ours, so above 1 Regard is faster. Of the PyTorch processes the one with
the lower median over all rounds counts, and within a process the fastest of the ways to write the case.

Letters: B batch, H heads (Hq of the queries, Hk of the keys), N length, D width, E edges.
"""

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
REGARD = TARGET / "release" / "regard"
PAGE = ROOT / "docs" / "performance.md"
TABLE_BEGIN, TABLE_END = "<!-- table:begin -->", "<!-- table:end -->"

FORWARD, BOTH, STEP = "forward", "forward+backward", "step"

# What is asked for: PyTorch's time over ours, a bar a pass. Decode has no bar on the ratio and no backward; its bar
# is a share of the machine's read bandwidth. A step is forward, backward and AdamW.
OPERATOR = {
    "dot-f32-b2h8n1024d64": (1.25, 1.25),
    "dot-f32-b2h8n1024d64-causal": (1.4, 1.5),
    "dot-f32-b1h8n4096d64": (1.25, 1.1),
    "dot-f32-b1h1n4096d64": (1.25, 2.0),
    "dot-f32-b32h8n128d32": (1.3, 1.4),
    "dot-f32-b1h8n4096d64-window128": (10.0, 10.0),
    "additive-f32-b4h1n256d256": (20.0, 12.0),
    "additive-f32-n20000e400000h8d16-gatv2": (20.0, 15.0),
    "dot-f32-b1hq32hk8n4096d128-decode": (None,),
}
STEPS = {
    "step-f32-transformer-b32t128d256h8": 1.2,
    "step-f32-gru-b64t20h256v8000": 1.5,
    "step-f32-gat-n2708e10556": 4.0,
}
ASKED = {name: dict(zip((FORWARD, BOTH), bars)) for name, bars in OPERATOR.items()} | {
    name: {STEP: bar} for name, bar in STEPS.items()
}
DECODE, DECODE_SHARE_ASKED = "dot-f32-b1hq32hk8n4096d128-decode", 0.8
MATMUL_CASE = "dot-f32-b2h8n1024d64"
# Dot cases are matrix products and little else: two forward, five more backward. A square product in PyTorch, timed in
# every round, says how fast the machine could do them at that moment. Multiplications of one product, by case.
PRODUCTS = {
    "dot-f32-b2h8n1024d64": 2 * 8 * 1024**2 * 64,
    "dot-f32-b2h8n1024d64-causal": 2 * 8 * 1024**2 * 64 / 2,
    "dot-f32-b1h8n4096d64": 8 * 4096**2 * 64,
    "dot-f32-b1h1n4096d64": 4096**2 * 64,
    "dot-f32-b32h8n128d32": 32 * 8 * 128**2 * 32,
}
PRODUCTS_OF = {FORWARD: 2, BOTH: 7}
RULER, RULER_SIDE = "product", 1024

# How PyTorch is run: a name, and what is added to its environment. PyTorch's wheels carry GNU OpenMP, to which
# KMP_BLOCKTIME means nothing.
TORCH_SETTINGS = {"default": {}, "passive": {"OMP_WAIT_POLICY": "passive"}}
# glibc hands large blocks back to the kernel and faults them in again at every call; these keep them.
TUNED_MALLOC = {
    "OMP_WAIT_POLICY": "passive",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=8589934592"
    ":glibc.malloc.trim_threshold=17179869184",
}

TURN_MS = 200.0  # a turn repeats the case for about this long, and its median counts
LEAST = 3  # repetitions at least: the first after a rest finds cold caches and sleeping cores
# After a parallel region the threads of a waiting OpenMP pool go on spinning (up to 200 ms, by implementation) and
# would take a core from whoever comes next.
REST_S = 0.3


def fail(message):
    sys.exit(f"compare.py: {message}")


def say(message):
    print(message, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------------- the environment


def enter_environment(venv):
    """Continues in the virtual environment `venv`, made and filled first where it is not there yet."""
    python = venv / "bin" / "python"
    if Path(sys.prefix).resolve() != venv.resolve():
        if not python.exists():
            say(f"making a virtual environment in {venv}")
            if subprocess.run([sys.executable, "-m", "venv", str(venv)]).returncode != 0:
                fail(f"no virtual environment could be made in {venv} (on Debian: apt install python3-venv)")
        os.execv(python, [str(python), str(Path(__file__).resolve()), *sys.argv[1:]])

    def missing(*packages):
        return [name for name in packages if importlib.util.find_spec(name) is None]

    pip = [sys.executable, "-m", "pip", "install"]
    needed = missing("torch", "numpy", "matplotlib")
    if needed and subprocess.run([*pip, *needed], stdout=sys.stderr).returncode != 0:
        fail(f"pip could not install {', '.join(needed)} into {venv}")
    if missing("torch_geometric") and subprocess.run([*pip, "torch_geometric"], stdout=sys.stderr).returncode != 0:
        say("torch_geometric does not install here: the graph case uses the scatter formula")
    importlib.invalidate_caches()


def build_regard():
    cargo = shutil.which("cargo") or shutil.which("cargo", path=Path.home() / ".cargo" / "bin")
    if cargo is None:
        fail("cargo is not on the PATH; install Rust from https://rustup.rs, or pass --no-build with a built regard")
    if subprocess.run([cargo, "build", "--release", "-p", "regard-cli"], cwd=ROOT, stdout=sys.stderr).returncode != 0:
        fail("cargo could not build regard")


# ------------------------------------------------------------------------------------------- the PyTorch worker


def torch_case(name):
    """The PyTorch side of a case: `(leaves, ways)`.

    `leaves` are the tensors that get a gradient; `ways` maps a label to a function that computes the output. All
    ways of a case compute the same thing, and what they need beyond the leaves is made here, outside the timing.
    """
    import torch

    sdpa = torch.nn.functional.scaled_dot_product_attention
    size = {letter: int(n) for letter, n in re.findall(r"(hq|hk|[bhned])(\d+)", name)}

    if name == RULER:
        a, b = torch.randn(2, RULER_SIDE, RULER_SIDE)
        return [a, b], {"mm": lambda: torch.mm(a, b)}

    if name.startswith("dot-") and name.endswith("-decode"):  # q [B, Hq, 1, D], k and v [B, Hk, N, D]
        b, hq, hk, n, d = (size[letter] for letter in ("b", "hq", "hk", "n", "d"))
        q, k, v = torch.randn(b, hq, 1, d), torch.randn(b, hk, n, d), torch.randn(b, hk, n, d)
        grouped = q.view(b, hk, hq // hk, d)  # the heads of a group as the queries of one head
        k_all, v_all = (t.repeat_interleave(hq // hk, dim=1) for t in (k, v))
        return [q, k, v], {
            "SDPA, enable_gqa": lambda: sdpa(q, k, v, enable_gqa=True),
            "SDPA, k and v repeated": lambda: sdpa(q, k_all, v_all),
            "SDPA, group as queries": lambda: sdpa(grouped, k, v),
        }

    if name.startswith("dot-"):  # q, k, v [B, H, N, D]
        n = size["n"]
        q, k, v = (torch.randn(size["b"], size["h"], n, size["d"], requires_grad=True) for _ in range(3))
        if name.endswith("-causal"):
            return [q, k, v], {"SDPA, is_causal": lambda: sdpa(q, k, v, is_causal=True)}
        if window := re.search(r"-window(\d+)$", name):
            place = torch.arange(n)
            keep = (place[:, None] - place).abs() <= int(window[1])  # [N, N]
            bias = torch.zeros(n, n).masked_fill(~keep, -math.inf)
            return [q, k, v], {
                "SDPA, boolean mask": lambda: sdpa(q, k, v, attn_mask=keep),
                "SDPA, float mask": lambda: sdpa(q, k, v, attn_mask=bias),
            }
        return [q, k, v], {"SDPA": lambda: sdpa(q, k, v)}

    if name.endswith("-gatv2"):
        return torch_gatv2(nodes=size["n"], edges=size["e"], width_in=64, heads=size["h"], width=size["d"])

    # additive: q, k, v [B, N, D], w [D]; one head
    q, k, v = (torch.randn(size["b"], size["n"], size["d"], requires_grad=True) for _ in range(3))
    w = torch.randn(size["d"], requires_grad=True)
    return [q, k, v, w], {
        "broadcast formula": lambda: (torch.tanh(q[:, :, None] + k[:, None]) @ w).softmax(-1) @ v
    }


def torch_gatv2(nodes, edges, width_in, heads, width):
    """GATv2 on a random graph: x [N, width_in] gives [N, H·D]; the edges [2, E] are (source, target)."""
    import torch

    x = torch.randn(nodes, width_in)
    drawn = torch.randint(nodes, (2, edges))
    by_target = drawn[:, drawn[1].argsort()].contiguous()  # Regard's CSR is sorted, so PyTorch may have it too
    if importlib.util.find_spec("torch_geometric"):
        from torch_geometric.nn import GATv2Conv

        layer = GATv2Conv(width_in, width, heads=heads, add_self_loops=False, bias=False)
        leaves, forward, label = list(layer.parameters()), lambda e: layer(x, e), "GATv2Conv"
    else:
        to_source, to_target = (torch.randn(width_in, heads * width) * width_in**-0.5 for _ in range(2))
        w = torch.randn(heads, width) * width**-0.5
        leaves, label = [t.requires_grad_() for t in (to_source, to_target, w)], "scatter formula"

        def forward(e):
            k, q = (x @ to_source).view(nodes, heads, width), (x @ to_target).view(nodes, heads, width)
            score = (torch.nn.functional.leaky_relu(q[e[1]] + k[e[0]], 0.2) * w).sum(-1)  # [E, H]
            at = e[1][:, None].expand_as(score)
            top = score.new_full((nodes, heads), -math.inf).scatter_reduce(0, at, score.detach(), "amax")
            weight = (score - top[e[1]]).exp()
            total = torch.zeros(nodes, heads).index_add(0, e[1], weight)
            weight = weight / total[e[1]]
            out = torch.zeros(nodes, heads, width).index_add(0, e[1], weight[..., None] * k[e[0]])
            return out.flatten(1)

    return leaves, {
        f"{label}, edges as drawn": lambda: forward(drawn),
        f"{label}, edges sorted": lambda: forward(by_target),
    }


def torch_step(name):
    """The PyTorch side of a training step: a label to a function that does one."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, dropout, elu

    size = {letter: int(n) for letter, n in re.findall(r"([btdhvne])(\d+)", name.split("-", 3)[3])}

    def stepping(model, loss, fused):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused, foreach=not fused)

        def step():
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()

        return step

    def ways(model, loss):
        return {f"AdamW {how}": stepping(model, loss, how == "fused") for how in ("fused", "foreach")}

    if "transformer" in name:  # x [B, T, D], a class for every place
        b, t, d = size["b"], size["t"], size["d"]
        block = nn.TransformerEncoderLayer(
            d, size["h"], 4 * d, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        model = nn.ModuleList([block, nn.Linear(d, 100)])
        x, targets = torch.randn(b, t, d), torch.randint(100, (b * t,))
        return ways(model, lambda: cross_entropy(model[1](model[0](x)).flatten(0, 1), targets))

    if "gru" in name:  # an encoder and a decoder with additive attention, teacher forcing
        b, t, h, v = (size[letter] for letter in "bthv")

        class Translator(nn.Module):
            def __init__(self):
                super().__init__()
                self.source, self.target = nn.Embedding(v, h), nn.Embedding(v, h)
                self.encoder = nn.GRU(h, h, batch_first=True)
                self.to_query, self.to_key = nn.Linear(h, h, bias=False), nn.Linear(h, h, bias=False)
                self.score = nn.Linear(h, 1, bias=False)
                self.cell = nn.GRUCell(2 * h, h)
                self.bridge, self.readout, self.out = nn.Linear(h, h), nn.Linear(3 * h, h), nn.Linear(h, v)

            def forward(self, source, target):
                memory, state = self.encoder(self.source(source))
                state, y = torch.tanh(self.bridge(state[0])), self.target(target)
                keys = self.to_key(memory)  # once for all steps
                states, contexts = [], []
                for at in range(target.shape[1]):
                    scores = self.score(torch.tanh(self.to_query(state)[:, None] + keys))  # [B, T, 1]
                    context = (scores.softmax(1).transpose(1, 2) @ memory)[:, 0]
                    state = self.cell(torch.cat([y[:, at], context], -1), state)
                    states.append(state)
                    contexts.append(context)
                seen = torch.cat([torch.stack(states, 1), y, torch.stack(contexts, 1)], -1)
                return self.out(torch.tanh(self.readout(seen)))

        model = Translator()
        source, target, goal = (torch.randint(v, (b, t)) for _ in range(3))
        return ways(model, lambda: cross_entropy(model(source, target).flatten(0, 1), goal.flatten()))

    # two layers of GAT on a graph of Cora's sizes: 8 heads of 8, then 7 classes
    from torch_geometric.nn import GATConv

    n, e = size["n"], size["e"]
    first, second = GATConv(1433, 8, heads=8, dropout=0.6), GATConv(64, 7, heads=1, concat=False, dropout=0.6)
    model = nn.ModuleList([first, second])
    x, edges, targets = torch.rand(n, 1433), torch.randint(n, (2, e)), torch.randint(7, (n,))

    def loss():
        hidden = elu(first(dropout(x, 0.6), edges))
        return cross_entropy(second(dropout(hidden, 0.6), edges), targets)

    return ways(model, loss)


def torch_peak(name, threads):
    """Prints the most memory, in bytes, that PyTorch's step took on top of what the library itself takes."""
    import warnings

    warnings.filterwarnings("ignore")
    import torch

    torch.set_num_threads(threads)
    torch.nn.Linear(8, 8)(torch.randn(8, 8)).sum().backward()
    if "gat" in name:
        import torch_geometric.nn  # noqa: F401, so that it does not count

    def status(field):
        return int(re.search(rf"^{field}:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.M)[1]) * 1024

    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    step = next(iter(torch_step(name).values()))
    for _ in range(5):
        step()
    print(status("VmHWM") - before)


def torch_worker(threads):
    """Serves `CASE PASS REPETITIONS` lines like `regard bench --serve`, keeping the last case's tensors."""
    import warnings

    warnings.filterwarnings("ignore")
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    replies, sys.stdout = sys.stdout, sys.stderr  # nothing a library prints may pass for a reply

    def timed(way, which, leaves, grad):
        for leaf in leaves:
            leaf.grad = None
        start = time.perf_counter()
        if which == STEP:
            way()
        elif which == FORWARD:
            with torch.inference_mode():  # as fast as no_grad within the noise, down to the 2 ms of decode
                way()
        else:
            way().backward(grad)
        return (time.perf_counter() - start) * 1e3

    held, chosen = None, {}
    for line in sys.stdin:
        name, which, repetitions = line.split()
        if held != name:
            if which == STEP:
                leaves, ways, grad = [], torch_step(name), None
            else:
                leaves, ways = torch_case(name)
                with torch.no_grad():
                    grad = torch.randn_like(next(iter(ways.values()))())
            held, chosen = name, {}
        if which not in chosen:  # each way once cold, then the best of three counts
            trials = {label: [timed(way, which, leaves, grad) for _ in range(4)][1:] for label, way in ways.items()}
            chosen[which] = min(trials, key=lambda label: min(trials[label]))
        way = ways[chosen[which]]
        times = [timed(way, which, leaves, grad) for _ in range(int(repetitions))]
        reply = {"case": name, "pass": which, "times_ms": times, "way": chosen[which]}
        print(json.dumps(reply), file=replies, flush=True)


# ------------------------------------------------------------------------------------------------ the measuring


class Engine:
    """A process that answers `CASE PASS REPETITIONS` lines with JSON, and sleeps in between."""

    def __init__(self, name, command, environment):
        self.name = name
        self.way = None
        self.process = subprocess.Popen(
            command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def turn(self, case, which, repetitions):
        """The median time of the repetitions, in ms."""
        time.sleep(REST_S)
        try:
            self.process.stdin.write(f"{case} {which} {repetitions}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            fail(f"{self.name} ended with status {self.process.wait()} at {case} {which}")
        try:
            reply = json.loads(line)
            self.way = reply.get("way")
            return median(reply["times_ms"])
        except (ValueError, KeyError):
            fail(f"{self.name} answered {case} {which} with {line.strip()!r}; expected JSON with times_ms")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Row:
    """One line of the table. `ratios` has one entry a round; `how` is PyTorch's winning way and settings. `limits`
    are the ratios there would be if the case did its matrix products at the machine's rate and nothing else."""

    case: str
    which: str
    asked: float | None
    ours_ms: float
    torch_ms: float
    ratios: list
    limits: list
    how: str

    @property
    def ratio(self):
        return median(self.ratios)

    @property
    def limit(self):
        return f"{median(self.limits):.2f}" if self.limits else ""

    @property
    def met(self):
        return "" if self.asked is None else "yes" if self.ratio >= self.asked else "**no**"


def measure(case, which, asked, ours, peers, ruler, rounds):
    engines = [ours, *peers]
    repetitions, times, product_ms = {}, {engine.name: [] for engine in engines}, []
    for engine in engines:  # warm up, and see how many repetitions fill a turn
        repetitions[engine.name] = max(LEAST, round(TURN_MS / max(engine.turn(case, which, 2), 1e-3)))
    for _ in range(rounds):
        for engine in engines:
            times[engine.name].append(engine.turn(case, which, repetitions[engine.name]))
        if case in PRODUCTS:
            product_ms.append(ruler.turn(RULER, FORWARD, 20))
    best = min(peers, key=lambda peer: median(times[peer.name]))
    ratios = [theirs / mine for theirs, mine in zip(times[best.name], times[ours.name])]
    products = PRODUCTS_OF.get(which, 0) * PRODUCTS.get(case, 0) / RULER_SIDE**3
    limits = [theirs / (products * ms) for theirs, ms in zip(times[best.name], product_ms)]
    how = f"{best.way}; {best.name}"
    return Row(case, which, asked, median(times[ours.name]), median(times[best.name]), ratios, limits, how)


def bench_json(case, threads, *options, which=FORWARD):
    """The object `regard bench --json` prints for a pass of `case`."""
    command = [REGARD, "bench", "--filter", case, "--threads", str(threads), "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = [entry for entry in found if entry["case"] == case and entry["pass"] == which]
    if done.returncode != 0 or not found:
        fail(f"`{shlex.join(map(str, command))}` gave no {which} of {case} (status {done.returncode})")
    return found[0]


def shares(cases, threads):
    """Sentences that compare Regard with what the machine can do, each of three runs measured against itself."""
    lines = []
    if DECODE in cases:
        runs = [bench_json(DECODE, threads) for _ in range(3)]
        run = sorted(runs, key=lambda run: run["gb_per_s"] / run["read_gb_per_s"])[1]
        share = run["gb_per_s"] / run["read_gb_per_s"]
        met = "met" if share >= DECODE_SHARE_ASKED else "**not met**"
        lines.append(
            f"Decode reads {run['gb_per_s']:.1f} GB/s, {share:.0%} of the machine's {run['read_gb_per_s']:.1f} GB/s "
            f"(asked: {DECODE_SHARE_ASKED:.0%}, {met})."
        )
    if MATMUL_CASE in cases:
        runs = [bench_json(MATMUL_CASE, threads, "--pass", FORWARD) for _ in range(3)]
        run = sorted(runs, key=lambda run: run["gflops"] / run["matmul_gflops"])[1]
        share = run["gflops"] / run["matmul_gflops"]
        lines.append(
            f"Dot forward ({MATMUL_CASE}) runs at {run['gflops']:.0f} GFLOP/s, {share:.0%} of the machine's f32 matrix "
            f"product, {run['matmul_gflops']:.0f} GFLOP/s."
        )
    return lines


def peaks(cases, threads):
    """A sentence for each step: the most memory it took, here and in PyTorch."""
    lines = []
    for case in (case for case in cases if case in STEPS):
        ours = bench_json(case, threads, "--rounds", "3", which=STEP)["peak_bytes"]
        worker = [sys.executable, __file__, "--peak", case, "--threads", str(threads)]
        done = subprocess.run(worker, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            fail(f"PyTorch could not run {case} to see its memory")
        theirs = int(done.stdout)
        met = "met" if ours <= theirs else "**not met**"
        lines.append(
            f"{case} takes {ours / 2**20:.0f} MiB at most, PyTorch {theirs / 2**20:.0f} MiB on top of the library "
            f"(asked: no more than PyTorch, {met})."
        )
    return lines


# ------------------------------------------------------------------------------------------------- the reporting


def markdown(rows):
    lines = [
        "| case | pass | Regard, ms | PyTorch, ms | ratio | lowest–highest | limit | asked | met | PyTorch's best |",
        "|---|---|--:|--:|--:|--:|--:|--:|---|---|",
    ]
    for row in rows:
        asked = "" if row.asked is None else f"≥ {row.asked:g}"
        lines.append(
            f"| {row.case} | {row.which} | {row.ours_ms:.2f} | {row.torch_ms:.2f} | **{row.ratio:.2f}** "
            f"| {min(row.ratios):.2f}–{max(row.ratios):.2f} | {row.limit} | {asked} | {row.met} | {row.how} |"
        )
    return "\n".join(lines)


COLORS = {FORWARD: "#2a6f97", BOTH: "#89b6d0", STEP: "#6a994e"}


def draw(rows, path, threads):
    """A bar a row, from 1 on a logarithmic axis: the median ratio, its lowest and highest round, what was asked."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "regard", "font.family": "sans-serif"})
    from matplotlib import pyplot
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.34 * len(rows)), layout="constrained")
    for place, row in enumerate(rows):
        color = COLORS[row.which]
        reach = [[row.ratio - min(row.ratios)], [max(row.ratios) - row.ratio]]
        axes.barh(place, row.ratio - 1, left=1, color=color, height=0.75)
        axes.errorbar(row.ratio, place, xerr=reach, color="#555", linewidth=1)
        axes.text(max(*row.ratios, row.asked or 0) * 1.06, place, f"{row.ratio:.2f}", va="center", fontsize=8)
        if row.asked is not None:
            axes.plot([row.asked] * 2, [place - 0.42, place + 0.42], color="#d1495b", linewidth=2.5)
    axes.plot([], [], color="#d1495b", linewidth=2.5, label="asked")
    for which, color in COLORS.items():
        axes.barh([0], [0], color=color, label=which)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(rows)), [row.case if row.which != BOTH else "" for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    lowest, highest = min(min(row.ratios) for row in rows), max(max(row.ratios) for row in rows)
    axes.set_xlim(min(0.5, lowest * 0.8), max(2, highest, *(row.asked or 1 for row in rows)) * 1.6)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.margins(y=0.02)
    axes.set_xlabel(f"PyTorch's time over Regard's, {threads} threads (right of 1: Regard is faster)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=4, fontsize=8, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def machine():
    """The processor, its cores and the versions of what ran, in one line."""
    import torch

    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        facts = dict(re.findall(r"^(model name|cpu family|model)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M))
        if "model name" in facts:
            processor = f"{facts['model name']} (family {facts.get('cpu family')}, model {facts.get('model')})"
    versions = f"PyTorch {torch.__version__}"
    if importlib.util.find_spec("torch_geometric"):
        versions += f", torch_geometric {importlib.metadata.version('torch_geometric')}"
    return f"{processor}, {os.cpu_count()} cores; {versions}; Python {platform.python_version()}"


def record(block):
    """Puts `block` between the markers of docs/performance.md, which is made where it is not there yet."""
    if not PAGE.exists():
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(f"# Performance\n\n{TABLE_BEGIN}\n{TABLE_END}\n")
    text = PAGE.read_text()
    head, begin, rest = text.partition(TABLE_BEGIN)
    _, end, tail = rest.partition(TABLE_END)
    if not (begin and end):
        fail(f"{PAGE} lacks the line {TABLE_BEGIN} or, after it, {TABLE_END}")
    PAGE.write_text(f"{head}{begin}\n{block}\n{end}{tail}")


# ------------------------------------------------------------------------------------------------------ the run


def arguments():
    summary, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    venv = os.environ.get("REGARD_BENCH_VENV", "~/.cache/regard/bench-venv")
    parser.add_argument("--filter", default="", metavar="S", help="only the cases whose name contains S")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds a case, at least 5 to record (7)")
    parser.add_argument("--threads", type=int, default=cores, metavar="N", help=f"threads on both sides ({cores})")
    parser.add_argument("--venv", type=Path, default=Path(venv), metavar="DIR", help=f"virtual environment ({venv})")
    parser.add_argument("--no-build", action="store_true", help="use the regard that is already in target/release")
    parser.add_argument("--tuned-malloc", action="store_true", help="also try PyTorch with glibc keeping its blocks")
    parser.add_argument("--record", action="store_true", help="write docs/performance.md and docs/performance.svg")
    parser.add_argument("--cases-only", action="store_true", help="list the cases and what is asked of them")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--peak", metavar="CASE", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.rounds < 1 or chosen.threads < 1:
        parser.error("--rounds and --threads are at least 1")
    if chosen.record and (chosen.filter or chosen.rounds < 5):
        parser.error("--record needs every case and at least 5 rounds: drop --filter and --rounds")
    return chosen


def main():
    chosen = arguments()
    if chosen.worker:
        return torch_worker(chosen.threads)
    if chosen.peak:
        return torch_peak(chosen.peak, chosen.threads)
    cases = {name: asked for name, asked in ASKED.items() if chosen.filter in name}
    if not cases:
        fail(f"no case's name contains {chosen.filter!r}; --cases-only lists them")
    if chosen.cases_only:
        for name, asked in cases.items():
            bars = (f"{which} ≥ {bar:g}" if bar else which for which, bar in asked.items())
            print(f"{name:40}", ", ".join(bars))
        return

    enter_environment(chosen.venv.expanduser())
    if not chosen.no_build:
        build_regard()
    if not REGARD.exists():
        fail(f"{REGARD} does not exist; run without --no-build")
    load = os.getloadavg()[0]
    if load > 0.5 and chosen.no_build:  # after a build the load is ours
        say(f"the load average is {load:.1f}: something else is running, and the times will show it")

    threads = str(chosen.threads)
    settings = TORCH_SETTINGS | ({"passive, tuned malloc": TUNED_MALLOC} if chosen.tuned_malloc else {})
    ours = Engine("regard", [REGARD, "bench", "--serve", "--threads", threads], {})
    worker = [sys.executable, __file__, "--worker", "--threads", threads]
    peers = [Engine(name, worker, {"OMP_NUM_THREADS": threads} | extra) for name, extra in settings.items()]
    ruler = Engine(RULER, worker, {"OMP_NUM_THREADS": threads} | TORCH_SETTINGS["passive"])
    rows = []
    for case, asked in cases.items():
        for which, bar in asked.items():
            row = measure(case, which, bar, ours, peers, ruler, chosen.rounds)
            say(f"{case} {which}: {row.ours_ms:.2f} ms, PyTorch {row.torch_ms:.2f} ms, ratio {row.ratio:.2f}")
            rows.append(row)
    for engine in (ours, *peers, ruler):
        engine.close()

    facts = [
        f"{datetime.date.today()}, `{shlex.join(['python3', 'bench/compare.py', *sys.argv[1:]])}`: {chosen.threads} "
        f"threads on both sides, {chosen.rounds} interleaved rounds. {machine()}.",
        markdown(rows),
        "The ratio is the median over the rounds of PyTorch's time over Regard's; the last column is how PyTorch was "
        "fastest, and with which OpenMP wait policy. The limit is the ratio that a dot case would have if its matrix "
        f"products ran at the rate of PyTorch's own product of {RULER_SIDE} × {RULER_SIDE} numbers in the same round, and "
        "all else took no time.",
        *shares(cases, chosen.threads),
        *peaks(cases, chosen.threads),
    ]
    print("\n\n".join(facts))
    picture = PAGE.with_suffix(".svg") if chosen.record else TARGET / "compare.svg"
    draw(rows, picture, chosen.threads)
    if chosen.record:
        caption = "PyTorch's time over Regard's, a bar for each case and pass; the red marks are what was asked for"
        record("\n\n".join([*facts, f"![{caption}]({picture.name})"]))
        say(f"recorded in {PAGE}")
    say(f"picture: {picture}")


if __name__ == "__main__":
    main()
