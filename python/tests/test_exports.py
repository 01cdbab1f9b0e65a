"""Exported models answer as Regard does: every score, weighting, encoder, decoder and task, by PyTorch.

The folders are written by a test in Rust, which has a model of each combination with made-up weights:

    REGARD_EXPORTS=target/exports cargo test --workspace --test toolkit every_network
    REGARD_EXPORTS=target/exports pytest python/tests/test_exports.py
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

FOLDER = os.environ.get("REGARD_EXPORTS")
pytestmark = pytest.mark.skipif(not FOLDER, reason="REGARD_EXPORTS names no folder of exported models")


def checked(out):
    """Runs a module's own check: what it says, or why it fails."""
    spec = importlib.util.spec_from_file_location("exported", out / "model.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        module.main()
    except SystemExit as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def test_every_exported_module_answers_as_regard_does():
    torch.set_num_threads(1)
    folders = sorted(path.parent for path in Path(FOLDER).glob("*/settings.txt"))
    written = int((Path(FOLDER) / "count.txt").read_text())
    assert len(folders) == written >= 1240
    wrong = {(folder / "settings.txt").read_text(): checked(folder / "out") for folder in folders}
    wrong = {settings: why for settings, why in wrong.items() if why}
    assert not wrong, f"{len(wrong)} of {written}:\n" + "\n".join(f"{name}: {why}" for name, why in wrong.items())


def test_a_module_that_answers_otherwise_fails(tmp_path):
    source = sorted(Path(FOLDER).glob("*/out"))[0]
    for file in source.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert subprocess.run([sys.executable, tmp_path / "model.py"], capture_output=True).returncode == 0
    code = (tmp_path / "model.py").read_text()
    (tmp_path / "model.py").write_text(code.replace("output = load()(**check)", "output = load()(**check) + 0.1"))
    failed = subprocess.run([sys.executable, tmp_path / "model.py"], capture_output=True, text=True)
    assert failed.returncode == 1 and "does not answer as Regard does" in failed.stderr
