"""Tensors on an NVIDIA GPU: worked on there, in the order of PyTorch's current stream."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
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


class Gpu:
    """The kind of array that a call on a GPU's tensors has; it lives as long as the call."""

    int64 = torch.int64
    forward = staticmethod(_native.forward)
    backward = staticmethod(_native.backward)
    rows = staticmethod(_tensors.rows)
    block = staticmethod(_tensors.block)
    rowwise = staticmethod(_tensors.rowwise)
    empty_rows = staticmethod(_tensors.empty_rows)
    arriving_at_part = staticmethod(_tensors.arriving_at_part)

    def __init__(self, device: torch.device) -> None:
        bring_nvrtc()
        self._device = device
        self._kept: list[Tensor] = []

    def given(self, x: Tensor) -> tuple[int, tuple[int, ...]]:
        """What a call is given besides q, k and v is read in the host's memory."""
        x = x.detach().cpu()
        self._kept.append(x)
        return _tensors.block(x)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self._device)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=self._device)

    def place(self) -> tuple[int, int]:
        """The GPU's number, and PyTorch's current stream on it."""
        index = self._device.index
        return (torch.cuda.current_device() if index is None else index, torch.cuda.current_stream(self._device).cuda_stream)
