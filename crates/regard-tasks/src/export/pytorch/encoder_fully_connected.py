

class FullyConnected(nn.Module):
    def __init__(self, c, wide):
        super().__init__()
        self.longest, self.width = c["longest"], c["width"]
        self.hidden, self.out = nn.Linear(self.longest * wide, c["hidden"]), nn.Linear(c["hidden"], self.longest * self.width)

    def forward(self, x, lengths):
        b, n, _ = x.shape
        there = keep(lengths, n)[..., None]
        filled = F.pad(x * there, (0, 0, 0, self.longest - n)).flatten(1)
        out = self.out(F.relu(self.hidden(filled))).view(b, self.longest, self.width)
        return out[:, :n] * there, None
