

class Model(nn.Module):
    """Logits [B, classes] of images [B, C, height, width], their values less the mean over the deviation."""

    def __init__(self, c=CONFIG):
        super().__init__()
        widths, (height, width) = [c["channels"], *c["widths"]], c["image"]
        self.layers = nn.ModuleList(nn.Conv2d(a, b, c["kernel"], padding=c["kernel"] // 2) for a, b in zip(widths, widths[1:]))
        for _ in c["widths"]:
            height, width = height // 2, width // 2
        self.head = nn.Linear(widths[-1] * height * width, c["classes"])

    def forward(self, images):
        for layer in self.layers:
            images = F.max_pool2d(F.relu(layer(images)), 2)
        return self.head(images.flatten(1))
