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


#: The options that the kernels read on the GPU, if they lie there.
_READ_THERE = frozenset(("key_bias", "attn_mask", "alibi_slopes", "relative_bias", "key_lengths", "segments"))


def _stream_of(index: int) -> int:
    return int(torch.cuda.current_stream(index).cuda_stream)


# Without an object around it, where this PyTorch can: small calls are made of such things.
_current_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", _stream_of)


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
        """What a call is given besides q, k and v: masks and biases are read where they lie, what a score has learned in the
        host's memory."""
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

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self._device)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=self._device)

    def place(self) -> tuple[int, int]:
        """The GPU's number, and PyTorch's current stream on it."""
        return (self._index, _current_stream(self._index))
