

class Attention(nn.Module):
    """The parameters of PyTorch's nn.MultiheadAttention, with the scores, weights, positions and window of ours."""

    def __init__(self, c, position):
        super().__init__()
        self.c, self.position, (width, heads) = c, position, (c["width"], c["heads"])
        dk, dv = (c[name] or width // heads for name in ("head_key_width", "head_value_width"))
        self.sizes = [heads * dk, heads * dk, heads * dv]
        self.in_proj_weight = nn.Parameter(torch.zeros(sum(self.sizes), width))
        self.in_proj_bias = nn.Parameter(torch.zeros(sum(self.sizes))) if c["bias"] else None
        self.out_proj = nn.Linear(heads * dv, width, bias=c["bias"])
        self.score = Scores(c["score"], dk, dk, heads)
        if position == "relative":
            self.relative = nn.Parameter(torch.zeros(heads, 2 * c["max_distance"] + 1))

    def rotated(self, x):
        half = x.shape[-1] // 2
        turn = torch.arange(x.shape[2])[:, None] / 10000 ** (torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * turn.cos() - b * turn.sin(), a * turn.sin() + b * turn.cos()], -1)

    def forward(self, x, memory, seen, window=None):
        """x [B, Nq, width], memory [B, Nk, width]; seen [B, 1, Nq or 1, Nk] is true where a key may be seen. Gives vectors and weights."""
        (b, n, _), heads = x.shape, self.c["heads"]
        biases = [None] * 3 if self.in_proj_bias is None else self.in_proj_bias.split(self.sizes)
        each = zip((x, memory, memory), self.in_proj_weight.split(self.sizes), biases)
        q, k, v = (F.linear(x, weight, bias).view(b, x.shape[1], heads, -1).transpose(1, 2) for x, weight, bias in each)
        if self.position == "rotary":
            q, k = self.rotated(q), self.rotated(k)
        scores = self.score(q, k)
        distance = torch.arange(memory.shape[1])[None, :] - torch.arange(n)[:, None]
        if self.position == "alibi":
            slopes = 2 ** (-8 * torch.arange(1, heads + 1) / heads)
            scores = scores - slopes[:, None, None] * distance.abs()
        if self.position == "relative":
            far = self.c["max_distance"]
            scores = scores + self.relative[:, distance.clamp(-far, far) + far]
        if window is not None:
            seen = seen & (distance.abs() <= window)
        weights = weigh(scores, seen, self.c["weighting"])
        return self.out_proj((weights @ v).transpose(1, 2).reshape(b, n, -1)), weights


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, width = c, c["width"]
        self.self_attn = Attention(c, c["position"])
        self.linear1, self.linear2 = nn.Linear(width, c["feed_forward"]), nn.Linear(c["feed_forward"], width)
        self.norm1, self.norm2 = nn.LayerNorm(width, c["eps"]), nn.LayerNorm(width, c["eps"])

    def feed(self, x):
        return self.linear2(activate(self.linear1(x), self.c["activation"]))

    def own(self, x, seen):
        return self.self_attn(x, x, seen, self.c["window"])[0]

    def forward(self, x, seen):
        if self.c["norm_first"]:
            x = x + self.own(self.norm1(x), seen)
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.own(x, seen))
        return self.norm2(x + self.feed(x))
