

class Attention(nn.MultiheadAttention):
    """The parameters of PyTorch's, with the positions and the window of ours."""

    def __init__(self, c):
        super().__init__(c["width"], c["heads"], batch_first=True)
        self.c = c
        if c["position"] == "relative":
            self.relative = nn.Parameter(torch.zeros(c["heads"], 2 * c["max_distance"] + 1))

    def rotated(self, x):
        half = x.shape[-1] // 2
        turn = torch.arange(x.shape[2])[:, None] / 10000 ** (torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * turn.cos() - b * turn.sin(), a * turn.sin() + b * turn.cos()], -1)

    def forward(self, x, seen):
        """x [B, N, width]; seen [B, 1, 1, N] is true where a key may be seen."""
        (b, n, width), heads = x.shape, self.c["heads"]
        q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).view(b, n, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        if self.c["position"] == "rotary":
            q, k = self.rotated(q), self.rotated(k)
        scores = q @ k.transpose(2, 3) / math.sqrt(width // heads)
        distance = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        if self.c["position"] == "alibi":
            slopes = 2 ** (-8 * torch.arange(1, heads + 1) / heads)
            scores = scores - slopes[:, None, None] * distance.abs()
        if self.c["position"] == "relative":
            far = self.c["max_distance"]
            scores = scores + self.relative[:, distance.clamp(-far, far) + far]
        if self.c["window"] is not None:
            seen = seen & (distance.abs() <= self.c["window"])
        weights = scores.masked_fill(~seen, -math.inf).softmax(-1).nan_to_num(0)
        return self.out_proj((weights @ v).transpose(1, 2).reshape(b, n, width))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, width = c, c["width"]
        self.self_attn = Attention(c)
        self.linear1, self.linear2 = nn.Linear(width, c["feed_forward"]), nn.Linear(c["feed_forward"], width)
        self.norm1, self.norm2 = nn.LayerNorm(width, c["eps"]), nn.LayerNorm(width, c["eps"])

    def feed(self, x):
        return self.linear2(activate(self.linear1(x), self.c["activation"]))

    def forward(self, x, seen):
        if self.c["norm_first"]:
            x = x + self.self_attn(self.norm1(x), seen)
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.self_attn(x, seen))
        return self.norm2(x + self.feed(x))
