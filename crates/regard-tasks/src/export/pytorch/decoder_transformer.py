

class OneHead(Scores):
    """Attention by one mechanism in the place of heads."""

    def __init__(self, mechanism, width):
        super().__init__(mechanism["score"], width, width)
        self.weighting, self.out_proj = mechanism["weighting"], nn.Linear(width, width)

    def forward(self, x, memory, seen):
        weights = weigh(super().forward(x[:, None], memory[:, None]), seen, self.weighting)
        return self.out_proj((weights @ memory[:, None])[:, 0]), weights


class DecoderBlock(nn.Module):
    def __init__(self, c, context):
        super().__init__()
        self.c, width = c, c["width"]
        self.self_attn = Attention(c, c["position"])
        if context["kind"] == "attention":
            self.attention = OneHead(context, width)
        else:
            self.multihead_attn = Attention(c, "none")
        self.linear1, self.linear2 = nn.Linear(width, c["feed_forward"]), nn.Linear(c["feed_forward"], width)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width, c["eps"]) for _ in range(3))

    def forward(self, x, memory, before, seen):
        cross = self.attention if hasattr(self, "attention") else self.multihead_attn
        first = self.c["norm_first"]
        around = lambda x, norm, y: x + y if first else norm(x + y)
        ready = lambda x, norm: norm(x) if first else x
        y = ready(x, self.norm1)
        x = around(x, self.norm1, self.self_attn(y, y, before)[0])
        y, weights = cross(ready(x, self.norm2), memory, seen)
        x = around(x, self.norm2, y)
        y = self.linear2(activate(self.linear1(ready(x, self.norm3)), self.c["activation"]))
        return around(x, self.norm3, y), weights


class TransformerDecoder(nn.Module):
    def __init__(self, c, wide):
        super().__init__()
        self.c, d = c, c["decoder"]
        self.width = d["width"]
        if c["embedding"] != self.width:
            self.input = nn.Linear(c["embedding"], self.width)
        if wide != self.width:
            self.memory = nn.Linear(wide, self.width)
        if d["position"] == "learned":
            self.positions = nn.Parameter(torch.zeros(d["longest"], self.width))
        self.layers = nn.ModuleList(DecoderBlock(d, c["context"]) for _ in range(d["layers"]))
        if d["norm_first"]:
            self.norm = nn.LayerNorm(self.width, d["eps"])

    def forward(self, y, out, fixed, there):
        x, n = self.input(y) if hasattr(self, "input") else y, y.shape[1]
        x = placed(self, x, self.c["decoder"]["position"])
        memory, seen = out, there[:, None, None, :]
        if self.c["context"]["kind"] in ("fixed", "pooled"):
            memory, seen = fixed[:, None], torch.ones(1, 1, 1, 1, dtype=torch.bool)
        memory = self.memory(memory) if hasattr(self, "memory") else memory
        before = torch.ones(n, n, dtype=torch.bool).tril()[None, None]
        for block in self.layers:
            x, weights = block(x, memory, before, seen)
        return self.norm(x) if hasattr(self, "norm") else x, weights.mean(1)
