

class Pooling(nn.Module):
    """From vectors [B, N, width] to one [B, width], or [B, queries · width]."""

    def __init__(self, c, width):
        super().__init__()
        self.kind = next(iter(c)) if isinstance(c, dict) else c
        if self.kind == "gate":
            self.gate = nn.Linear(width, width, bias=False)
        self.width, attends = width, self.kind in ("attention", "queries")
        if attends:
            queries, mechanism = (1, c["attention"]) if self.kind == "attention" else (c["queries"]["queries"], c["queries"]["mechanism"])
            self.width, self.query = queries * width, nn.Parameter(torch.zeros(queries, width))
            self.mechanism, self.weighting = Scores(mechanism["score"], width, width), mechanism["weighting"]

    def forward(self, x, lengths):
        there = keep(lengths, x.shape[1])
        if self.kind == "max":
            x = x.masked_fill(~there[..., None], -math.inf).amax(1)
            return torch.where((lengths > 0)[:, None], x, 0.0)
        if self.kind == "last":
            return x[torch.arange(len(x)), (lengths - 1).clamp(min=0)] * (lengths > 0)[:, None]
        x = x * there[..., None]
        if hasattr(self, "query"):
            return attend(self.mechanism, self.query.expand(len(x), -1, -1), x, there[:, None], self.weighting)[0].flatten(1)
        if self.kind == "gate":
            x = torch.sigmoid(self.gate(x)) * x
        return x.sum(1) / lengths.clamp(min=1)[:, None]
