"""Changes of a trained model's attention while it is asked: ``run.predict(x, changes=[…])``,
``run.attention(x, changes=[…])``. Several compose. Sites are ``"encoder"``, ``"decoder"``, ``"cross"``, ``"pooling"``,
``"hops"``, ``"question"``, ``"graph"`` and ``"kernel"``; layers, heads, rows and columns count from 0, and what is not
named is every one of them.

>>> from regard import change
>>> change.off("encoder", layer=0, head=2)
{'change': 'off', 'site': 'encoder', 'layer': 0, 'head': 2}
"""

from __future__ import annotations

import os
from typing import Any, Literal

Change = dict[str, Any]


def off(site: str, layer: int | None = None, head: int | None = None) -> Change:
    """A head whose output is zero."""
    return {"change": "off", "site": site, "layer": layer, "head": head}


def forbid(
    site: str, column: int, row: int | None = None, layer: int | None = None, head: int | None = None
) -> Change:
    """A key that is not seen."""
    return {"change": "forbid", "site": site, "layer": layer, "head": head, "row": row, "column": column}


def strengthen(
    site: str, column: int, bias: float, row: int | None = None, layer: int | None = None, head: int | None = None
) -> Change:
    """A key whose score is raised by ``bias``, or lowered where it is negative."""
    return {**forbid(site, column, row, layer, head), "change": "strengthen", "bias": bias}


def temperature(value: float) -> Change:
    """What all scores are divided by."""
    return {"change": "temperature", "value": value}


def normalizer(name: Literal["softmax", "sparsemax", "entmax", "argmax"]) -> Change:
    """How scores become weights."""
    return {"change": "normalizer", "name": name}


def window(reach: int) -> Change:
    """How far self-attention sees."""
    return {"change": "window", "reach": reach}


def patch(
    site: str,
    layer: int,
    head: int,
    from_input: str | os.PathLike[str] | float,
    what: Literal["attention", "output"] = "output",
) -> Change:
    """A head with what it does for another input: its output, or its attention over this input's values."""
    other = os.fspath(from_input) if isinstance(from_input, (str, os.PathLike)) else str(from_input)
    return {"change": "patch", "site": site, "layer": layer, "head": head, "from": other, "what": what}
