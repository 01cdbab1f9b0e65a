

class Layer(nn.Module):
    """Graph attention of either version, or the mean of the neighbors."""

    def __init__(self, c, wide, output, heads, concat):
        super().__init__()
        self.kind, self.heads, self.output, self.concat = c["layer"], heads, output, concat
        inner = heads * output
        if self.kind == "mean":
            self.lin = nn.Linear(wide, inner if concat else output)
            return
        if self.kind == "gat":
            self.lin = nn.Linear(wide, inner, bias=False)
            self.att_src, self.att_dst = nn.Parameter(torch.zeros(1, heads, output)), nn.Parameter(torch.zeros(1, heads, output))
        else:
            self.lin_l, self.lin_r = nn.Linear(wide, inner), nn.Linear(wide, inner)
            self.att = nn.Parameter(torch.zeros(1, heads, output))
        self.bias = nn.Parameter(torch.zeros(inner if concat else output))

    def forward(self, x, source, target):
        n = len(x)
        if self.kind == "mean":
            v, count = self.lin(x), torch.zeros(n).index_add(0, target, torch.ones(len(target)))
            return torch.zeros_like(v).index_add(0, target, v[source]) / count[:, None]
        split = lambda x: x.view(n, self.heads, self.output)
        if self.kind == "gat":
            v = split(self.lin(x))
            scores = (v * self.att_src).sum(2)[source] + (v * self.att_dst).sum(2)[target]
            scores = F.leaky_relu(scores, 0.2)
        else:
            v, query = split(self.lin_l(x)), split(self.lin_r(x))
            scores = (F.leaky_relu(v[source] + query[target], 0.2) * self.att).sum(2)
        highest = torch.full((n, self.heads), -math.inf).scatter_reduce(0, target[:, None].expand_as(scores), scores, "amax")
        weights = torch.exp(scores - highest[target])
        weights = weights / torch.zeros(n, self.heads).index_add(0, target, weights)[target]
        out = torch.zeros_like(v).index_add(0, target, weights[..., None] * v[source])
        return (out.flatten(1) if self.concat else out.mean(1)) + self.bias


class Model(nn.Module):
    """Logits [N, classes] of nodes' features [N, D] over edges [E, 2] from source to target."""

    def __init__(self, c=CONFIG):
        super().__init__()
        self.c, wide, layers = c, c["features"], []
        for at in range(c["layers"]):
            last = at + 1 == c["layers"]
            layers.append(Layer(c, wide, c["classes"] if last else c["hidden"], c["output_heads"] if last else c["heads"], not last))
            wide = c["heads"] * c["hidden"]
        self.layers = nn.ModuleList(layers)

    def forward(self, x, edges):
        source, target = edges.T
        if self.c["self_loops"] or self.c["layer"] == "mean":
            apart = source != target
            each = torch.arange(len(x))
            source, target = torch.cat([source[apart], each]), torch.cat([target[apart], each])
        for at, layer in enumerate(self.layers):
            x = layer(x, source, target)
            if at + 1 < len(self.layers):
                x = activate(x, self.c["activation"])
        return x
