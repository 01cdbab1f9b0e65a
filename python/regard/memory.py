"""The memory that calls keep for the next."""

from __future__ import annotations

from . import _native
from .threads import get_num_threads


def release_memory() -> None:
    """Gives back the memory that calls keep for the next; later calls give the same results.

    >>> import regard
    >>> regard.release_memory()
    """
    _native.release_memory(get_num_threads())
