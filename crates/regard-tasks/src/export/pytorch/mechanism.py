

def sparse(scores, power):
    """Sparsemax (power 1) or 1.5-entmax (power 2) over the last axis, by bisection of the threshold."""
    scores = scores.double() / power
    high = scores.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    low = high - 1
    for _ in range(60):
        middle = (low + high) / 2
        more = ((scores - middle).clamp(min=0) ** power).sum(-1, keepdim=True) >= 1
        low, high = torch.where(more, middle, low), torch.where(more, high, middle)
    weights = (scores - low).clamp(min=0) ** power
    return (weights / weights.sum(-1, keepdim=True)).nan_to_num(0).float()


def weigh(scores, seen, weighting):
    """Weights of scores over the last axis, 0 where a key is not seen."""
    scores = scores.masked_fill(~seen, -math.inf)
    if weighting in ("softmax", "gumbel"):
        return scores.softmax(-1).nan_to_num(0)
    if weighting in ("sparsemax", "entmax15"):
        return sparse(scores, 1 if weighting == "sparsemax" else 2)
    if weighting == "sigmoid":
        return scores.sigmoid()
    if weighting == "none":
        return scores.masked_fill(~seen, 0.0)
    # Whatever else draws or chooses while learning takes the best key in use.
    best = F.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)
    return best * (scores > -math.inf).any(-1, keepdim=True)


FUNCTIONS = {
    "sum": lambda x: x.sum(-1, keepdim=True),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "norm": lambda x: x.square().sum(-1, keepdim=True).sqrt(),
    "leaky_relu": lambda x, slope: torch.where(x > 0, x, slope * x),
    "max": torch.maximum,
    "min": torch.minimum,
    "relu": F.relu,
    "gelu": F.gelu,
    "softplus": F.softplus,
    **{name: getattr(torch, name) for name in ("square", "sqrt", "abs", "exp", "log", "tanh", "sigmoid", "sin", "cos")},
}


def written(text, names):
    """The value of a score that is written as text, rows having their numbers in the last axis."""

    def value(node):
        if isinstance(node, ast.Name):
            return names[node.id[2:]]
        if isinstance(node, ast.Constant):
            return torch.tensor(float(node.value))
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand)
        if isinstance(node, ast.Call):
            return FUNCTIONS[node.func.id[2:]](*map(value, node.args))
        a, b = value(node.left), value(node.right)
        if isinstance(node.op, ast.MatMult):
            return (a * b).sum(-1, keepdim=True)
        return {ast.Add: torch.add, ast.Sub: torch.sub, ast.Mult: torch.mul, ast.Div: torch.div}[type(node.op)](a, b)

    # A parameter may be called as Python calls something else.
    text = re.sub(r"(?<![\w.])([^\W\d]\w*)", r"x_\1", text)
    return value(ast.parse(text.strip(), mode="eval").body)


class Matrix(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(*shape))


def project(x, weight):
    return x @ weight.transpose(-1, -2)


class Scores(nn.Module):
    """Scores [B, H, Nq, Nk] of queries [B, H, Nq, Dq] and keys [B, H, Nk, Dk]; each of `heads` has parameters of its own."""

    def __init__(self, score, dq, dk, heads=None):
        super().__init__()
        self.kind, self.options = next(iter(score.items())) if isinstance(score, dict) else (score, {})
        self.dq, o, own = dq, self.options, [heads] if heads else []
        if self.kind == "additive":
            self.W_q, self.W_k, self.w_v = Matrix(*own, o["hidden"], dq), Matrix(*own, o["hidden"], dk), Matrix(*own, 1, o["hidden"])
        if self.kind == "low-rank":
            self.V, self.U = Matrix(*own, o["rank"], dq), Matrix(*own, o["rank"], dk)
        if self.kind == "bilinear":
            self.W = nn.Parameter(torch.zeros(*own, dk, dq))
        if self.kind == "concat":
            if o["hidden"]:
                self.W = nn.Parameter(torch.zeros(*own, o["hidden"], dq + dk))
            self.w = nn.Parameter(torch.zeros(*own, 1, o["hidden"] or dq + dk))
        apart = [heads, 1] if heads else []
        if self.kind == "gaussian" and o["learned"]:
            self.w = nn.Parameter(torch.zeros(*apart, dk if o["per-feature"] else 1))
        if self.kind == "cosine" and o["learned"]:
            self.temperature = nn.Parameter(torch.zeros(*apart, 1))
        self.names = []
        if self.kind == "expression":
            words = re.findall(r"(?<![\w.])[^\W\d]\w*", o["score"])
            self.names = sorted({word for word in words if word not in {"q", "k", "d", "pi", *FUNCTIONS}})
            for name in self.names:
                self._parameters[name] = nn.Parameter(torch.zeros(*own, 1 if name in o["numbers"] else dk))

    def tanh(self, q, k, w):
        return (torch.tanh(q[..., :, None, :] + k[..., None, :, :]) * w.unsqueeze(-2)).sum(-1)

    def forward(self, q, k):
        o, (dq, dk) = self.options, (q.shape[-1], k.shape[-1])
        if self.kind in ("dot", "scaled-dot"):
            return project(q, k) / (math.sqrt(dk) if self.kind == "scaled-dot" else 1.0)
        if self.kind == "additive":
            return self.tanh(project(q, self.W_q.weight), project(k, self.W_k.weight), self.w_v.weight)
        if self.kind == "low-rank":
            return project(project(q, self.V.weight), project(k, self.U.weight))
        if self.kind == "bilinear":
            return project(project(q, self.W), k) * {"none": 1.0, "root": dk**-0.5, "fourth-root": (dq * dk) ** -0.25}[o["scale"]]
        if self.kind == "concat":
            of_q, of_k = (self.W if o["hidden"] else self.w).split([dq, dk], -1)
            q, k = project(q, of_q), project(k, of_k)
            return self.tanh(q, k, self.w) if o["hidden"] else q + k.transpose(-1, -2)
        if self.kind == "gaussian":
            w = getattr(self, "w", o["inverse-width"])
            return -0.5 * ((w * q)[..., :, None, :] - (w * k)[..., None, :, :]).square().sum(-1)
        if self.kind == "cosine":
            unit = lambda x: x / (x.square().sum(-1, keepdim=True) + 1e-24).sqrt()
            return project(getattr(self, "temperature", o["temperature"]) * unit(q), unit(k))
        if self.kind == "expression":
            row = lambda p: p if p.dim() == 1 else p[:, None, None, :]
            names = {name: row(self._parameters[name]) for name in self.names}
            names |= {"q": q[..., :, None, :], "k": k[..., None, :, :], "d": torch.tensor(float(dk)), "pi": torch.tensor(math.pi)}
            scores = written(o["score"], names)
            return (scores + torch.zeros(*q.shape[:-1], k.shape[-2], 1))[..., 0]
        raise NotImplementedError(f"the score {self.kind}")


def attend(scores, q, k, seen, weighting, v=None):
    """One head: queries [B, Nq, Dq] over keys [B, Nk, Dk] that are seen [B, 1, Nk]; gives vectors and weights."""
    weights = weigh(scores(q[:, None], k[:, None]), seen[:, None], weighting)[:, 0]
    return weights @ (k if v is None else v), weights
