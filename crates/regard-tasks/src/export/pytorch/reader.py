

class Characters(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.padding = c["padding"]
        self.embedding = nn.Embedding(c["vocabulary"], c["width"])
        self.encoder = encoder(c["encoder"], c["width"])

    def forward(self, ids):
        b, n, c = ids.shape
        ids = ids.view(b * n, c)
        there = ids != self.padding
        lengths = (there * torch.arange(1, c + 1)).amax(1) if c else torch.zeros(b * n, dtype=torch.long)
        out, last = self.encoder(self.embedding(ids) * there[..., None], lengths)
        if last is None:
            out = out.masked_fill(~keep(lengths, c)[..., None], -math.inf).amax(1)
            last = torch.where((lengths > 0)[:, None], out, 0.0)
        return last.view(b, n, -1)


class Reader(nn.Module):
    """From token ids [B, N] or vectors [B, N, D] to what the encoder takes."""

    def __init__(self, c):
        super().__init__()
        tokens, self.neighbors = c["input"]["kind"] == "tokens", c["neighbors"] or 0
        self.wide = c["input"]["width"]
        if tokens:
            self.input = nn.Embedding(c["input"]["vocabulary"], self.wide)
        if c["characters"]:
            self.characters = Characters(c["characters"])
            self.wide += self.characters.encoder.width
        self.wide *= 2 * self.neighbors + 1

    def read(self, x, lengths, characters=None):
        x = self.input(x) if hasattr(self, "input") else x
        n = x.shape[1]
        x = torch.where(keep(lengths, n)[..., None], x, 0.0)
        if characters is not None:
            x = torch.cat([x, self.characters(characters)], 2)
        if self.neighbors:
            around = F.pad(x, (0, 0, self.neighbors, self.neighbors))
            x = torch.cat([around[:, at : at + n] for at in range(2 * self.neighbors + 1)], 2)
        return x


def head(model, width, c, classes):
    if c["hidden"]:
        model.hidden = nn.Linear(width, c["hidden"])
    model.out = nn.Linear(c["hidden"] or width, classes)


def answer(model, x):
    return model.out(F.relu(model.hidden(x)) if hasattr(model, "hidden") else x)
