"""How many threads calls compute on."""

from __future__ import annotations

import os
import sys

_chosen: int | None = None


def _of_environment() -> int:
    """OMP_NUM_THREADS, which torchrun and Ray set for each worker; else the cores this process may use."""
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if given.isdigit() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_default = _of_environment()


def set_num_threads(count: int | None) -> None:
    """Computes on so many threads from now on; ``None`` goes back to what is usual.

    >>> import regard
    >>> regard.set_num_threads(2)
    >>> regard.get_num_threads()
    2
    >>> regard.set_num_threads(None)
    """
    global _chosen
    if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
        raise TypeError(f"the number of threads is {type(count).__name__}; it wants a whole number")
    if count is not None and not 1 <= count <= 4096:
        raise ValueError(f"{count} threads; 1 to 4096 are possible")
    _chosen = count


def get_num_threads() -> int:
    """How many threads calls compute on: what ``set_num_threads`` said, else PyTorch's count where it is
    loaded, else OMP_NUM_THREADS, else as many as there are cores.

    >>> import regard
    >>> regard.get_num_threads() >= 1
    True
    """
    if _chosen is not None:
        return _chosen
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_num_threads"):
        return int(torch.get_num_threads())
    return _default
