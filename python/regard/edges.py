"""The edges of a graph, as a mask."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

import numpy as np

from . import _native


class Edges:
    """Edges prepared once for many calls: a query attends only to keys that have an edge to it.

    ``edge_index`` is ``[2, E]`` as in torch_geometric: sources (keys) in row 0, targets (queries) in
    row 1. An edge given twice counts once. With as many keys as queries one number is enough.

    >>> import numpy as np, regard
    >>> edges = regard.Edges(np.array([[1, 0, 2], [0, 1, 1]]), 3)
    >>> len(edges), edges.num_queries, edges.num_keys
    (3, 3, 3)
    >>> x = np.eye(3)
    >>> regard.attention(x, x, x, edges=edges)[0]
    array([0., 1., 0.])
    """

    __slots__ = ("native", "edge_index", "places", "is_in_order", "_tensor_places", "__weakref__")

    def __init__(self, edge_index: Any, num_queries: int, num_keys: int | None = None) -> None:
        index = _as_array(edge_index)
        if index.ndim != 2 or index.shape[0] != 2:
            raise ValueError(f"edges have shape {list(index.shape)}; it wants edge_index [2, E], keys then queries")
        if index.dtype.kind not in "iu":
            raise TypeError(f"edges are {index.dtype}; it wants whole numbers")
        sizes = tuple(_count(n) for n in (num_queries, num_queries if num_keys is None else num_keys))
        index = np.ascontiguousarray(index, dtype=np.int64)
        places = np.empty(index.shape[1], np.int64)
        keys, queries = index
        self.native = _native.Edges(sizes, *((x.ctypes.data, x.shape) for x in (queries, keys, places)))  # type: ignore[arg-type]
        self.edge_index = edge_index
        self.places = places
        #: Whether the weights along the edges come in the order in which these were given.
        self.is_in_order = len(self.native) == len(places) and bool((places[1:] > places[:-1]).all())
        self._tensor_places: Any = None

    @property
    def num_queries(self) -> int:
        """How many queries they were made for."""
        return self.native.sizes[0]

    @property
    def num_keys(self) -> int:
        """How many keys they were made for."""
        return self.native.sizes[1]

    def __len__(self) -> int:
        """How many distinct edges there are."""
        return len(self.native)

    def __repr__(self) -> str:
        return f"Edges({len(self)} from {self.num_keys} keys to {self.num_queries} queries)"

    @staticmethod
    def of(edges: Any, num_queries: int, num_keys: int) -> Edges:
        """Prepared edges: those given, or made of an ``edge_index``; a tensor's are remembered."""
        if isinstance(edges, Edges):
            return edges
        if _is_tensor(edges) and not edges.is_inference() and edges.is_cpu and _is_dense(edges):
            return _remembered(edges, num_queries, num_keys)
        return Edges(edges, num_queries, num_keys)

    def tensor_places(self, device: Any) -> Any:
        """``places`` as a tensor of a device."""
        if self._tensor_places is None or self._tensor_places.device != device:
            import torch

            self._tensor_places = torch.from_numpy(self.places).to(device)
        return self._tensor_places

    def __reduce__(self) -> tuple[Any, ...]:
        return Edges, (self.edge_index, self.num_queries, self.num_keys)


# The last few graphs that were given as tensors: sorting one takes longer than attending along it.
_recent: OrderedDict[tuple[Any, ...], tuple[Any, Edges]] = OrderedDict()


def _remembered(index: Any, num_queries: int, num_keys: int) -> Edges:
    # A change in place raises the version; while the tensor is kept, its address is not used again.
    key = (index.data_ptr(), index._version, tuple(index.shape), index.stride(), index.dtype, num_queries, num_keys)
    found = _recent.get(key)
    if found is not None:
        return found[1]
    made = Edges(index, num_queries, num_keys)
    _recent[key] = (index, made)
    while len(_recent) > 4:
        try:
            _recent.popitem(last=False)
        except KeyError:  # another thread was faster
            break
    return made


def _is_tensor(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _is_dense(x: Any) -> bool:
    return bool(x.layout is sys.modules["torch"].strided)


def _as_array(x: Any) -> Any:
    if _is_tensor(x):
        if x.requires_grad:
            raise TypeError("edges require a gradient; whole numbers have none")
        if not _is_dense(x):
            raise TypeError(f"edges are {x.layout}; it wants a dense edge_index [2, E]")
        if x.is_cuda and sys.modules["torch"].cuda.is_current_stream_capturing():
            raise RuntimeError(
                "a CUDA graph is being captured, and edges are sorted on the host: make regard.Edges of them before, "
                "and call it outside of the capture"
            )
        return x.detach().cpu().numpy()
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ValueError(f"edges make no array: {error}") from None


def _count(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"the number of nodes is {type(n).__name__}; it wants a whole number")
    if n < 0:
        raise ValueError(f"the number of nodes is {n}; it is not negative")
    return int(n)
