"""What a run's model attended to, as arrays and as a page."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._safetensors import arrays


class Scene(Mapping[str, "np.ndarray[Any, Any]"]):
    """The attention weights of one kind for one input: arrays by the names of their heads.

    ``weights`` holds all of them, ``[heads, rows, columns]`` (``[heads, edges]`` of a graph); ``rows`` and
    ``columns`` are the labels of queries and keys, ``nodes`` those of a graph's nodes; ``arrays`` has whatever
    else belongs to the scene: edges, pixels, a spectrogram, a curve.

    >>> import numpy as np
    >>> from regard.scene import Scene
    >>> scene = Scene("alignment", np.ones((1, 1, 2), np.float32) / 2, {"maps": ["head 1"], "columns": ["a", "b"]}, {})
    >>> scene["head 1"].tolist(), scene.columns
    ([[0.5, 0.5]], ['a', 'b'])
    """

    def __init__(
        self,
        name: str,
        weights: np.ndarray[Any, Any],
        labels: Mapping[str, Any],
        others: Mapping[str, np.ndarray[Any, Any]],
    ) -> None:
        self.name = name
        self.weights = weights
        self.heads: list[str] = list(labels.get("maps", ()))
        self.rows: list[str] = list(labels.get("rows", ()))
        self.columns: list[str] = list(labels.get("columns", ()))
        self.nodes: list[str] = list(labels.get("nodes", ()))
        self.arrays = dict(others)

    @classmethod
    def _of(cls, name: str, data: bytes) -> Scene:
        found, labels = arrays(data)
        return cls(name, found.pop("weights"), labels, found)

    def __getitem__(self, head: str) -> np.ndarray[Any, Any]:
        try:
            found: np.ndarray[Any, Any] = self.weights[self.heads.index(head)]
        except ValueError:
            raise KeyError(head) from None
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.heads)

    def __len__(self) -> int:
        return len(self.heads)

    def __repr__(self) -> str:
        return f"Scene({self.name!r}, weights {list(self.weights.shape)})"


class Page:
    """A scene as a page that stands alone: it draws itself in a notebook, and ``save`` writes it as ``.html`` or
    ``.svg``.

    >>> from regard.scene import Page
    >>> Page("<p>A page.</p>", "<svg/>").html
    '<p>A page.</p>'
    """

    def __init__(self, html: str, svg: str) -> None:
        self.html = html
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page where the path ends in ``.html`` or ``.htm``, the picture where it ends in ``.svg``; any other
        ending is refused.

        >>> import pathlib, tempfile
        >>> from regard.scene import Page
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "page.svg")
        ...     Page("<p>A page.</p>", "<svg/>").save(path)
        ...     path.read_text()
        '<svg/>'
        """
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending not in (".html", ".htm", ".svg"):
            raise ValueError(f"path is {os.fspath(path)!r}; a page is saved as .html, its picture as .svg")
        text = self.svg if ending == ".svg" else self.html
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def _repr_html_(self) -> str:
        # In a frame of its own, so that neither its style nor the notebook's reaches the other.
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 640px; border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"Page({len(self.html)} characters)"
