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


def parallel_of_torch() -> int:
    """The address of ``GOMP_parallel`` in GNU's OpenMP library that PyTorch uses; 0 where it uses another, or where
    that cannot be told."""
    if not sys.platform.startswith("linux") or "OpenMP" not in torch.__config__.parallel_info():
        return 0
    try:
        with open("/proc/self/maps") as maps:
            files = {line.split(maxsplit=5)[5].strip() for line in maps if "libgomp" in line}
        # Other packages bring copies of their own, with threads of their own.
        if len(files) > 1:
            folder = os.path.dirname(os.path.abspath(torch.__file__))
            files = {file for file in files if file.startswith((folder + os.sep, folder + ".libs" + os.sep))}
        if len(files) != 1:
            return 0
        library = ctypes.CDLL(files.pop(), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        address = ctypes.cast(library.GOMP_parallel, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return 0
    _kept.append(library)
    return address or 0
