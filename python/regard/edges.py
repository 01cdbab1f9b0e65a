"""The edges of a graph, as a mask."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import _native


class Edges:
    """Edges prepared once for many calls: a query attends only to keys that have an edge to it.

    ``edge_index`` is ``[2, E]`` as in torch_geometric: sources (keys) in row 0, targets (queries) in
    row 1. With as many keys as queries one number is enough. An edge given twice counts once, or, where
    they may be ``repeated``, twice: its softmax has two equal terms, and dropout draws for each.

    A tensor on a GPU stays there: its edges are sorted on that GPU.

    >>> import numpy as np, regard
    >>> edges = regard.Edges(np.array([[1, 0, 2], [0, 1, 1]]), 3)
    >>> len(edges), edges.num_queries, edges.num_keys
    (3, 3, 3)
    >>> x = np.eye(3)
    >>> regard.attention(x, x, x, edges=edges)[0]
    array([0., 1., 0.])
    >>> len(regard.Edges(np.array([[1, 1], [0, 0]]), 3, repeated=True))
    2
    """

    __slots__ = ("edge_index", "repeated", "_sizes", "_len", "_in_order", "_native", "_places", "_lists", "__weakref__")

    def __init__(
        self, edge_index: Any, num_queries: int, num_keys: int | None = None, *, repeated: bool = False
    ) -> None:
        if not isinstance(repeated, bool):
            raise TypeError(f"repeated is {type(repeated).__name__}; it wants True or False")
        self._sizes = (_count(num_queries), _count(num_queries if num_keys is None else num_keys))
        self.edge_index = edge_index
        self.repeated = repeated
        self._native: Any = None
        self._places: Any = None
        #: By device: the lists of the edges on that GPU.
        self._lists: dict[Any, Any] = {}
        if _is_tensor(edge_index) and edge_index.is_cuda:
            from ._gpu import EdgeLists

            _check_tensor(edge_index)
            _check_shape(edge_index.shape)
            if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype is sys.modules["torch"].bool:
                raise TypeError(f"edges are {edge_index.dtype}; it wants whole numbers")
            lists = EdgeLists.of(edge_index[1], edge_index[0], self._sizes, repeated)
            self._lists[edge_index.device] = lists
            self._len, self._in_order = len(lists), lists.is_in_order
            return
        index = _as_array(edge_index)
        _check_shape(index.shape)
        if index.dtype.kind not in "iu":
            raise TypeError(f"edges are {index.dtype}; it wants whole numbers")
        index = np.ascontiguousarray(index, dtype=np.int64)
        keys, queries = index
        places = np.empty(index.shape[1], np.int64)
        self._native = _native.Edges(self._sizes, _block(queries), _block(keys), _block(places), repeated)
        self._places = places
        self._len = len(self._native)
        self._in_order = self._len == len(places) and bool((places[1:] > places[:-1]).all())

    @property
    def native(self) -> Any:
        """The edges in the host's memory."""
        if self._native is None:
            queries, keys = next(iter(self._lists.values())).pairs()
            places = np.empty_like(keys)
            self._native = _native.Edges(self._sizes, _block(queries), _block(keys), _block(places), self.repeated)
        return self._native

    def on_gpu(self, device: Any) -> Any:
        """The lists of the edges on a GPU."""
        found = self._lists.get(device)
        if found is None:
            import torch

            from ._gpu import EdgeLists

            _refuse_capture()
            pairs = np.empty((2, self._len), np.int64)
            self.native.pairs(*(_block(x) for x in pairs))
            queries, keys = torch.from_numpy(pairs).to(device)
            found = self._lists[device] = EdgeLists.of(queries, keys, self._sizes, self.repeated)
        return found

    @property
    def places(self) -> Any:
        """The place of each given edge among the prepared ones."""
        if self._places is None:
            self._places = next(iter(self._lists.values())).places.cpu().numpy()
        return self._places

    @property
    def is_in_order(self) -> bool:
        """Whether the weights along the edges come in the order in which these were given."""
        return self._in_order

    @property
    def has_repeats(self) -> bool:
        """Whether an edge is there more than once, and counts as often."""
        if self._native is not None:
            return bool(self._native.has_repeats)
        return bool(next(iter(self._lists.values())).has_repeats)

    @property
    def num_queries(self) -> int:
        """How many queries they were made for."""
        return self._sizes[0]

    @property
    def num_keys(self) -> int:
        """How many keys they were made for."""
        return self._sizes[1]

    def __len__(self) -> int:
        """How many edges there are: distinct ones, unless they may be repeated."""
        return self._len

    def __repr__(self) -> str:
        return f"Edges({len(self)} from {self.num_keys} keys to {self.num_queries} queries)"

    @staticmethod
    def of(edges: Any, num_queries: int, num_keys: int, repeated: bool = False) -> Edges:
        """Prepared edges: those given, or made of an ``edge_index``; a tensor's are remembered."""
        if isinstance(edges, Edges):
            return edges
        if isinstance(edges, EveryEdge):
            edges, repeated = edges.edge_index, True
        if not _is_tensor(edges) or not (edges.is_cpu or edges.is_cuda) or not _is_dense(edges):
            return Edges(edges, num_queries, num_keys, repeated=repeated)
        sizes = (num_queries, num_keys, repeated)
        # An alias: what is remembered of a tensor must not keep it alive.
        made: Edges = remembered(edges, ("edges", *sizes), lambda: Edges(edges.detach(), *sizes[:2], repeated=repeated))
        return made

    def tensor_places(self, device: Any) -> Any:
        """``places`` as a tensor of a device."""
        found = self._lists.get(device)
        if found is not None and self._places is None:
            return found.places
        import torch

        if device.type == "cuda":
            lists = self.on_gpu(device)
            if lists.given_places is None:
                lists.given_places = torch.from_numpy(self.places).to(device)
            return lists.given_places
        return torch.from_numpy(self.places).to(device)

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (self.edge_index, *self._sizes, self.repeated)


