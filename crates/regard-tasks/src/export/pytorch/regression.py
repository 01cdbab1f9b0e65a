

class Model(nn.Module):
    """y [M, 1] at x [M, D], the latter less the mean over the deviation."""

    def __init__(self, c=CONFIG):
        super().__init__()
        self.c = c
        self.keys, self.values = nn.Parameter(torch.zeros(c["points"], c["features"])), nn.Parameter(torch.zeros(c["points"], c["outputs"]))
        gaussian = {"inverse-width": c["inverse_width"], "learned": c["learned"], "per-feature": c["per_feature"]}
        scores = Scores(c["score"] or {"gaussian": gaussian}, c["features"], c["features"])
        # Its parameters have their names here, without a prefix.
        self._parameters.update(scores._parameters)
        self._modules.update(scores._modules)
        self.scores = [scores]

    def forward(self, x):
        scores = self.scores[0](x[None, None], self.keys[None, None])[0, 0]
        distances = torch.cdist(x.double(), self.keys.double())
        order = distances.argsort(dim=-1, stable=True).argsort(dim=-1)
        seen = order < (self.c["nearest"] or self.c["points"])
        if self.c["windowed"]:
            within = distances * self.c["inverse_width"] <= 1
            seen, scores = (seen & within) | (order == 0), torch.zeros_like(scores)
        return scores.masked_fill(~seen, -math.inf).softmax(-1) @ self.values
