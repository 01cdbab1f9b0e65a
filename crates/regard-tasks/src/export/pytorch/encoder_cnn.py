

class Convolution(nn.Module):
    def __init__(self, c, wide):
        super().__init__()
        self.c, self.width = c, c["width"]
        self.input = nn.Linear(wide, self.width)
        if c["position"] == "learned":
            self.positions = nn.Parameter(torch.zeros(c["longest"], self.width))
        self.layers = nn.ModuleList(nn.Conv1d(self.width, self.width, c["kernel"], padding=c["kernel"] // 2) for _ in range(c["layers"]))

    def forward(self, x, lengths):
        there = keep(lengths, x.shape[1])[..., None]
        x = self.input(x)
        if self.c["position"] == "sinusoidal":
            x = x + sinusoids(x.shape[1], self.width)
        if self.c["position"] == "learned":
            x = x + self.positions[: x.shape[1]]
        x = x * there
        for layer in self.layers:
            y = activate(layer(x.transpose(1, 2)).transpose(1, 2), self.c["activation"])
            x = (x + y) * math.sqrt(0.5) * there
        return x, None
