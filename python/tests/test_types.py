"""What the type checkers say of the package."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_mypy_finds_nothing_and_the_stub_is_what_the_native_module_has():
    pytest.importorskip("mypy")
    run(sys.executable, "-m", "mypy")
    run(sys.executable, "-m", "mypy.stubtest", "regard._native", "--ignore-disjoint-bases")


@pytest.mark.slow
def test_pyright_finds_nothing():
    pytest.importorskip("pyright")
    run(sys.executable, "-m", "pyright", "--pythonpath", sys.executable)
