

class Pooling(nn.Module):
    """From vectors [B, N, width] to one [B, width]."""

    def __init__(self, c, width):
        super().__init__()
        self.kind = next(iter(c)) if isinstance(c, dict) else c
        if self.kind == "gate":
            self.gate = nn.Linear(width, width, bias=False)
        if self.kind == "attention":
            self.query = nn.Parameter(torch.zeros(1, width))
            self.mechanism, self.weighting = Scores(c["attention"]["score"], width, width), c["attention"]["weighting"]

    def forward(self, x, lengths):
        there = keep(lengths, x.shape[1])
        if self.kind == "max":
            x = x.masked_fill(~there[..., None], -math.inf).amax(1)
            return torch.where((lengths > 0)[:, None], x, 0.0)
        if self.kind == "last":
            return x[torch.arange(len(x)), (lengths - 1).clamp(min=0)] * (lengths > 0)[:, None]
        x = x * there[..., None]
        if self.kind == "attention":
            return attend(self.mechanism, self.query.expand(len(x), 1, -1), x, there[:, None], self.weighting)[0][:, 0]
        if self.kind == "gate":
            x = torch.sigmoid(self.gate(x)) * x
        return x.sum(1) / lengths.clamp(min=1)[:, None]
