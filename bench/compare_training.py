"""A whole training step on a GPU, Regard's beside PyTorch's: forward, loss, backward, clipping, AdamW.

    cargo build --release -p regard --example training_step
    python3 bench/compare_training.py [CASE ...]

PyTorch runs as most people have it (eager) and as one CUDA graph, which few have. Both compute in f32, with TF32, and in
bf16 (PyTorch's autocast, Regard's precision). The models are those of crates/regard/examples/training_step.rs; the graphs
want torch_geometric. Each takes its turn twice, and the faster turn counts."""

import pathlib
import re
import subprocess
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

PROGRAM = pathlib.Path(__file__).parent.parent / "target/release/examples/training_step"
STEPS = 20


def ids(vocabulary, *shape):
    return torch.randint(4, vocabulary, shape, device="cuda")


class Transformer(nn.Module):
    def __init__(self, width, layers, heads, inner, vocabulary, dropout):
        super().__init__()
        sizes = dict(nhead=heads, dim_feedforward=inner, dropout=dropout, batch_first=True, norm_first=True)
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(64, width) / 50)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, **sizes), layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, **sizes), layers)

    def embedded(self, tokens):
        return self.words(tokens) + self.positions[: tokens.shape[1]]

    def forward(self, source, target):
        given, wanted = target[:, :-1], target[:, 1:]
        mask = nn.Transformer.generate_square_subsequent_mask(given.shape[1], device="cuda")
        states = self.decoder(self.embedded(given), self.encoder(self.embedded(source)), tgt_mask=mask, tgt_is_causal=True)
        logits = (states @ self.words.weight.T).float()
        return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), label_smoothing=0.1)


class Additive(nn.Module):
    def __init__(self, embedding, hidden, vocabulary, dropout):
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, embedding), nn.Embedding(vocabulary, embedding)
        self.encoder = nn.GRU(embedding, hidden, batch_first=True, bidirectional=True)
        self.first, self.query = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.key, self.score = nn.Linear(2 * hidden, hidden, bias=False), nn.Linear(hidden, 1, bias=False)
        self.cell = nn.GRUCell(embedding + 2 * hidden, hidden)
        self.readout = nn.Linear(3 * hidden + embedding, embedding)
        self.dropout = nn.Dropout(dropout)

    def forward(self, source, target):
        values, last = self.encoder(self.dropout(self.source(source)))
        state, keys, words, states = torch.tanh(self.first(last[1])), self.key(values), self.dropout(self.target(target)), []
        for word in words[:, :-1].unbind(1):
            weights = self.score(torch.tanh(self.query(state)[:, None] + keys)).softmax(1)
            context = torch.bmm(weights.transpose(1, 2), values).squeeze(1)
            state = self.cell(torch.cat([word, context], -1), state)
            states.append(torch.cat([state, context, word], -1))
        logits = self.dropout(torch.tanh(self.readout(torch.stack(states, 1)))) @ self.target.weight.T
        return F.cross_entropy(logits.float().flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20000, 128)
        self.lstm = nn.LSTM(128, 256, 2, batch_first=True, bidirectional=True, dropout=0.3)
        self.out = nn.Linear(512, 17)

    def forward(self, words, tags):
        return F.cross_entropy(self.out(self.lstm(self.words(words))[0]).float().flatten(0, 1), tags.flatten())


