"""Graph attention: GAT and GATv2 with torch_geometric's signatures and state dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parameter import is_lazy

from .._tensors import is_observed
from ..edges import Edges, EveryEdge, remembered
from ..operator import attention
from ..score import Additive


#: What is named where it is something else.
_USUAL = {
    "concat": True, "negative_slope": 0.2, "dropout": 0.0, "add_self_loops": True, "edge_dim": None, "residual": False,
    "share_weights": False, "flow": "source_to_target", "beta": False, "root_weight": True,
}  # fmt: skip


class _Projection(nn.LazyLinear):
    """Of inputs whose width is known with the first of them, with Glorot's first values."""

    def reset_parameters(self) -> None:
        if not isinstance(self.weight, nn.parameter.UninitializedParameter) and self.in_features != 0:
            _glorot(self.weight)
            if self.bias is not None:
                nn.init.zeros_(self.bias)


def _linear(in_channels: int, out_channels: int, bias: bool = False) -> nn.Linear:
    return nn.Linear(in_channels, out_channels, bias) if in_channels != -1 else _Projection(out_channels, bias)


def _glorot(x: Tensor) -> None:
    rows, columns = x.shape[-2:]
    limit = (6.0 / (rows + columns)) ** 0.5
    nn.init.uniform_(x, -limit, limit)


