"""The examples of training with Hugging Face, accelerate and Lightning, and of experiment trackers, run."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("package", ["trainer", "accelerate", "lightning"])
def test_an_example_learns(package, tmp_path, monkeypatch):
    pytest.importorskip("accelerate" if package == "trainer" else package)
    monkeypatch.chdir(tmp_path)
    first, last = runpy.run_path(str(EXAMPLES / f"train_with_{package}.py"))["main"]()
    assert last < 0.6 * first, (first, last)


#: What each tracker has kept: a pattern of files, and what stands in them.
KEPT = {"tensorboard": "events.out.*", "mlflow": "**/metrics/training_loss", "wandb": "wandb/offline-run-*/*.wandb"}


@pytest.mark.parametrize("tracker", KEPT)
def test_a_tracker_keeps_every_epoch(tracker, tmp_path, monkeypatch):
    pytest.importorskip(tracker)
    monkeypatch.chdir(tmp_path)
    example = runpy.run_path(str(EXAMPLES / "track.py"))
    assert set(example["TRACKERS"]) == set(KEPT)
    assert example["main"](tracker, tmp_path, epochs=2) == 2
    (kept,) = (tmp_path / tracker).glob(KEPT[tracker])
    content = kept.read_bytes()
    if tracker == "mlflow":
        assert len(content.splitlines()) == 2
    else:
        assert b"training_loss" in content
