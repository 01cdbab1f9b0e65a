"""Tensors on an NVIDIA GPU: worked on there, in the order of PyTorch's current stream."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from . import _native, _tensors
from ._arguments import Frame
from .edges import Edges


@functools.cache
def bring_nvrtc() -> str | None:
    """Opens the NVRTC that PyTorch's packages bring along, where no loader looks; its file, if there is one."""
    nvidia = importlib.util.find_spec("nvidia")
    folders = [] if nvidia is None else nvidia.submodule_search_locations or []
    for file in sorted((file for folder in folders for file in Path(folder).glob("*/lib/libnvrtc.so.*")), reverse=True):
        with suppress(OSError):
            ctypes.CDLL(str(file))
            return str(file)
    return None


#: A parameter of an expression, as a refusal names it.
_PARAMETER = "a parameter of the score"
#: The options that the kernels read on the GPU, if they lie there.
_READ_THERE = frozenset(
    ("key_bias", "attn_mask", "alibi_slopes", "relative_bias", "key_lengths", "segments", "w", _PARAMETER)
)
#: What counts a graph's edges, and draws for them, has 32 bits.
_MOST = (1 << 32) - 1


def _stream_of(index: int) -> int:
    return int(torch.cuda.current_stream(index).cuda_stream)


# Without an object around it, where this PyTorch can: small calls are made of such things.
_current_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", _stream_of)


class EdgeLists:
    """The edges of a graph on a GPU, by query and by key."""

    __slots__ = ("native", "places", "given_places", "is_in_order", "_len", "_held", "_streams")

    def __init__(self, held: tuple[Any, ...], places: Tensor, is_in_order: bool, sizes: tuple[int, int], longest: int) -> None:
        row_keys = held[1]
        self._len = len(row_keys)
        # What has no numbers has no address either.
        self._held = tuple(x if x is None or len(x) > 0 else x.new_zeros(1) for x in held)
        self._streams = {_current_stream(row_keys.get_device())}
        addresses = tuple(None if x is None else x.data_ptr() for x in self._held)
        self.native = _native.EdgesAt(sizes, self._len, longest, addresses)
        #: The place of each given edge among these.
        self.places = places
        #: The same where these were made of edges that were prepared before.
        self.given_places: Tensor | None = None
        self.is_in_order = is_in_order

    def __len__(self) -> int:
        return self._len

    @property
    def has_repeats(self) -> bool:
        """Whether an edge is there more than once."""
        return self._held[5] is not None

    @staticmethod
    def of(queries: Tensor, keys: Tensor, sizes: tuple[int, int], repeated: bool) -> EdgeLists:
        """Sorted on the GPU; waits for it once, to look whether every edge joins what there is."""
        queries, keys = queries.detach().long(), keys.detach().long()
        num_queries, num_keys = sizes
        if max(num_queries, num_keys, len(keys)) >= _MOST or num_queries * num_keys >= 1 << 62:
            raise ValueError(
                f"a graph of {num_queries} queries, {num_keys} keys and {len(keys)} edges: each stays below 2³²"
            )
        count = torch.arange(len(keys), device=keys.device)
        pairs, order = torch.sort(queries * max(num_keys, 1) + keys, stable=True)
        is_first = torch.ones_like(pairs, dtype=torch.bool)
        is_first[1:] = pairs[1:] != pairs[:-1]
        place = is_first.cumsum(0) - 1
        if repeated:
            place, draws = count, _draws(pairs, count, num_keys)
        else:
            pairs, draws = pairs[is_first], None
        of_query = torch.div(pairs, max(num_keys, 1), rounding_mode="floor")
        row_keys = pairs - of_query * num_keys
        by_key, column_edges = torch.sort(row_keys, stable=True)
        row_start, column_start = (
            torch.searchsorted(x, torch.arange(n + 1, device=x.device)) for x, n in zip((of_query, by_key), sizes)
        )
        places = torch.empty_like(order)
        places[order] = place
        lists = (row_start, row_keys.int(), column_start, of_query[column_edges].int(), column_edges.int())
        checks = [(order == count).all(), is_first.all(), *_bounds(queries), *_bounds(keys)]
        checks += [(row_start[1:] - row_start[:-1]).max() if num_queries else count.new_zeros(())]
        checks += [count.new_zeros(()) if draws is None or len(draws) == 0 else draws.max()]
        # After all that was asked before: other streams need not wait for it.
        in_order, distinct, low_query, high_query, low_key, high_key, longest, most = (
            int(x) for x in torch.stack([x.long() for x in checks]).tolist()
        )
        if len(keys) > 0 and (min(low_query, low_key) < 0 or high_query >= num_queries or high_key >= num_keys):
            _refuse_edge(queries, keys, sizes)
        if most >= _MOST:
            raise ValueError(f"an edge is there too often: with {num_keys} keys it may be there {_MOST // num_keys} times")
        draws = None if draws is None or distinct else draws.int()
        return EdgeLists((*lists, draws), places, bool(in_order) and (repeated or bool(distinct)), sizes, longest)

    def native_on(self, stream: int) -> Any:
        """What the kernels are told, on a stream; the lists' memory is not used again before that came past."""
        if stream not in self._streams:
            self._streams.add(stream)
            current = torch.cuda.current_stream(self.places.get_device())
            for x in self._held:
                if x is not None:
                    x.record_stream(current)
        return self.native

    def pairs(self) -> Any:
        """The queries and keys of the edges, in the host's memory."""
        row_start, row_keys = self._held[:2]
        assert row_start is not None and row_keys is not None  # only what dropout draws by may be missing
        counts = (row_start[1:] - row_start[:-1]).cpu()
        keys = row_keys[: self._len].cpu().numpy().view("uint32").astype("int64")
        return torch.arange(len(counts)).repeat_interleave(counts).numpy(), keys


