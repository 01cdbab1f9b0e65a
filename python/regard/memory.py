"""The memory that calls keep for the next, and the memory that there is."""

from __future__ import annotations

import os
from pathlib import Path

from . import _native
from .threads import get_num_threads


def release_memory() -> None:
    """Gives back the memory that calls keep for the next; later calls give the same results.

    >>> import regard
    >>> regard.release_memory()
    """
    _native.release_memory(get_num_threads())


def _free() -> int:
    """Bytes that this process may still take: of the machine, and of its control group."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(1024 * int(line.split()[1]))
    except (OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    try:
        most = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        if most != "max":
            found.append(max(0, int(most) - used))
    except (OSError, ValueError):
        pass  # There is no such group.
    return min(found, default=1 << 40)
