

class Model(nn.Module):
    """Logits [B, classes] of images [B, C, height, width], their values less the mean over the deviation."""

    def __init__(self, c=CONFIG):
        super().__init__()
        self.c, width = c, c["width"]
        block = {**c, "position": "none", "window": None, "activation": "gelu", "norm_first": True, "score": "scaled-dot", "weighting": "softmax"}
        self.patch = nn.Linear(c["channels"] * c["patch"] ** 2, width)
        patches = c["image"][0] // c["patch"] * (c["image"][1] // c["patch"])
        token = c["pooling"] == "class-token"
        if token:
            self.class_token = nn.Parameter(torch.zeros(1, width))
        self.position = nn.Parameter(torch.zeros(patches + token, width))
        self.blocks = nn.ModuleList(Block(block) for _ in range(c["depth"]))
        self.norm = nn.LayerNorm(width, c["eps"])
        self.head = nn.Linear(width, c["classes"])

    def forward(self, images):
        x = self.patch(F.unfold(images, self.c["patch"], stride=self.c["patch"]).transpose(1, 2))
        if hasattr(self, "class_token"):
            x = torch.cat([self.class_token.expand(len(x), 1, -1), x], 1)
        x = x + self.position
        seen = torch.ones(1, 1, 1, x.shape[1], dtype=torch.bool)
        for block in self.blocks:
            x = block(x, seen)
        x = self.norm(x)
        return self.head(x[:, 0] if hasattr(self, "class_token") else x.mean(1))
