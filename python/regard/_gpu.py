"""Tensors on an NVIDIA GPU: worked on there, in the order of PyTorch's current stream."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import _native, _tensors


class Gpu:
    """The kind of array that a call on a GPU's tensors has; it lives as long as the call."""

    int64 = torch.int64
    rows = staticmethod(_tensors.rows)
    block = staticmethod(_tensors.block)
    rowwise = staticmethod(_tensors.rowwise)
    empty_rows = staticmethod(_tensors.empty_rows)
    arriving_at_part = staticmethod(_tensors.arriving_at_part)

    def __init__(self, device: torch.device) -> None:
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

    def forward(self, call: Any, out: Any, inputs: Any = None, results: Any = (None,) * 6) -> None:
        _native.forward_on_gpu(self._place(), call, out, inputs, results)

    def backward(self, call: Any, grad_out: Any, left: Any, wanted: Any, inputs: Any = None, arriving: Any = None) -> None:
        _native.backward_on_gpu(self._place(), call, grad_out, left, wanted, inputs, arriving)

    def _place(self) -> tuple[int, int]:
        index = self._device.index
        return (torch.cuda.current_device() if index is None else index, torch.cuda.current_stream(self._device).cuda_stream)
