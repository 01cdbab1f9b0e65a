"""Weights as arrays, as a picture and as a page: what a run's model attended to, or weights from anywhere."""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _native
from ._safetensors import arrays

# More queries or keys than this cannot be told apart in a picture.
_MOST = 2000


class Scene(Mapping[str, "np.ndarray[Any, Any]"]):
    """The attention weights of one kind for one input: arrays by the names of their heads.

    ``weights`` holds all of them, ``[heads, rows, columns]`` (``[heads, edges]`` of a graph); ``rows`` and
    ``columns`` are the labels of queries and keys, ``nodes`` those of a graph's nodes; ``arrays`` has whatever
    else belongs to the scene: edges, pixels, a spectrogram, a curve. It draws itself in a notebook.

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
        self._picture: _native.Picture | None = None

    @classmethod
    def _of(cls, name: str, data: bytes, picture: _native.Picture) -> Scene:
        found, labels = arrays(data)
        scene = cls(name, found.pop("weights"), labels, found)
        scene._picture = picture
        return scene

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

    def page(self) -> Page:
        """The scene as a page, drawn with the weights as they are now.

        A scene that was made by hand or came out of a pickle is drawn where it has rows and columns; one of a
        graph, an image or a curve needs the run that gave it.

        >>> import numpy as np
        >>> from regard.scene import Scene
        >>> scene = Scene("alignment", np.ones((1, 1, 2), np.float32) / 2, {"maps": ["head 1"], "columns": ["a", "b"]}, {})
        >>> scene.page().svg.startswith("<svg")
        True
        """
        weights = np.ascontiguousarray(self.weights, "<f4")
        if self._picture is not None:
            return Page._of(self._picture.with_weights(weights.tobytes()))
        if weights.ndim != 3 or self.nodes or {"pixels", "curve", "spectrogram"} & set(self.arrays):
            raise ValueError(f"the scene {self.name!r} can be drawn only where run.attention gave it, not out of a pickle")
        names = [_named("rows", self.rows, weights.shape), _named("columns", self.columns, weights.shape)]
        hidden = self.arrays.get("mask")
        return _drawn(self.name, self.heads, names, weights, None if hidden is None else hidden == 0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the scene as ``Page.save`` does: ``.html``, ``.svg``, ``.png`` or ``.gif``.

        >>> import numpy as np, pathlib, tempfile
        >>> from regard.scene import Scene
        >>> scene = Scene("alignment", np.ones((1, 1, 2), np.float32) / 2, {"maps": ["head 1"], "columns": ["a", "b"]}, {})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "alignment.png")
        ...     scene.save(path)
        ...     path.read_bytes()[1:4]
        b'PNG'
        """
        self.page().save(path)

    def _repr_html_(self) -> str | None:
        try:
            return self.page()._repr_html_()
        except ValueError:
            # A notebook shows the text in its place.
            return None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_picture": None}

    def __repr__(self) -> str:
        return f"Scene({self.name!r}, weights {list(self.weights.shape)})"


