

class DecoderLayer(nn.Conv1d):
    def __init__(self, c, wide):
        width = c["decoder"]["width"]
        super().__init__(width, width, c["decoder"]["kernel"])
        if c["context"]["kind"] == "attention":
            self.query, self.attention = nn.Linear(width, width), Scores(c["context"]["score"], width, wide)
        self.context = nn.Linear(wide, width, bias=False)


class ConvolutionalDecoder(nn.Module):
    def __init__(self, c, wide):
        super().__init__()
        self.c, d = c, c["decoder"]
        self.width, self.input = d["width"], nn.Linear(c["embedding"], d["width"])
        if d["position"] == "learned":
            self.positions = nn.Parameter(torch.zeros(d["longest"], self.width))
        self.layers = nn.ModuleList(DecoderLayer(c, wide) for _ in range(d["layers"]))

    def forward(self, y, out, fixed, there):
        d, weights = self.c["decoder"], None
        x = y = placed(self, self.input(y), d["position"])
        for layer in self.layers:
            before = F.pad(x.transpose(1, 2), (d["kernel"] - 1, 0))
            h = activate(F.conv1d(before, layer.weight, layer.bias).transpose(1, 2), d["activation"])
            context = fixed[:, None]
            if hasattr(layer, "attention"):
                context, weights = attend(layer.attention, layer.query(h) + y, out, there[:, None], self.c["context"]["weighting"])
            x = (x + (h + layer.context(context)) * math.sqrt(0.5)) * math.sqrt(0.5)
        return x, weights
