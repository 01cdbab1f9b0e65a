

def among_neighbors(scores, target, n, weighting):
    """The weights [E, H] of scores [E, H] among the edges that lead to one of n nodes."""
    if weighting == "softmax":
        heads = scores.shape[1]
        highest = torch.full((n, heads), float("-inf")).scatter_reduce(0, target[:, None].expand_as(scores), scores, "amax")
        weights = torch.exp(scores - highest[target])
        return weights / torch.zeros(n, heads).index_add(0, target, weights)[target]
    order = torch.argsort(target, stable=True)
    count = torch.bincount(target, minlength=n)
    place = torch.arange(len(target)) - (count.cumsum(0) - count)[target[order]]
    most = int(count.max()) if len(target) else 0
    table = torch.zeros(n, most, scores.shape[1])
    table[target[order], place] = scores[order]
    weights = weigh(table.transpose(1, 2), keep(count, most)[:, None], weighting).transpose(1, 2)
    out = torch.zeros_like(scores)
    out[order] = weights[target[order], place]
    return out


class Layer(nn.Module):
    """Graph attention of either version, by dot products, or the mean of the neighbors."""

    def __init__(self, c, wide, output, heads, concat):
        super().__init__()
        self.kind, self.heads, self.output, self.concat = c["layer"], heads, output, concat
        self.weighting, inner, vector = c["weighting"], heads * output, lambda: nn.Parameter(torch.zeros(1, heads, output))
        if self.kind == "mean":
            self.lin = nn.Linear(wide, inner if concat else output)
            return
        if self.kind == "gat":
            self.lin = nn.Linear(wide, inner, bias=False)
            self.att_src, self.att_dst = vector(), vector()
        elif self.kind == "gatv2":
            self.lin_l, self.lin_r, self.att = nn.Linear(wide, inner), nn.Linear(wide, inner), vector()
        else:
            self.lin_query, self.lin_key, self.lin_value = nn.Linear(wide, inner), nn.Linear(wide, inner), nn.Linear(wide, inner)
        if c["edge_width"]:
            self.lin_edge = nn.Linear(c["edge_width"], inner, bias=False)
            if self.kind == "gat":
                self.att_edge = vector()
        self.bias = nn.Parameter(torch.zeros(inner if concat else output))

    def forward(self, x, source, target, edge_weights, edge_features):
        n = len(x)
        bias = 0.0 if edge_weights is None else edge_weights.log()[:, None]
        if self.kind == "mean":
            v = self.lin(x)
            weights = among_neighbors(torch.zeros(len(target), 1) + bias, target, n, "softmax")
            return torch.zeros_like(v).index_add(0, target, weights * v[source])
        split = lambda x: x.view(len(x), self.heads, self.output)
        edge = split(self.lin_edge(edge_features)) if edge_features is not None else torch.zeros(1, self.heads, self.output)
        if self.kind == "gat":
            v = split(self.lin(x))
            scores = (v * self.att_src).sum(2)[source] + (v * self.att_dst).sum(2)[target]
            if edge_features is not None:
                scores = scores + (edge * self.att_edge).sum(2)
            scores = F.leaky_relu(scores, 0.2)
        elif self.kind == "gatv2":
            v, query = split(self.lin_l(x)), split(self.lin_r(x))
            scores = (F.leaky_relu(v[source] + query[target] + edge, 0.2) * self.att).sum(2)
        else:
            query, key, v = split(self.lin_query(x)), split(self.lin_key(x)), split(self.lin_value(x))
            scores = (query[target] * (key[source] + edge)).sum(2)
            scores = scores / math.sqrt(self.output) if self.kind == "scaled-dot" else scores
        weights = among_neighbors(scores + bias, target, n, self.weighting)
        out = torch.zeros_like(v).index_add(0, target, weights[..., None] * v[source])
        return (out.flatten(1) if self.concat else out.mean(1)) + self.bias


class Model(nn.Module):
    """Logits [N, classes] of nodes' features [N, D] over edges [E, 2] from source to target; where nodes are pooled, logits [B, classes] of graphs of these sizes [B], one after the other."""

    def __init__(self, c=CONFIG):
        super().__init__()
        self.c, wide, layers = c, c["features"], []
        for at in range(c["layers"]):
            last = at + 1 == c["layers"] and not c["pooling"]
            layers.append(Layer(c, wide, c["classes"] if last else c["hidden"], c["output_heads"] if last else c["heads"], not last))
            wide = c["heads"] * c["hidden"]
        self.layers = nn.ModuleList(layers)
        if c["pooling"]:
            self.pooling = Pooling(c["pooling"], wide)
            self.out = nn.Linear(self.pooling.width, c["classes"])

    def forward(self, x, edges, sizes=None, edge_weights=None, edge_features=None):
        source, target = edges.T
        if self.c["self_loops"] or self.c["layer"] == "mean":
            apart, each, n = source != target, torch.arange(len(x)), len(x)
            source, target = source[apart], target[apart]
            if edge_weights is not None:
                edge_weights = torch.cat([edge_weights[apart], torch.ones(n)])
            if edge_features is not None:
                # A self-loop has the mean of the edges into its node.
                kept = edge_features[apart]
                count = torch.bincount(target, minlength=n).clamp(min=1)[:, None]
                mean = torch.zeros(n, kept.shape[1]).index_add(0, target, kept) / count
                edge_features = torch.cat([kept, mean])
            source, target = torch.cat([source, each]), torch.cat([target, each])
        for at, layer in enumerate(self.layers):
            x = layer(x, source, target, edge_weights, edge_features)
            if at + 1 < len(self.layers) or self.c["pooling"]:
                x = activate(x, self.c["activation"])
        if not self.c["pooling"]:
            return x
        x = nn.utils.rnn.pad_sequence(x.split(sizes.tolist()), batch_first=True)
        return self.out(self.pooling(x, sizes))
