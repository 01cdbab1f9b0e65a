

def sparse(scores, power):
    """Sparsemax (power 1) or 1.5-entmax (power 2) over the last axis, by bisection of the threshold."""
    scores = scores.double() / power
    high = scores.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    low = high - 1
    for _ in range(60):
        middle = (low + high) / 2
        more = ((scores - middle).clamp(min=0) ** power).sum(-1, keepdim=True) >= 1
        low, high = torch.where(more, middle, low), torch.where(more, high, middle)
    weights = (scores - low).clamp(min=0) ** power
    return (weights / weights.sum(-1, keepdim=True)).nan_to_num(0).float()


class Mechanism(nn.Module):
    """Scores of one query [1, D] and keys [B, N, D], and the weights they become."""

    def __init__(self, c, d):
        super().__init__()
        self.c, score = c, c["score"]
        self.kind, options = next(iter(score.items())) if isinstance(score, dict) else (score, {})
        self.options = options
        linear = lambda rows: nn.Linear(d, rows, bias=False)
        if self.kind == "additive":
            self.W_q, self.W_k, self.w_v = linear(options["hidden"]), linear(options["hidden"]), nn.Linear(options["hidden"], 1, bias=False)
        if self.kind == "low-rank":
            self.V, self.U = linear(options["rank"]), linear(options["rank"])
        if self.kind == "bilinear":
            self.W = nn.Parameter(torch.zeros(d, d))
        if self.kind == "concat":
            if options["hidden"]:
                self.W = nn.Parameter(torch.zeros(options["hidden"], 2 * d))
            self.w = nn.Parameter(torch.zeros(1, options["hidden"] or 2 * d))
        if self.kind == "gaussian" and options["learned"]:
            self.w = nn.Parameter(torch.zeros(d if options["per-feature"] else 1))
        if self.kind == "cosine" and options["learned"]:
            self.temperature = nn.Parameter(torch.zeros(1))

    def scores(self, q, k):
        d, options = k.shape[-1], self.options
        if self.kind == "dot":
            return (q * k).sum(-1)
        if self.kind == "scaled-dot":
            return (q * k).sum(-1) / math.sqrt(d)
        if self.kind == "additive":
            return self.w_v(torch.tanh(self.W_q(q) + self.W_k(k)))[..., 0]
        if self.kind == "low-rank":
            return (self.V(q) * self.U(k)).sum(-1)
        if self.kind == "bilinear":
            scale = {"none": 1.0, "root": d ** -0.5, "fourth-root": (d * d) ** -0.25}[options["scale"]]
            return (F.linear(q, self.W) * k).sum(-1) * scale
        if self.kind == "concat":
            both = torch.cat([q.expand_as(k), k], -1)
            return F.linear(torch.tanh(F.linear(both, self.W)) if options["hidden"] else both, self.w)[..., 0]
        if self.kind == "gaussian":
            return -0.5 * ((getattr(self, "w", options["inverse-width"]) * (q - k)) ** 2).sum(-1)
        if self.kind == "cosine":
            return getattr(self, "temperature", options["temperature"]) * F.cosine_similarity(q, k, -1)
        raise NotImplementedError(f"the score {self.kind}")

    def forward(self, q, k, there):
        scores = self.scores(q, k) / self.c["temperature"]
        scores = scores.masked_fill(~there, -math.inf)
        weighting = self.c["weighting"]
        if weighting in ("softmax", "gumbel"):
            return scores.softmax(-1).nan_to_num(0)
        if weighting in ("sparsemax", "entmax15"):
            return sparse(scores, 1 if weighting == "sparsemax" else 2)
        if weighting == "sigmoid":
            return scores.sigmoid()
        if weighting == "none":
            return scores.masked_fill(~there, 0.0)
        return F.one_hot(scores.argmax(-1), k.shape[1]).float() * there.any(-1, keepdim=True)


class Pooling(nn.Module):
    """From vectors [B, N, width] to one [B, width]."""

    def __init__(self, c, width):
        super().__init__()
        self.kind = next(iter(c)) if isinstance(c, dict) else c
        if self.kind == "gate":
            self.gate = nn.Linear(width, width, bias=False)
        if self.kind == "attention":
            self.query = nn.Parameter(torch.zeros(1, width))
            self.mechanism = Mechanism(c["attention"], width)

    def forward(self, x, lengths):
        there = keep(lengths, x.shape[1])
        if self.kind == "max":
            x = x.masked_fill(~there[..., None], -math.inf).amax(1)
            return torch.where((lengths > 0)[:, None], x, 0.0)
        if self.kind == "last":
            return x[torch.arange(len(x)), (lengths - 1).clamp(min=0)] * (lengths > 0)[:, None]
        x = x * there[..., None]
        if self.kind == "attention":
            return (self.mechanism(self.query, x, there)[..., None] * x).sum(1)
        if self.kind == "gate":
            x = torch.sigmoid(self.gate(x)) * x
        return x.sum(1) / lengths.clamp(min=1)[:, None]


class Model(Reader):
    """Logits [B, classes] of token ids [B, N] or vectors [B, N, D] with lengths [B]."""

    def __init__(self, c=CONFIG):
        super().__init__(c)
        self.encoder = encoder(c["encoder"], self.wide)
        self.kind = c["pooling"]
        if self.kind == "class-token":
            self.class_token = nn.Parameter(torch.zeros(1, self.wide))
        else:
            self.pooling = Pooling(c["pooling"], self.encoder.width)
        head(self, self.encoder.width, c, c["classes"])

    def forward(self, x, lengths, characters=None):
        x = self.read(x, lengths, characters)
        if self.kind == "class-token":
            x = torch.cat([self.class_token.expand(len(x), 1, -1), x], 1)
            return answer(self, self.encoder(x, lengths + 1)[0][:, 0])
        out, last = self.encoder(x, lengths)
        if self.kind == "last" and last is not None:
            return answer(self, last)
        return answer(self, self.pooling(out, lengths))
