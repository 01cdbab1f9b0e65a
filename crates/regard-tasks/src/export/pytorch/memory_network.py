

class Hop(nn.Module):
    def __init__(self, c, width):
        super().__init__()
        self.key, self.value = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        if c["times"]:
            self.key_times, self.value_times = nn.Parameter(torch.zeros(c["times"], width)), nn.Parameter(torch.zeros(c["times"], width))
        self.mechanism = Scores(c["mechanism"]["score"], width, width)


class Model(nn.Module):
    """Logits [B, answers] of stories [B, S, W] of token ids with S or fewer sentences each (lengths [B]), and questions [B, Q]."""

    def __init__(self, c=CONFIG):
        super().__init__()
        self.c, width = c, c["width"]
        self.embedding = nn.Embedding(c["vocabulary"], width)
        if c["encoder"]["kind"] != "none":
            self.encoder = encoder(c["encoder"], width)
            width = self.encoder.width
        self.question = nn.Linear(width, width, bias=False)
        self.hops = nn.ModuleList(Hop(c, width) for _ in range(1 if c["shared"] else c["hops"]))
        self.out = nn.Linear(width, c["answers"])

    def read(self, ids):
        """A vector [N, width] of each sentence [N, W]."""
        (_, w), there = ids.shape, ids != self.c["padding"]
        lengths = (there * torch.arange(1, w + 1)).amax(1)
        x = self.embedding(ids) * math.sqrt(self.c["width"])
        if hasattr(self, "encoder"):
            return summary(*self.encoder(x, lengths), lengths)
        if not self.c["positions"]:
            return x.sum(1)
        share = (torch.arange(1, w + 1)[None] / lengths.clamp(min=1)[:, None])[..., None]
        feature = torch.arange(1, x.shape[2] + 1) / x.shape[2]
        return (x * (1 - share)).sum(1) + (x * (2 * share - 1)).sum(1) * feature

    def forward(self, sentences, lengths, questions):
        b, s, w = sentences.shape
        memory, state = self.read(sentences.view(b * s, w)).view(b, s, -1), self.question(self.read(questions))
        ages = (lengths[:, None] - torch.arange(1, s + 1)).clamp(0, max(self.c["times"] - 1, 0))
        for at in range(self.c["hops"]):
            hop = self.hops[min(at, len(self.hops) - 1)]
            k, v = hop.key(memory), hop.value(memory)
            if self.c["times"]:
                k, v = k + hop.key_times[ages], v + hop.value_times[ages]
            found, _ = attend(hop.mechanism, state[:, None], k, keep(lengths, s)[:, None], self.c["mechanism"]["weighting"], v)
            state = state + found[:, 0] if self.c["carry"] else found[:, 0]
        return self.out(state)
