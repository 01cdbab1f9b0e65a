"""Attention you can pick, train, run fast and look at.

    weights = normalize( score(q, k) + bias, where mask )        output = weights · v

``attention`` is the operator, for NumPy arrays and PyTorch tensors; ``regard.torch`` has modules on it,
``regard.transformers`` puts it behind Hugging Face's models. ``train`` and ``load`` give a run: a trained model
that predicts, is measured and is looked at, also with another attention (``regard.change``); ``regard.ray`` has both
on a cluster.

>>> import numpy as np, regard
>>> x = np.random.default_rng(0).normal(size=(2, 4, 10, 16))
>>> regard.attention(x, x, x, is_causal=True).shape
(2, 4, 10, 16)
"""

from __future__ import annotations

import importlib
from typing import Any

from . import change
from ._arguments import Aux
from ._call import Gradients
from ._native import instruction_set
from .catalog import options, tasks
from .edges import Edges
from .memory import release_memory
from .merge import merge_attentions
from .operator import attention, attention_backward, gpu_forms
from .run import Ablation, Prediction, Report, Run, Saliency, load
from .scene import show
from .score import Additive, Expression
from .simplex import entmax, entmax15, sparsemax
from .threads import get_num_threads, set_num_threads
from .training import train

__version__ = "0.1.0"

__all__ = [
    "Ablation",
    "Additive",
    "Aux",
    "Edges",
    "Expression",
    "Gradients",
    "Prediction",
    "Report",
    "Run",
    "Saliency",
    "attention",
    "attention_backward",
    "change",
    "gpu_forms",
    "entmax",
    "entmax15",
    "get_num_threads",
    "instruction_set",
    "load",
    "merge_attentions",
    "options",
    "release_memory",
    "set_num_threads",
    "show",
    "sparsemax",
    "tasks",
    "train",
]

# Found when they are asked for: they import packages that `regard` does not need.
_LAZY = ("ray", "sklearn", "torch", "transformers")
_ESTIMATORS = ("RegardClassifier", "RegardRegressor")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        return getattr(importlib.import_module(f"{__name__}.sklearn"), name)
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