class _Graph(nn.Module):
    """What every kind of graph attention shares: nodes, edges, and the call along them."""

    def __init__(self, in_channels: int | tuple[int, int], out_channels: int, heads: int, flow: str) -> None:
        super().__init__()
        if flow not in ("source_to_target", "target_to_source"):
            raise ValueError(f"flow is {flow!r}; there are 'source_to_target' and 'target_to_source'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.heads = heads
        self.flow = flow
        self.dropout = 0.0

    def _check_nodes(self, x: Any) -> None:
        """A batch of graphs is one graph of all their nodes; flattened, its edges would join the wrong ones."""
        for name, nodes in (("x", x),) if isinstance(x, Tensor) else zip(("the sources", "the targets"), x):
            if nodes is not None and nodes.dim() != 2:
                raise ValueError(f"{name} of {type(self).__name__} has shape {list(nodes.shape)}; it wants nodes [N, F]")

    def _index(self, edge_index: Any, need: bool) -> Tensor:
        """``[2, E]`` of an adjacency of either form. A sparse one is torch_geometric's ``adj_t``, targets by sources."""
        if not isinstance(edge_index, Tensor):
            raise TypeError(f"edge_index is {type(edge_index).__name__}; it wants [2, E], sources then targets, or torch's sparse adj_t")
        if edge_index.layout is torch.strided:
            if edge_index.dim() != 2 or edge_index.shape[0] != 2:
                raise ValueError(f"edge_index has shape {list(edge_index.shape)}; it wants [2, E], sources then targets")
            return edge_index
        if need:
            raise ValueError("return_attention_weights with a sparse adjacency; give its edges as edge_index [2, E]")
        if self.flow != "source_to_target":
            raise ValueError("flow is 'target_to_source'; a sparse adjacency is of targets by sources, and wants the other")
        if edge_index.dim() - edge_index.dense_dim() != 2:
            raise ValueError(f"edge_index is {edge_index.layout} of shape {list(edge_index.shape)}; it wants adj_t [Nt, Ns]")
        if edge_index.dense_dim() > 0:
            raise ValueError("edge_index is sparse and has features; give them as edge_attr beside edge_index [2, E]")
        if edge_index.requires_grad:
            raise TypeError("edge_index is sparse and requires a gradient; what it holds is not read, its places alone are")
        index: Tensor = edge_index.to_sparse_coo().coalesce().indices().flip(0)
        return index

    def _split(self, x: Tensor) -> Tensor:
        return x.view(-1, self.heads, self.out_channels)

    def _check_features(self, edge_attr: Any, index: Tensor, lin_edge: nn.Linear | None) -> None:
        if edge_attr is None:
            return
        if lin_edge is None:
            raise ValueError("edge_attr was given; the layer was made without edge_dim")
        if edge_attr.dim() not in (1, 2) or edge_attr.shape[0] != index.shape[1]:
            raise ValueError(f"edge_attr has shape {list(edge_attr.shape)}; it wants a row for each of {index.shape[1]} edges")

    def _features(self, edge_attr: Tensor, lin_edge: nn.Linear) -> Tensor:
        """Of each edge, one feature vector for each head."""
        return self._split(lin_edge(edge_attr.view(-1, 1) if edge_attr.dim() == 1 else edge_attr))

    def _by_edge(self, index: Tensor) -> Tensor:
        """Keys, then queries."""
        return index if self.flow == "source_to_target" else _flipped(index)

    def _attend(
        self,
        qkv: tuple[Tensor, Tensor, Tensor],
        score: Any,
        index: Tensor,
        features: tuple[Tensor | None, Tensor | None],
        need: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """query ``[Nt, H, D]``, key ``[Ns, H, D]``, value ``[Ns, H, C]`` give ``[Nt, H, C]``, and ``[E, H]``. The
        ``features`` of an edge join the key and the value that are seen along it."""
        query, key, value = qkv
        # Under a tracer or a transform edge by edge: the edges cannot be sorted then.
        if not torch.compiler.is_compiling() and is_observed(query, key, value, index):
            return self._along_edges(qkv, score, index, features, need)
        edges: Any = EveryEdge(index)
        if features[0] is not None or features[1] is not None:
            # Each edge is a key of its own.
            edges = _to_own_keys(index, query.shape[0])
            key, value = (_joined(x.index_select(0, index[0]), more) for x, more in zip((key, value), features))
        result: Any = attention(
            query.transpose(0, 1)[None],
            key.transpose(0, 1)[None],
            value.transpose(0, 1)[None],
            edges=edges,
            score=score,
            dropout_p=self.dropout if self.training else 0.0,
            return_aux="edge_weights" if need else None,
        )
        out, alpha = (result[0], result[1].edge_weights[0].t()) if need else (result, None)
        return out[0].transpose(0, 1), alpha

    def _along_edges(
        self,
        qkv: tuple[Tensor, Tensor, Tensor],
        score: Any,
        index: Tensor,
        features: tuple[Tensor | None, Tensor | None],
        need: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """The same as a formula, which a tracer follows."""
        query, key, value = qkv
        source, target = index
        key, value = (_joined(x[source], more) for x, more in zip((key, value), features))
        scores = self._scores(score, query[target], key)
        top = scores.new_full((query.shape[0], self.heads), float("-inf"))
        top = top.scatter_reduce(0, target[:, None].expand_as(scores), scores.detach(), "amax")
        grown = (scores - top[target]).exp()
        total = grown.new_zeros(top.shape).index_add(0, target, grown)
        alpha = F.dropout(grown / total[target], self.dropout, self.training)
        out = value.new_zeros(query.shape[0], *value.shape[1:]).index_add(0, target, alpha[..., None] * value)
        return out, alpha if need else None

    def _scores(self, score: Any, query: Tensor, key: Tensor) -> Tensor:
        """Of each edge's two ends, ``[E, H]``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        chosen = [f"heads={self.heads}"]
        chosen += [f"{name}={getattr(self, name)!r}" for name, usual in _USUAL.items() if getattr(self, name, usual) != usual]
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, {', '.join(chosen)})"


class _GraphAttention(_Graph):
    """What GAT and GATv2 share: loops, first values, the joining of heads."""

    #: Whether edge features are scored by a vector of their own (GAT), or join the sum (GATv2).
    lin_edge: nn.Linear | None
    res: nn.Linear | None

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int,
        concat: bool,
        negative_slope: float,
        dropout: float,
        add_self_loops: bool,
        edge_dim: int | None,
        fill_value: Any,
        residual: bool,
        flow: str = "source_to_target",
    ) -> None:
        super().__init__(in_channels, out_channels, heads, flow)
        self.concat = concat
        self.negative_slope = negative_slope
        self.dropout = dropout
        self.add_self_loops = add_self_loops
        self.edge_dim = edge_dim
        self.fill_value = fill_value
        self.residual = residual

    def _finish(self, in_channels: int | tuple[int, int], bias: bool) -> None:
        """What comes last in torch_geometric's state dicts, whose order optimizers' states follow."""
        width = self.heads * self.out_channels
        self.lin_edge = None if self.edge_dim is None else _linear(self.edge_dim, width)
        total = self.out_channels * (self.heads if self.concat else 1)
        of_targets = in_channels if isinstance(in_channels, int) else in_channels[1]
        self.res = _linear(of_targets, total) if self.residual else None
        self.bias = nn.Parameter(torch.zeros(total)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot's first values, and zeros for what is added."""
        for name, x in self.named_parameters():
            if is_lazy(x):
                continue
            if name.endswith("bias"):
                nn.init.zeros_(x)
            else:
                _glorot(x)

    def _seen(self, index: Tensor) -> Tensor:
        """The edges as they are handed out: what is remembered stays as it is."""
        return index.clone() if self.add_self_loops else index

    def _graph(self, index: Tensor, edge_attr: Tensor | None, nodes: int) -> tuple[Tensor, Tensor | None]:
        """With one loop at each node."""
        if not self.add_self_loops:
            return index, edge_attr
        if edge_attr is None:
            return _with_loops(index, nodes), None
        kept = index[0] != index[1]
        index, attr = index[:, kept], edge_attr[kept]
        loops = torch.arange(nodes, device=index.device).expand(2, -1)
        fill = _loop_features(index, attr, nodes, self.fill_value)
        return torch.cat([index, loops], 1), torch.cat([attr, fill], 0)

    def _finished(self, out: Tensor, res: Tensor | None) -> Tensor:
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        out = out if res is None else out + res
        return out if self.bias is None else out + self.bias

    def _along_graph(
        self,
        qkv: tuple[Tensor, Tensor, Tensor],
        w: Tensor,
        graph: tuple[Tensor, Tensor | None, int],
        featured: Callable[[Tensor], Tensor],
        need: bool,
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """The output, the weights, and the edges that these are of."""
        query, key, value = qkv
        given, attr, nodes = graph
        if torch.compiler.is_compiling() and self.add_self_loops and not need:
            return *self._with_static_loops(qkv, w, graph, featured), given
        index, attr = self._graph(given, attr, nodes)
        features = None if attr is None else featured(attr)
        score = Additive(w, f"leaky_relu({self.negative_slope})")
        out, alpha = self._attend(qkv, score, self._by_edge(index), (features, None), need)
        return out, alpha, index

    def _with_static_loops(
        self, qkv: tuple[Tensor, Tensor, Tensor], w: Tensor, graph: tuple[Tensor, Tensor | None, int], featured: Any
    ) -> tuple[Tensor, Tensor | None]:
        """With as many edges as were given and a loop at each node, so that a compiler knows all shapes: the loops that
        are there already lead to a query that nobody reads."""
        query, key, value = qkv
        given, attr, nodes = graph
        is_loop = given[0] == given[1]
        loops = torch.arange(nodes, device=given.device).expand(2, -1)
        if attr is not None:
            attr = torch.cat([attr, _loop_features(given, attr, nodes, self.fill_value)], 0)
        index = torch.cat([given, loops], 1)
        features = None if attr is None else featured(attr)
        source, target = self._by_edge(index)
        is_old = torch.cat([is_loop, is_loop.new_zeros(nodes)])
        by_edge = torch.stack([source, torch.where(is_old, query.shape[0], target)])
        score = Additive(w, f"leaky_relu({self.negative_slope})")
        out, _ = self._attend((F.pad(query, (0, 0, 0, 0, 0, 1)), key, value), score, by_edge, (features, None), False)
        return out[:-1], None

    def _scores(self, score: Any, query: Tensor, key: Tensor) -> Tensor:
        w: Tensor = score.w
        return (F.leaky_relu(query + key, self.negative_slope) * w).sum(-1)


class GATConv(_GraphAttention):
    """Graph attention (Veličković et al. 2018): ``torch_geometric.nn.GATConv``'s arguments, state dict and
    results, as one fused call along the edges.

    >>> import torch, regard.torch
    >>> layer = regard.torch.GATConv(8, 4, heads=2)
    >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    >>> out, (index, alpha) = layer(torch.zeros(3, 8), edge_index, return_attention_weights=True)
    >>> out.shape, alpha.shape  # with a loop at each node
    (torch.Size([3, 8]), torch.Size([6, 2]))
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: Any = "mean",
        bias: bool = True,
        residual: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(
            in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops, edge_dim, fill_value,
            residual, **more,
        )  # fmt: skip
        width = heads * out_channels
        self.lin = self.lin_src = self.lin_dst = None
        if isinstance(in_channels, int):
            self.lin = _linear(in_channels, width)
        else:
            self.lin_src = _linear(in_channels[0], width)
            self.lin_dst = _linear(in_channels[1], width)
        self.att_src = nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_edge = None if edge_dim is None else nn.Parameter(torch.empty(1, heads, out_channels))
        self._finish(in_channels, bias)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        size: tuple[int, int] | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        """Nodes ``[N, F]``, or a pair of sources and targets, and ``[2, E]``."""
        self._check_nodes(x)
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        of_sources, of_targets = self.lin or self.lin_src, self.lin or self.lin_dst
        assert of_sources is not None and of_targets is not None
        value = self._split(of_sources(sources))
        res = None if self.res is None or targets is None else self.res(targets)
        key = (value * self.att_src).sum(-1, keepdim=True)
        count = value.shape[0] if size is None else size[1]
        if targets is None:
            query = key.new_zeros(count, self.heads, 1)
        else:
            projected = value if targets is sources and self.lin is not None else self._split(of_targets(targets))
            query = (projected * self.att_dst).sum(-1, keepdim=True)
        nodes = min(size) if size is not None else min(value.shape[0], query.shape[0])
        need = bool(return_attention_weights)
        graph = (self._index(edge_index, need), edge_attr, nodes)
        self._check_features(edge_attr, graph[0], self.lin_edge)
        out, alpha, index = self._along_graph((query, key, value), value.new_ones(1), graph, self._scored, need)
        out = self._finished(out, res)
        return (out, (self._seen(index), alpha)) if need else out

    def _scored(self, attr: Tensor) -> Tensor:
        assert self.lin_edge is not None and self.att_edge is not None
        return (self._features(attr, self.lin_edge) * self.att_edge).sum(-1, keepdim=True)


class GATv2Conv(_GraphAttention):
    """Graph attention whose ranking of neighbors depends on the query (Brody, Alon and Yahav 2022):
    ``torch_geometric.nn.GATv2Conv``'s arguments, state dict and results, as one fused call along the edges.

    >>> import torch, regard.torch
    >>> layer = regard.torch.GATv2Conv(8, 4, heads=2, concat=False)
    >>> layer(torch.zeros(3, 8), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([3, 4])
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: Any = "mean",
        bias: bool = True,
        share_weights: bool = False,
        residual: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(
            in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops, edge_dim, fill_value,
            residual, **more,
        )  # fmt: skip
        width = heads * out_channels
        of_sources, of_targets = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        self.share_weights = share_weights
        self.lin_l = _linear(of_sources, width, bias)
        self.lin_r = self.lin_l if share_weights else _linear(of_targets, width, bias)
        self.att = nn.Parameter(torch.empty(1, heads, out_channels))
        self._finish(in_channels, bias)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor],
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        """Nodes ``[N, F]``, or a pair of sources and targets, and ``[2, E]``."""
        self._check_nodes(x)
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        key = self._split(self.lin_l(sources))
        query = key if self.share_weights and targets is sources else self._split(self.lin_r(targets))
        res = None if self.res is None else self.res(targets)
        need = bool(return_attention_weights)
        graph = (self._index(edge_index, need), edge_attr, min(key.shape[0], query.shape[0]))
        self._check_features(edge_attr, graph[0], self.lin_edge)
        out, alpha, index = self._along_graph((query, key, key), self.att[0], graph, self._added, need)
        out = self._finished(out, res)
        return (out, (self._seen(index), alpha)) if need else out

    def _added(self, attr: Tensor) -> Tensor:
        assert self.lin_edge is not None
        return self._features(attr, self.lin_edge)


def _joined(x: Tensor, features: Tensor | None) -> Tensor:
    return x if features is None else x + features


def _to_own_keys(index: Tensor, queries: int) -> Any:
    """Edges from keys that are one for each of them; made once of a tensor."""

    def own() -> Tensor:
        return torch.stack([torch.arange(index.shape[1], device=index.device, dtype=index.dtype), index[1]])

    if torch.compiler.is_compiling():
        return own()
    count = index.shape[1]
    return remembered(index, ("own keys", queries), lambda: Edges(own(), queries, count))


def _with_loops(index: Tensor, nodes: int) -> Tensor:
    """With one loop at each node; made once of a tensor, since it is the same at every step of a training."""
    if torch.compiler.is_compiling() or is_observed(index):
        return _looped_once(index, nodes)
    looped: Tensor = remembered(index, ("loops", nodes), lambda: _looped_once(index, nodes))
    return looped


def _flipped(index: Tensor) -> Tensor:
    """Targets, then sources."""
    if torch.compiler.is_compiling() or is_observed(index):
        return index.flip(0)
    flipped: Tensor = remembered(index, ("flipped",), lambda: index.flip(0))
    return flipped


def _looped_once(index: Tensor, nodes: int) -> Tensor:
    return torch.cat([index[:, index[0] != index[1]], torch.arange(nodes, device=index.device).expand(2, -1)], 1)


def _loop_features(index: Tensor, attr: Tensor, nodes: int, fill: Any) -> Tensor:
    """The features of the loops: a number, a row, or the mean (or another summary) of what comes in."""
    shape = (nodes, *attr.shape[1:])
    if isinstance(fill, (int, float)):
        return attr.new_full(shape, fill)
    if isinstance(fill, Tensor):
        return fill.to(attr).expand(shape)
    reduce = {"add": "sum", "sum": "sum", "mean": "mean", "min": "amin", "max": "amax", "mul": "prod"}.get(fill)
    if reduce is None:
        raise ValueError(f"fill_value is {fill!r}; it wants a number, a tensor, or one of mean, add, min, max, mul")
    # What is no neighbor goes to a row that nobody reads.
    target = torch.where((index[1] < nodes) & (index[0] != index[1]), index[1], nodes)
    target = target.view(-1, *(1,) * (attr.dim() - 1)).expand_as(attr)
    wide = attr.new_zeros((nodes + 1, *attr.shape[1:]))
    return wide.scatter_reduce(0, target, attr, reduce, include_self=False)[:-1]
