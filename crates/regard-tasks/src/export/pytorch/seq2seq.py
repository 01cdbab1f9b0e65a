

def placed(module, x, position):
    """Vectors [B, N, width] with their places added."""
    if position == "sinusoidal":
        return x + sinusoids(x.shape[1], x.shape[2])
    return x + module.positions[: x.shape[1]] if position == "learned" else x


class Patches(nn.Module):
    """Patches of images [B, C, height, width] as vectors that know their row and column."""

    def __init__(self, c, width):
        super().__init__()
        self.side, rows, columns = c["patch"], c["image"][0] // c["patch"], c["image"][1] // c["patch"]
        self.patch = nn.Linear(c["channels"] * self.side**2, width)
        self.row, self.column = nn.Parameter(torch.zeros(rows, width)), nn.Parameter(torch.zeros(columns, width))

    def forward(self, images):
        patches = F.unfold(images, self.side, stride=self.side).transpose(1, 2)
        return self.patch(patches) + (self.row[:, None] + self.column[None]).flatten(0, 1)


class Bias(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(n))


class Model(nn.Module):
    """Scores [B, T + 1, vocabulary] of the token at each place, those before it being the target's [B, T]: of a model that
    copies their logarithms, with the words that only the sources have behind the vocabulary's.

    The source is token ids [B, N], vectors [B, N, D] or images [B, C, height, width]; lengths [B] say how many there are of each.
    Where words are copied, copies [B, N] has the target's id of each word of the source."""

    def __init__(self, c=CONFIG):
        super().__init__()
        self.c, source, wide = c, c["source"], c["embedding"]
        self.target = nn.Embedding(c["target_vocabulary"], wide)
        if source["kind"] == "tokens" and c["tied"] != "all":
            self.source = nn.Embedding(source["vocabulary"], wide)
        if source["kind"] == "patches":
            self.source = Patches(source, wide)
        self.encoder = encoder(c["encoder"], source["width"] if source["kind"] == "vectors" else wide)
        if c["context"]["kind"] == "pooled":
            self.pooling = Pooling(c["context"]["pooling"], self.encoder.width)
        self.decoder = {decoders}[c["decoder"]["kind"]](c, self.encoder.width)
        width = self.decoder.width
        self.output = nn.Linear(width, c["target_vocabulary"]) if c["tied"] == "none" else Bias(c["target_vocabulary"])
        if c["copying"]:
            self.copying = nn.Linear(width, 1)

    def embedded(self, table, ids, reader):
        return table(ids) * (math.sqrt(self.c["embedding"]) if self.c[reader].get("kind") == "transformer" else 1.0)

    def encode(self, source, lengths):
        kind = self.c["source"]["kind"]
        if kind == "tokens":
            source = self.embedded(self.target if self.c["tied"] == "all" else self.source, source, "encoder")
        if kind == "patches":
            source = self.source(source)
        there = keep(lengths, source.shape[1])
        out, last = self.encoder(torch.where(there[..., None], source, 0.0), lengths)
        pooled = hasattr(self, "pooling")
        return out, self.pooling(out, lengths) if pooled else summary(out, last, lengths), there

    def decode(self, encoded, target, copies=None):
        start = torch.full((len(target), 1), self.c["start"], dtype=target.dtype)
        given, known = torch.cat([start, target], 1), self.c["target_vocabulary"]
        given = torch.where(given < known, given, self.c["unknown"])
        hidden, weights = self.decoder(self.embedded(self.target, given, "decoder"), *encoded)
        logits = self.output(hidden) if self.c["tied"] == "none" else F.linear(hidden, self.target.weight, self.output.bias)
        if not self.c["copying"]:
            return logits
        gate, words = torch.sigmoid(self.copying(hidden)), max(known, int(copies.max()) + 1)
        mixed = F.pad(gate * logits.softmax(-1), (0, words - known))
        return (mixed.scatter_add(2, copies[:, None].expand_as(weights), (1 - gate) * weights) + 1e-10).log()

    def forward(self, source, lengths, target, copies=None):
        return self.decode(self.encode(source, lengths), target, copies)

    @torch.no_grad()
    def greedy(self, source, lengths, longest, copies=None):
        """The likeliest token at each place, [B, at most longest]; behind its end a row means nothing."""
        encoded, target = self.encode(source, lengths), torch.zeros(len(lengths), 0, dtype=torch.long)
        ended = torch.zeros(len(lengths), dtype=torch.bool)
        while target.shape[1] < longest and not ended.all():
            best = self.decode(encoded, target, copies)[:, -1].argmax(-1)
            target, ended = torch.cat([target, best[:, None]], 1), ended | (best == self.c["end"])
        return target
