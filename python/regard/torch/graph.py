"""Graph attention: GAT and GATv2 with torch_geometric's signatures and state dicts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._tensors import is_observed
from ..edges import Edges, remembered
from ..operator import attention
from ..score import Additive


#: What is named where it is something else.
_USUAL = {
    "concat": True, "negative_slope": 0.2, "dropout": 0.0, "add_self_loops": True, "edge_dim": None, "residual": False,
    "share_weights": False, "flow": "source_to_target",
}  # fmt: skip


class _GraphAttention(nn.Module):
    """What GAT and GATv2 share: loops, dropout, the joining of heads."""

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
        super().__init__()
        if flow not in ("source_to_target", "target_to_source"):
            raise ValueError(f"flow is {flow!r}; there are 'source_to_target' and 'target_to_source'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.heads = heads
        self.concat = concat
        self.negative_slope = negative_slope
        self.dropout = dropout
        self.add_self_loops = add_self_loops
        self.edge_dim = edge_dim
        self.fill_value = fill_value
        self.residual = residual
        self.flow = flow

    def _finish(self, in_channels: int | tuple[int, int], bias: bool) -> None:
        """What comes last in torch_geometric's state dicts, whose order optimizers' states follow."""
        width = self.heads * self.out_channels
        self.lin_edge = None if self.edge_dim is None else nn.Linear(self.edge_dim, width, bias=False)
        total = self.out_channels * (self.heads if self.concat else 1)
        of_targets = in_channels if isinstance(in_channels, int) else in_channels[1]
        self.res = nn.Linear(of_targets, total, bias=False) if self.residual else None
        self.bias = nn.Parameter(torch.zeros(total)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot's first values, and zeros for what is added."""
        for name, x in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(x)
            else:
                rows, columns = x.shape[-2:]
                limit = (6.0 / (rows + columns)) ** 0.5
                nn.init.uniform_(x, -limit, limit)

    def _check_nodes(self, x: Any) -> None:
        """A batch of graphs is one graph of all their nodes; flattened, its edges would join the wrong ones."""
        for name, nodes in (("x", x),) if isinstance(x, Tensor) else zip(("the sources", "the targets"), x):
            if nodes is not None and nodes.dim() != 2:
                raise ValueError(f"{name} of {type(self).__name__} has shape {list(nodes.shape)}; it wants nodes [N, F]")

    def _seen(self, index: Tensor) -> Tensor:
        """The edges as they are handed out: what is remembered stays as it is."""
        return index.clone() if self.add_self_loops else index

    def _split(self, x: Tensor) -> Tensor:
        return x.view(-1, self.heads, self.out_channels)

    def _graph(self, edge_index: Tensor, edge_attr: Tensor | None, nodes: int) -> tuple[Tensor, Tensor | None]:
        """With one loop at each node."""
        if not isinstance(edge_index, Tensor) or edge_index.layout is not torch.strided:
            raise TypeError("edge_index is no dense tensor; it wants [2, E], sources then targets")
        if not self.add_self_loops:
            return edge_index, edge_attr
        if edge_attr is None:
            return _with_loops(edge_index, nodes), None
        kept = edge_index[0] != edge_index[1]
        index, attr = edge_index[:, kept], edge_attr[kept]
        loops = torch.arange(nodes, device=index.device).expand(2, -1)
        fill = _loop_features(index, attr, nodes, self.fill_value)
        return torch.cat([index, loops], 1), torch.cat([attr, fill], 0)

    def _joined(self, out: Tensor, res: Tensor | None) -> Tensor:
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        out = out if res is None else out + res
        return out if self.bias is None else out + self.bias

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        w: Tensor,
        index: Tensor,
        features: Tensor | None,
        need: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """query ``[Nt, H, D]``, key ``[Ns, H, D]``, value ``[Ns, H, C]`` give ``[Nt, H, C]``, and ``[E, H]``."""
        by_edge = index if self.flow == "source_to_target" else _flipped(index)
        edges = None
        compiling = torch.compiler.is_compiling()
        # Under a tracer or a transform edge by edge: the edges cannot be sorted then.
        if features is None and (compiling or not is_observed(query, key, value, index)):
            # An edge that is there twice counts twice in torch_geometric.
            edges = Edges.of(by_edge, query.shape[0], key.shape[0], repeated=True)
            edges = None if compiling and edges.has_repeats else edges
        if edges is None:
            return self._along_edges(query, key, value, w, by_edge, features, need)
        result: Any = attention(
            query.transpose(0, 1)[None],
            key.transpose(0, 1)[None],
            value.transpose(0, 1)[None],
            edges=edges,
            score=Additive(w, f"leaky_relu({self.negative_slope})"),
            dropout_p=self.dropout if self.training else 0.0,
            return_aux="edge_weights" if need else None,
        )
        out, alpha = (result[0], result[1].edge_weights[0].t()) if need else (result, None)
        return out[0].transpose(0, 1), alpha

    def _along_edges(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        w: Tensor,
        index: Tensor,
        features: Tensor | None,
        need: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """The same edge by edge, in memory that grows with them: for edges with features of their own, which
        the operator has no place for, and under a tracer."""
        source, target = index
        summed = query[target] + key[source]
        summed = summed if features is None else summed + features
        score = (F.leaky_relu(summed, self.negative_slope) * w).sum(-1)
        top = score.new_full((query.shape[0], self.heads), float("-inf"))
        top = top.scatter_reduce(0, target[:, None].expand_as(score), score.detach(), "amax")
        grown = (score - top[target]).exp()
        total = grown.new_zeros(top.shape).index_add(0, target, grown)
        alpha = F.dropout(grown / total[target], self.dropout, self.training)
        out = value.new_zeros(query.shape[0], *value.shape[1:]).index_add(0, target, alpha[..., None] * value[source])
        return out, alpha if need else None

    def __repr__(self) -> str:
        chosen = [f"heads={self.heads}"]
        chosen += [f"{name}={getattr(self, name)!r}" for name, usual in _USUAL.items() if getattr(self, name, usual) != usual]
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, {', '.join(chosen)})"


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
            self.lin = nn.Linear(in_channels, width, bias=False)
        else:
            self.lin_src = nn.Linear(in_channels[0], width, bias=False)
            self.lin_dst = nn.Linear(in_channels[1], width, bias=False)
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
        index, attr = self._graph(edge_index, edge_attr if self.lin_edge is not None else None, nodes)
        features = None
        if attr is not None and self.lin_edge is not None and self.att_edge is not None:
            attr = attr.view(-1, 1) if attr.dim() == 1 else attr
            features = (self._split(self.lin_edge(attr)) * self.att_edge).sum(-1, keepdim=True)
        out, alpha = self._attend(
            query, key, value, value.new_ones(1), index, features, bool(return_attention_weights)
        )
        out = self._joined(out, res)
        return (out, (self._seen(index), alpha)) if return_attention_weights else out


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
        self.lin_l = nn.Linear(of_sources, width, bias=bias)
        self.lin_r = self.lin_l if share_weights else nn.Linear(of_targets, width, bias=bias)
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
        index, attr = self._graph(edge_index, edge_attr, min(key.shape[0], query.shape[0]))
        features = None
        if attr is not None:
            if self.lin_edge is None:
                raise ValueError("edge_attr was given; the layer was made without edge_dim")
            attr = attr.view(-1, 1) if attr.dim() == 1 else attr
            features = self._split(self.lin_edge(attr))
        out, alpha = self._attend(query, key, key, self.att[0], index, features, bool(return_attention_weights))
        out = self._joined(out, res)
        return (out, (self._seen(index), alpha)) if return_attention_weights else out


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
    inside = index[1] < nodes
    target = index[1][inside].view(-1, *(1,) * (attr.dim() - 1)).expand_as(attr[inside])
    return attr.new_zeros(shape).scatter_reduce(0, target, attr[inside], reduce, include_self=False)