class EveryEdge(NamedTuple):
    """An ``edge_index`` whose edges count as often as they are there: what a compiler follows, where ``Edges`` are sorted
    while it looks."""

    edge_index: Any


def _remade(edge_index: Any, num_queries: int, num_keys: int, repeated: bool) -> Edges:
    return Edges(edge_index, num_queries, num_keys, repeated=repeated)


# By tensor, as long as that lives: what was made of it, and at which version.
_made: Any = None


def remembered(index: Any, name: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What ``make`` gives of a tensor, made once: sorting a graph takes longer than attending along it.

    It is forgotten with the tensor. A change in place raises the version, and it is made again.
    """
    global _made
    if index.is_inference():
        return make()
    if _made is None:
        from torch.utils.weak import WeakIdKeyDictionary

        _made = WeakIdKeyDictionary()
    # Views of one tensor are one memory: it lives as long as what they are views of.
    owner = index if index._base is None else index._base
    version = index._version
    kept = _made.get(owner)
    if kept is None or kept[0] != version:
        kept = (version, {})
        _made[owner] = kept
    key = (*name, index.data_ptr(), index.shape, index.stride(), index.dtype)
    found = kept[1].get(key)
    if found is None:
        found = make()
        if len(kept[1]) >= 16:  # views without end
            kept[1].clear()
        kept[1][key] = found
    return found


def _block(x: Any) -> tuple[int, tuple[int, ...]]:
    return x.ctypes.data, x.shape


def _is_tensor(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _is_dense(x: Any) -> bool:
    return bool(x.layout is sys.modules["torch"].strided)


def _check_shape(shape: Any) -> None:
    if len(shape) != 2 or shape[0] != 2:
        raise ValueError(f"edges have shape {list(shape)}; it wants edge_index [2, E], keys then queries")


def _check_tensor(x: Any) -> None:
    if x.requires_grad:
        raise TypeError("edges require a gradient; whole numbers have none")
    if not _is_dense(x):
        raise TypeError(f"edges are {x.layout}; it wants a dense edge_index [2, E]")
    if x.is_cuda:
        _refuse_capture()


def _refuse_capture() -> None:
    if sys.modules["torch"].cuda.is_current_stream_capturing():
        raise RuntimeError(
            "a CUDA graph is being captured, and edges are sorted once, before: call it once outside of the capture, "
            "or make regard.Edges of them there"
        )


def _as_array(x: Any) -> Any:
    if _is_tensor(x):
        _check_tensor(x)
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
