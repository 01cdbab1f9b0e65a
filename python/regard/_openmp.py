"""The threads that PyTorch computes on.

They go on spinning for a while after their work: other threads that begin then find the cores taken. So calls compute
on the same threads, through the function that compilers begin a parallel region with."""

from __future__ import annotations

import ctypes
import os
import sys

import torch

# What was looked up stays loaded.
_kept: list[ctypes.CDLL] = []

_NONE = (0, 0)
# Of a process in Linux: forked, and nothing else executed since.
_FORKED = 0x40


def functions_of_torch() -> tuple[int, int]:
    """The addresses of ``GOMP_parallel`` and ``omp_get_max_threads`` in GNU's OpenMP library that PyTorch uses; zeros
    where it uses another, where that cannot be told, or where the library's threads may be those of the process that
    this one was forked from."""
    if not sys.platform.startswith("linux"):
        return _NONE
    if "ATen parallel backend: OpenMP" not in torch.__config__.parallel_info():
        return _NONE
    try:
        if _is_forked():
            return _NONE
        with open("/proc/self/maps") as maps:
            files = {fields[5].strip() for fields in (line.split(maxsplit=5) for line in maps) if len(fields) == 6}
        # With LLVM's or Intel's in the process, who knows which one is PyTorch's.
        if any("libomp" in file or "libiomp" in file for file in files):
            return _NONE
        files = {file for file in files if "libgomp" in file}
        # Other packages bring copies of their own, with threads of their own.
        if len(files) > 1:
            folder = os.path.dirname(os.path.realpath(torch.__file__))
            files = {file for file in files if file.startswith((folder + os.sep, folder + ".libs" + os.sep))}
        if len(files) != 1:
            return _NONE
        library = ctypes.CDLL(files.pop(), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        functions = library.GOMP_parallel, library.omp_get_max_threads
        parallel, max_threads = (ctypes.cast(function, ctypes.c_void_p).value for function in functions)
    except (OSError, AttributeError, ValueError, IndexError):
        return _NONE
    if not parallel or not max_threads:
        return _NONE
    _kept.append(library)
    return parallel, max_threads


def _is_forked() -> bool:
    with open("/proc/self/stat") as stat:
        # The program's name may hold anything but is in parentheses; the flags are the seventh field behind it.
        return bool(int(stat.read().rpartition(")")[2].split()[6]) & _FORKED)
