

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
        wide = self.encoder.width if self.kind in ("class-token", "last") else self.pooling.width
        head(self, wide, c, c["classes"])

    def forward(self, x, lengths, characters=None):
        x = self.read(x, lengths, characters)
        if self.kind == "class-token":
            x = torch.cat([self.class_token.expand(len(x), 1, -1), x], 1)
            return answer(self, self.encoder(x, lengths + 1)[0][:, 0])
        out, last = self.encoder(x, lengths)
        if self.kind == "last" and last is not None:
            return answer(self, last)
        return answer(self, self.pooling(out, lengths))