def _draws(pairs: Tensor, count: Tensor, num_keys: int) -> Tensor:
    """What dropout draws by: an edge's key, and so many times all keys further as there were equal edges before it."""
    key = pairs - torch.div(pairs, max(num_keys, 1), rounding_mode="floor") * num_keys
    return key + (count - torch.searchsorted(pairs, pairs)) * num_keys


def _bounds(x: Tensor) -> tuple[Tensor, Tensor]:
    if len(x) == 0:
        return x.new_zeros(()), x.new_zeros(())
    low, high = torch.aminmax(x)
    return low, high


def _refuse_edge(queries: Tensor, keys: Tensor, sizes: tuple[int, int]) -> None:
    for n, (i, j) in enumerate(zip(queries.tolist(), keys.tolist())):
        if i < 0 or j < 0:
            raise ValueError(f"edge {n} joins key {j} to query {i}; places are counted from 0")
        if i >= sizes[0] or j >= sizes[1]:
            raise ValueError(f"edge {n} joins query {i} to key {j}; there are {sizes[0]} queries and {sizes[1]} keys")


class Gpu:
    """The kind of array that a call on a GPU's tensors has; it lives as long as the call."""

    int64 = torch.int64
    forward = staticmethod(_native.forward)
    backward = staticmethod(_native.backward)
    rowwise = staticmethod(_tensors.rowwise)
    empty_rows = staticmethod(_tensors.empty_rows)
    arriving_at_part = staticmethod(_tensors.arriving_at_part)

    def __init__(self, device: torch.device) -> None:
        bring_nvrtc()
        self._device = device
        self._index = torch.cuda.current_device() if device.index is None else device.index
        self._kept: list[Tensor] = []

    def rows(self, x: Tensor) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        self._check(x)
        return x.data_ptr(), x.shape, x.stride()

    def block(self, x: Tensor) -> tuple[int, tuple[int, ...]]:
        self._check(x)
        return x.data_ptr(), x.shape

    def _check(self, x: Tensor) -> None:
        """The kernels read and write addresses of this GPU alone."""
        if x.get_device() != self._index:
            raise TypeError(f"a tensor is on {x.device}, query on {self._device}; they want one device")

    def given(self, x: Tensor, name: str) -> tuple[int, tuple[int, ...]] | tuple[int, tuple[int, ...], bool]:
        """What a call is given besides q, k and v: read where it lies if that is this GPU, else copied."""
        if name in _READ_THERE and x.get_device() == self._index and x.numel() > 0:
            return x.data_ptr(), x.shape, True
        if x.requires_grad and x.get_device() != self._index:
            raise TypeError(f"{name} requires a gradient and is on {x.device}, query on {self._device}; they want one device")
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError(
                f"a CUDA graph is being captured, and {name} would be copied through the host, which a replay cannot do: "
                "call it outside of the capture"
            )
        x = x.detach().cpu()
        self._kept.append(x)
        return _tensors.block(x)

    def edges(self, edges: Edges) -> Any:
        """The lists of a graph on this GPU."""
        return edges.on_gpu(self._device).native_on(self.place()[1])

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self._device)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=self._device)

    def place(self) -> tuple[int, int]:
        """The GPU's number, and PyTorch's current stream on it."""
        return (self._index, _current_stream(self._index))


def plain_forward(frame: Frame, q: Tensor, k: Tensor, v: Tensor, saves: bool) -> tuple[Tensor, Tensor | None]:
    """Output, and log-sum-exp where backward will need it, of checked tensors: as ``_call.forward``, with nothing around
    it, since small calls are made of that."""
    index, shape = q.get_device(), q.shape
    out = torch.empty_like(q) if v.shape[-1] == shape[-1] else _tensors.empty_rows(q, (*shape[:-1], v.shape[-1]))
    call = _plain_call(frame, index, q, k, v)
    if not saves:
        _native.forward(call, (out.data_ptr(), out.shape, out.stride()))
        return out, None
    lse = torch.empty(shape[:-1], dtype=frame.compute, device=q.device)
    results = ((lse.data_ptr(), lse.shape), None, None, None, None, None)
    _native.forward(call, (out.data_ptr(), out.shape, out.stride()), None, results)
    return out, lse


def plain_backward(
    frame: Frame, qkv: tuple[Tensor, ...], saved: tuple[Tensor, ...], grad_out: Tensor, wants: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """The gradients of q, k and v that are needed."""
    (q, k, v), (out, lse) = qkv, saved
    index = q.get_device()
    for x in (k, v, out, lse, grad_out):
        if x.get_device() != index:
            raise TypeError(f"a tensor is on {x.device}, query on {q.device}; they want one device")
    gradients = tuple(torch.empty_like(x) if wanted else None for x, wanted in zip(qkv, wants))
    _native.backward(
        _plain_call(frame, index, q, k, v),
        (grad_out.data_ptr(), grad_out.shape, grad_out.stride()),
        ((out.data_ptr(), out.shape, out.stride()), (lse.data_ptr(), lse.shape), None, None),
        (
            *(None if x is None else (x.data_ptr(), x.shape, x.stride()) for x in gradients),
            None, None, None, None, None,
        ),
    )  # fmt: skip
    return gradients


def _plain_call(frame: Frame, index: int, q: Tensor, k: Tensor, v: Tensor) -> Any:
    return (
        frame.code,
        (index, _current_stream(index)),
        frame.mechanism,
        (0, 0.0),
        (q.data_ptr(), q.shape, q.stride()),
        (k.data_ptr(), k.shape, k.stride()),
        (v.data_ptr(), v.shape, v.stride()),
    )