class Page:
    """A scene as a page that stands alone: it draws itself in a notebook, and ``save`` writes it as ``.html``, ``.svg``,
    ``.png`` or ``.gif``. ``html`` is the page, ``svg`` the picture.

    >>> from regard.scene import Page
    >>> Page("<p>A page.</p>", "<svg/>").html
    '<p>A page.</p>'
    """

    def __init__(self, html: str, svg: str) -> None:
        self._html: str | None = html
        self._svg: str | None = svg
        self._picture: _native.Picture | None = None

    @classmethod
    def _of(cls, picture: _native.Picture) -> Page:
        page = cls("", "")
        page._html, page._svg, page._picture = None, None, picture
        return page

    @property
    def html(self) -> str:
        """The page, one file that fetches nothing."""
        if self._html is None:
            assert self._picture is not None
            self._html = self._picture.page()
        return self._html

    @property
    def svg(self) -> str:
        """The picture: all maps side by side."""
        if self._svg is None:
            assert self._picture is not None
            self._svg = self._picture.svg()
        return self._svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page where the path ends in ``.html`` or ``.htm``, the picture where it ends in ``.svg`` or ``.png``,
        one that moves (row after row, or map after map) where it ends in ``.gif``; any other ending is refused.

        >>> import pathlib, tempfile
        >>> from regard.scene import Page
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "page.svg")
        ...     Page("<p>A page.</p>", "<svg/>").save(path)
        ...     path.read_text()
        '<svg/>'
        """
        content = self._content(os.fspath(path))
        with open(path, "wb") as file:
            file.write(content)

    def _content(self, path: str) -> bytes:
        ending = os.path.splitext(path)[1].lower()
        if ending in (".html", ".htm"):
            return self.html.encode()
        if ending == ".svg":
            return self.svg.encode()
        if ending == ".png":
            drawn, advice = _native.png(self.svg)
            if advice is not None:
                warnings.warn(advice, UserWarning, stacklevel=3)
            return drawn
        if ending == ".gif":
            if self._picture is None:
                raise ValueError("this page is out of a pickle and has no rows to show one by one; draw it again for a .gif")
            return self._picture.gif()
        raise ValueError(f"path is {path!r}; a page is saved as .html, its picture as .svg, .png or .gif")

    def _repr_html_(self) -> str:
        # In a frame of its own, so that neither its style nor the notebook's reaches the other; and in a sandbox: labels
        # are somebody's texts, and the page's script needs nothing of the notebook it stands in.
        page = html.escape(self.html, quote=True)
        style = "width: 100%; height: 640px; border: 0"
        return f'<iframe sandbox="allow-scripts" srcdoc="{page}" style="{style}"></iframe>'

    def __reduce__(self) -> tuple[Any, ...]:
        return Page, (self.html, self.svg)

    def __repr__(self) -> str:
        return f"Page({len(self.html)} characters)"


def _named(what: str, names: Any, shape: Sequence[int]) -> list[str]:
    """The names of rows or columns; their numbers where there are none."""
    if isinstance(names, (str, bytes)):
        raise TypeError(f"{what} is a text; it wants a list of names")
    given = [] if names is None else [str(name) for name in names]
    count = shape[-2] if what == "rows" else shape[-1]
    if given and len(given) != count:
        raise ValueError(f"{what} has {len(given)} names; weights {list(shape)} have {count} {what}")
    return given or [str(n + 1) for n in range(count)]


def _drawn(
    title: str,
    heads: Sequence[str],
    names: Sequence[Sequence[str]],
    weights: np.ndarray[Any, Any],
    hidden: np.ndarray[Any, Any] | None,
) -> Page:
    numbers = np.ascontiguousarray(weights, "<f4").tobytes()
    masked = None if hidden is None else np.ascontiguousarray(hidden, np.uint8).tobytes()
    rows, columns = names
    return Page._of(_native.Picture(title, (list(heads), list(rows), list(columns)), numbers, masked))


def _plain(weights: Any) -> np.ndarray[Any, Any]:
    """Weights as an array of float32; a masked array stays one."""
    if hasattr(weights, "detach"):
        weights = weights.detach().cpu()
        weights = (weights if weights.is_complex() else weights.float()).numpy()
    try:
        found: np.ndarray[Any, Any] = np.asanyarray(weights)
    except ValueError:
        raise TypeError("weights is a list of unequal rows; it wants an array") from None
    if found.dtype.kind not in "fiub":
        raise TypeError(f"weights is {found.dtype}; it wants numbers")
    if not 2 <= found.ndim <= 4 or found.size == 0:
        raise ValueError(f"weights has shape {list(found.shape)}; it wants [Nq, Nk], [H, Nq, Nk] or [L, H, Nq, Nk]")
    if max(found.shape[-2:]) > _MOST:
        rows, columns = found.shape[-2:]
        raise ValueError(f"weights is {rows} × {columns}; a picture has {_MOST} × {_MOST} at most")
    return found


def show(weights: Any, rows: Any = None, columns: Any = None, *, title: str = "") -> Page:
    """Any weights as a page to look around in, which draws itself in a notebook: ``[Nq, Nk]``, ``[H, Nq, Nk]`` or ``[L, H,
    Nq, Nk]``, a NumPy array, a tensor or a list.

    ``rows`` and ``columns`` name the queries and the keys; those that have no names are numbered from 1. All maps have
    one scale of colors, from 0, or from the least weight where that is below, to the greatest. A weight that is no
    finite number is drawn as missing, what a masked array hides as hidden by a mask.

    >>> import numpy as np, regard
    >>> q, k = np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)
    >>> _, aux = regard.attention(q, k, k, return_aux=("weights",))
    >>> page = regard.show(aux.weights, ["a", "b", "c"], ["x", "y", "z"], title="three by three")
    >>> page.svg.startswith("<svg"), "three by three" in page.html
    (True, True)
    >>> regard.show(aux.weights, rows=["a"])
    Traceback (most recent call last):
    ValueError: rows has 1 names; weights [3, 3] have 3 rows
    """
    if not isinstance(title, str):
        raise TypeError(f"title is {type(title).__name__}; it wants a text")
    found = _plain(weights)
    names = [_named("rows", rows, found.shape), _named("columns", columns, found.shape)]
    hidden = np.ma.getmaskarray(found) if isinstance(found, np.ma.MaskedArray) else None
    if hidden is not None:
        found = np.ma.getdata(found)
    if found.ndim == 4:
        layers, heads = found.shape[:2]
        maps = [f"layer {at + 1}, head {head + 1}" for at in range(layers) for head in range(heads)]
    else:
        maps = [f"head {head + 1}" for head in range(found.shape[0])] if found.ndim == 3 else ["weights"]
    return _drawn(title, maps, names, found, hidden)
