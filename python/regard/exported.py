"""A run's model in plain PyTorch."""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
from pathlib import Path
from typing import Any

from . import _native
from .threads import get_num_threads

_COUNT = itertools.count(1)


def module(run: _native.Run) -> Any:
    """The model that ``regard export`` writes, loaded, and checked against what the run's own answers.

    >>> import regard, tempfile
    >>> from regard.exported import module
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     module(regard.train("regress", epochs=1, out=folder, progress=False)._run).training
    False
    """
    import torch
    from safetensors.torch import load_file

    with tempfile.TemporaryDirectory() as folder:
        left_out = run.export(get_num_threads(), folder)
        code = Path(folder, "model.py")
        if not code.exists():
            raise ValueError(f"the run has no module of PyTorch: {left_out[0].split(': ', 1)[-1]}")
        spec = importlib.util.spec_from_file_location(f"regard_exported_{next(_COUNT)}", code)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        found = loaded.load(folder)
        given = load_file(Path(folder, "check.safetensors"))
    expected = given.pop("output")
    with torch.no_grad():
        output = found(**given)
    if "lengths" in given and output.dim() == 3:
        # Past a sequence's length labels mean nothing.
        there = loaded.keep(given["lengths"], output.shape[1])[..., None] if "x" in given else 1
        output, expected = output * there, expected * there
    far = float((output - expected).abs().max())
    if not far <= loaded.TOLERANCE * max(1.0, float(expected.abs().max())):
        raise RuntimeError(f"the module of PyTorch is off by {far:.1e} from what the run's model answers")
    found.example_inputs = given
    return found
