

class Model(nn.Module):
    """y [M, 1] at x [M, D], the latter less the mean over the deviation."""

    def __init__(self, c=CONFIG):
        super().__init__()
        self.keys, self.values = nn.Parameter(torch.zeros(c["points"], c["features"])), nn.Parameter(torch.zeros(c["points"], c["outputs"]))
        if c["learned"]:
            self.w = nn.Parameter(torch.zeros(c["features"] if c["per_feature"] else 1))
        self.inverse_width = c["inverse_width"]

    def forward(self, x):
        w = getattr(self, "w", self.inverse_width)
        scores = -0.5 * ((w * (x[:, None] - self.keys)) ** 2).sum(-1)
        return scores.softmax(-1) @ self.values
