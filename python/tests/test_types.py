"""What the type checkers say of the package."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# Where the checkers' settings are.
PACKAGE = TESTS.parent


def run(*command, folder=PACKAGE):
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_mypy_finds_nothing_and_the_stub_is_what_the_native_module_has():
    pytest.importorskip("mypy")
    run(sys.executable, "-m", "mypy")
    # Of what is installed: the folder of the package has no native module where a wheel was built.
    run(sys.executable, "-m", "mypy.stubtest", "regard._native", "--ignore-disjoint-bases", folder=TESTS)


@pytest.mark.slow
def test_mypy_catches_a_misspelled_normalizer(tmp_path):
    pytest.importorskip("mypy")
    file = tmp_path / "call.py"
    file.write_text("import numpy as np, regard\nx = np.eye(3)\nregard.attention(x, x, x, normalizer='softmaxx')\n")
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE)
    assert done.returncode == 1 and "call.py:3" in done.stdout
    file.write_text(file.read_text().replace("softmaxx", "softmax"))
    assert subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE).returncode == 0


@pytest.mark.slow
def test_pyright_finds_nothing():
    pytest.importorskip("pyright")
    for package in ("transformers", "sklearn"):  # modules speak to them
        pytest.importorskip(package)
    run(sys.executable, "-m", "pyright", "--pythonpath", sys.executable)
