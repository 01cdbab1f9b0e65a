"""The compiler of the GPU's kernels, which PyTorch's packages bring along."""

import ctypes
from pathlib import Path

import pytest

pytest.importorskip("torch")

from regard._gpu import bring_nvrtc


def test_the_packages_compiler_is_found_by_its_name():
    file = bring_nvrtc()
    if file is None:
        pytest.skip("this PyTorch has no NVRTC beside it")
    major, minor = ctypes.c_int(), ctypes.c_int()
    # By name: the loader gives the one that is open already.
    assert ctypes.CDLL(Path(file).name).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
    assert major.value >= 12
