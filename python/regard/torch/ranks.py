"""Training by several processes of ``torch.distributed``."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from ..training import Callback, Training


class Rank(Training):
    """One rank of the default process group: adds up buffers over all of them. Rank 0 alone shows and asks.

    >>> from regard.torch.ranks import Rank
    >>> Rank(progress=False, callback=None)
    Traceback (most recent call last):
    ValueError: Default process group has not been initialized, please make sure to call init_process_group.
    """

    def __init__(self, progress: bool, callback: Callback | None) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        backend = str(dist.get_backend())
        if "gloo" not in backend and "mpi" not in backend and "cpu:" not in backend:
            raise ValueError(
                f"the process group is of {backend}, which adds up tensors of its own devices; gradients are in the "
                'CPU\'s memory: torch.distributed.init_process_group("gloo")'
            )
        super().__init__(progress and self.rank == 0, callback if self.rank == 0 else None)

    def _failed(self, error: Exception) -> RuntimeError:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        return RuntimeError(
            f"rank {self.rank} of {self.size}: another rank has ended or cannot be reached ({reason[0]}); "
            "once all run again, resume= goes on from the last checkpoint"
        )

    def all_reduce(self, address: int, count: int) -> None:
        numbers = np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))
        try:
            dist.all_reduce(torch.from_numpy(numbers))
        except RuntimeError as error:
            raise self._failed(error) from error

    def broadcast(self, data: bytes) -> bytes:
        try:
            length = torch.tensor([len(data)])
            dist.broadcast(length, src=0)
            buffer = torch.zeros(int(length), dtype=torch.uint8)
            if self.rank == 0:
                buffer = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            dist.broadcast(buffer, src=0)
        except RuntimeError as error:
            raise self._failed(error) from error
        found: Any = buffer.numpy()
        return bytes(found)
