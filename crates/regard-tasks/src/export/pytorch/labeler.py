

class Model(Reader):
    """Logits [B, N, labels] of token ids [B, N] with lengths [B], and characters [B, N, C] where the model reads them."""

    def __init__(self, c=CONFIG):
        super().__init__(c)
        self.encoder = encoder(c["encoder"], self.wide)
        head(self, self.encoder.width, c, c["labels"])

    def forward(self, x, lengths, characters=None):
        return answer(self, self.encoder(self.read(x, lengths, characters), lengths)[0])