class Vision(nn.Module):
    def __init__(self, side, channels, width, layers, heads, inner):
        super().__init__()
        self.patches = nn.Conv2d(channels, width, 4, 4)
        self.token, self.positions = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.randn(1, (side // 4) ** 2 + 1, width) / 50)
        block = nn.TransformerEncoderLayer(width, heads, inner, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks, self.out = nn.TransformerEncoder(block, layers, enable_nested_tensor=False), nn.Linear(width, 10)

    def forward(self, images, classes):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = self.blocks(torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions)
        return F.cross_entropy(self.out(x[:, 0]).float(), classes)


class Graph(nn.Module):
    def __init__(self, layer, features, hidden, heads, classes, layers):
        super().__init__()
        from torch_geometric import nn as geometric

        inner = [(hidden, heads)] * (layers - 1) + [(classes, 1)]
        widths = [features] + [hidden * heads] * (layers - 1)
        kind = getattr(geometric, layer)
        self.layers = nn.ModuleList(kind(i, o, heads=h, dropout=0.6) for i, (o, h) in zip(widths, inner))

    def forward(self, x, edges, classes):
        for at, layer in enumerate(self.layers):
            x = layer(F.dropout(F.elu(x) if at else x, 0.6), edges)
        return F.cross_entropy(x.float(), classes)


def graph(layer, nodes, edges, features, *sizes):
    pairs = torch.unique(torch.randint(nodes, (2, edges), device="cuda"), dim=1)
    model = Graph(layer, features, *sizes)
    return model, (torch.randn(nodes, features, device="cuda"), pairs, torch.randint(sizes[2], (nodes,), device="cuda"))


def images(batch, channels, side):
    return torch.randn(batch, channels, side, side, device="cuda"), torch.randint(10, (batch,), device="cuda")


CASES = {
    "transformer-b128t16d128": lambda: (Transformer(128, 4, 4, 256, 8000, 0.2), (ids(8000, 128, 16), ids(8000, 128, 17))),
    "transformer-b128t32d512": lambda: (Transformer(512, 6, 8, 2048, 10000, 0.1), (ids(10000, 128, 32), ids(10000, 128, 33))),
    "gru-additive-b64t16h256": lambda: (Additive(256, 256, 6000, 0.4), (ids(6000, 64, 16), ids(6000, 64, 17))),
    "gru-additive-b80t30h1000": lambda: (Additive(620, 1000, 30000, 0.0), (ids(30000, 80, 30), ids(30000, 80, 31))),
    "lstm-tagger-b64t32h256": lambda: (Tagger(), (ids(20000, 64, 32), torch.randint(17, (64, 32), device="cuda"))),
    "vit-b64d64": lambda: (Vision(28, 1, 64, 6, 4, 128), images(64, 1, 28)),
    "vit-b256d384": lambda: (Vision(32, 3, 384, 12, 6, 1536), images(256, 3, 32)),
    "gat-cora": lambda: graph("GATConv", 2708, 10556, 1433, 8, 8, 7, 2),
    "gatv2-169k": lambda: graph("GATv2Conv", 169_343, 2_315_598, 128, 64, 4, 40, 3),
}


def step_of(make, is_bf16, is_graph):
    model, inputs = make()
    model = model.cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True, capturable=is_graph)

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=is_bf16, cache_enabled=not is_graph):
            loss = model(*inputs)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    if not is_graph:
        return step
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(4):
            step()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        step()
    return captured.replay


def milliseconds(step):
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3 / STEPS


def regard(case, precision):
    command = [PROGRAM, "cuda", case, str(STEPS), precision]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"([\d.]+) ms a step", said)
    if not found:
        raise SystemExit(f"{case}: {said}")
    return float(found[1])


def main():
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, ms a step; in brackets PyTorch's time over Regard's")
    for case, make in CASES.items():
        if sys.argv[1:] and not any(part in case for part in sys.argv[1:]):
            continue
        for precision in ["f32", "tf32", "bf16"]:
            torch.set_float32_matmul_precision("highest" if precision == "f32" else "high")
            torch.backends.cudnn.allow_tf32 = precision != "f32"
            ways = [False, True][: 1 if case.startswith("gat") else 2]
            ours, theirs = [], {is_graph: [] for is_graph in ways}
            for _ in range(2):
                ours.append(regard(case, precision))
                for is_graph in ways:
                    torch.manual_seed(0)
                    theirs[is_graph].append(milliseconds(step_of(make, precision == "bf16", is_graph)))
                    torch.cuda.empty_cache()
            best = min(ours)
            ratios = [f"{way} {min(ms):.3f} ({min(ms) / best:.2f})" for way, ms in zip(["eager", "graph"], theirs.values())]
            print(f"{case:26} {precision:5} {best:8.3f}  " + "  ".join(ratios), flush=True)


main()
