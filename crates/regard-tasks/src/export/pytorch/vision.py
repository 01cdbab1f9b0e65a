

class Model(nn.Module):
    """Logits [B, classes] of images [B, C, height, width], their values less the mean over the deviation."""

    def __init__(self, c=CONFIG):
        super().__init__()
        self.c, width = c, c["width"]
        block = {**c, "window": None, "activation": "gelu", "norm_first": True}
        self.patch = nn.Linear(c["channels"] * c["patch"] ** 2, width)
        rows, columns = (side // c["patch"] for side in c["image"])
        token = c["pooling"] == "class-token"
        if token:
            self.class_token = nn.Parameter(torch.zeros(1, width))
        places = rows * columns + token
        if c["position"] == "learned":
            self.position = nn.Parameter(torch.zeros(places, width))
        self.seen = torch.ones(places, places, dtype=torch.bool)
        if c["window"] is not None:
            at = torch.arange(rows * columns)
            at = torch.stack([at // columns, at % columns], -1)
            near = (at[:, None] - at[None, :]).abs().amax(-1) <= c["window"]
            self.seen[int(token) :, int(token) :] = near
        self.blocks = nn.ModuleList(Block(block) for _ in range(c["depth"]))
        self.norm = nn.LayerNorm(width, c["eps"])
        self.head = nn.Linear(width, c["classes"])

    def forward(self, images):
        x = self.patch(F.unfold(images, self.c["patch"], stride=self.c["patch"]).transpose(1, 2))
        if hasattr(self, "class_token"):
            x = torch.cat([self.class_token.expand(len(x), 1, -1), x], 1)
        if hasattr(self, "position"):
            x = x + self.position
        if self.c["position"] == "sinusoidal":
            x = x + sinusoids(x.shape[1], self.c["width"])
        for block in self.blocks:
            x = block(x, self.seen[None, None])
        x = self.norm(x)
        return self.head(x[:, 0] if hasattr(self, "class_token") else x.mean(1))
