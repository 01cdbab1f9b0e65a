

class TransformerEncoder(nn.Module):
    def __init__(self, c, wide):
        super().__init__()
        self.c, self.width = c, c["width"]
        if wide != self.width:
            self.input = nn.Linear(wide, self.width)
        if c["position"] == "learned":
            self.positions = nn.Parameter(torch.zeros(c["longest"], self.width))
        self.layers = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        if c["norm_first"]:
            self.norm = nn.LayerNorm(self.width, c["eps"])
        if c["norm_input"]:
            self.input_norm = nn.LayerNorm(self.width, c["eps"])

    def forward(self, x, lengths):
        there = keep(lengths, x.shape[1])
        x = x * there[..., None]
        if hasattr(self, "input"):
            x = self.input(x)
        if self.c["position"] == "sinusoidal":
            x = x + sinusoids(x.shape[1], self.width)
        if self.c["position"] == "learned":
            x = x + self.positions[: x.shape[1]]
        if self.c["norm_input"]:
            x = self.input_norm(x)
        for block in self.layers:
            x = block(x, there[:, None, None, :])
        if self.c["norm_first"]:
            x = self.norm(x)
        return x * there[..., None], None
