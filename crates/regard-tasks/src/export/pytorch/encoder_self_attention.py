

class SelfAttention(nn.Module):
    """One bare layer: W_q, W_k and W_v, the heads' outputs side by side."""

    def __init__(self, c, wide):
        super().__init__()
        self.c, heads, dk, dv = c, c["heads"], c["key_width"], c["value_width"]
        self.width = heads * dv
        self.W_q, self.W_k = (nn.Linear(wide, heads * dk, bias=c["bias"]) for _ in range(2))
        self.W_v = nn.Linear(wide, heads * dv, bias=c["bias"])
        self.score = Scores(c["score"], dk, dk, heads)

    def forward(self, x, lengths):
        (b, n, _), there = x.shape, keep(lengths, x.shape[1])
        x = x * there[..., None]
        q, k, v = (W(x).view(b, n, self.c["heads"], -1).transpose(1, 2) for W in (self.W_q, self.W_k, self.W_v))
        seen = there[:, None, None, :]
        if self.c["window"] is not None:
            places = torch.arange(n)
            seen = seen & ((places[None, :] - places[:, None]).abs() <= self.c["window"])
        out = weigh(self.score(q, k), seen, self.c["weighting"]) @ v
        return out.transpose(1, 2).reshape(b, n, -1) * there[..., None], None
