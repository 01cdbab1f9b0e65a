"""The graph Transformer, with torch_geometric's signature and state dict."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .graph import _Graph


class TransformerConv(_Graph):
    """The graph Transformer (Shi et al. 2021): ``torch_geometric.nn.TransformerConv``'s arguments, state dict and results,
    as one fused call along the edges. With ``edge_dim`` the features of an edge join the key and the value seen along it.

    >>> import torch, regard.torch
    >>> layer = regard.torch.TransformerConv(8, 4, heads=2, beta=True, edge_dim=3)
    >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    >>> layer(torch.zeros(3, 8), edge_index, torch.zeros(3, 3)).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        beta: bool = False,
        dropout: float = 0.0,
        edge_dim: int | None = None,
        bias: bool = True,
        root_weight: bool = True,
        flow: str = "source_to_target",
    ) -> None:
        super().__init__(in_channels, out_channels, heads, flow)
        self.concat = concat
        self.beta = beta and root_weight
        self.dropout = dropout
        self.edge_dim = edge_dim
        self.root_weight = root_weight
        of_sources, of_targets = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        width, total = heads * out_channels, out_channels * (heads if concat else 1)

        def linear(width_in: int, width_out: int, bias: bool) -> nn.Linear:
            return nn.Linear(width_in, width_out, bias) if width_in != -1 else nn.LazyLinear(width_out, bias)

        self.lin_key = linear(of_sources, width, bias)
        self.lin_query = linear(of_targets, width, bias)
        self.lin_value = linear(of_sources, width, bias)
        self.lin_edge = None if edge_dim is None else linear(edge_dim, width, False)
        # There without a root weight too, as in torch_geometric's state dicts.
        self.lin_skip = linear(of_targets, total, bias)
        self.lin_beta = nn.Linear(3 * total, 1, bias=False) if self.beta else None

    def reset_parameters(self) -> None:
        """PyTorch's first values of linear layers."""
        for layer in self.children():
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor],
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        """Nodes ``[N, F]``, or a pair of sources and targets, and ``[2, E]``."""
        self._check_nodes(x)
        need = bool(return_attention_weights)
        index = self._index(edge_index, need)
        self._check_features(edge_attr, index, self.lin_edge)
        if edge_attr is None and self.lin_edge is not None:
            raise ValueError("edge_attr was not given; the layer was made with edge_dim")
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        qkv = (
            self._split(self.lin_query(targets)),
            self._split(self.lin_key(sources)),
            self._split(self.lin_value(sources)),
        )
        features = None
        if edge_attr is not None and self.lin_edge is not None:
            features = self._features(edge_attr, self.lin_edge)
        out, alpha = self._attend(qkv, "scaled_dot", self._by_edge(index), (features, features), need)
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        if self.root_weight:
            root = self.lin_skip(targets)
            if self.lin_beta is not None:
                beta = self.lin_beta(torch.cat([out, root, out - root], dim=-1)).sigmoid()
                out = beta * root + (1 - beta) * out
            else:
                out = out + root
        return (out, (index, alpha)) if need else out

    def _scores(self, score: Any, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = (query * key).sum(-1) * self.out_channels**-0.5
        return scores
