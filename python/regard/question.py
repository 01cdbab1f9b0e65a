"""What a model is asked about, as the native half takes it: a text, or the content of a file."""

from __future__ import annotations

import io
import numbers
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from .written import _png, _recordings

Question = Union[str, "tuple[str, bytes]"]

# What models read that is no text: what an input in memory may be, in a sentence that refuses another.
_WANTED = {
    "picture": "a path, a picture of Pillow's or an array of uint8, [height, width] or [height, width, 3]",
    "recording": "a path, or (samples, rate)",
    "features": "a path, or an array [frames, width]",
    "vectors": "a set of vectors, [N, width]",
    "point": "a number, or as many as there are columns",
    "node": "a node's number",
    "graph": "a graph's number",
}


def _is_picture(value: Any) -> bool:
    return hasattr(value, "convert") and hasattr(value, "mode")  # Pillow's


def is_alone(inputs: Any) -> bool:
    """Whether this is one input, and not several.

    >>> from regard.question import is_alone
    >>> is_alone("a text"), is_alone((0.5, 2)), is_alone(["a text"])
    (True, True, False)
    """
    return isinstance(inputs, (str, os.PathLike, numbers.Real, tuple, Mapping)) or _is_picture(inputs)


def rows_of(inputs: Any, form: str, names: Sequence[str] = ()) -> Any:
    """Several inputs, one after the other; of a data frame its rows where they are points, its columns in the order of
    the ``names`` that were learned.

    >>> from regard.question import rows_of
    >>> rows_of(["a text", "another"], "text")
    ['a text', 'another']
    """
    if isinstance(inputs, (bytes, bytearray, set, frozenset)) or not isinstance(inputs, Iterable):
        raise TypeError(f"inputs is {type(inputs).__name__}; it wants one input, or a list of several")
    if not hasattr(inputs, "columns") or not hasattr(inputs, "to_numpy"):
        return inputs
    if form != "point":
        raise TypeError(f"inputs is a {type(inputs).__name__} of columns; one of them, frame[NAME], is inputs")
    return _in_order(inputs, list(names))


def _in_order(frame: Any, names: list[str]) -> Any:
    columns = list(frame.columns)
    given = [str(column) for column in columns]
    # Of an array, whose columns had no names.
    unnamed = names == [f"x{n + 1}" for n in range(len(names))] and not set(names) & set(given)
    if unnamed and len(given) == len(names):
        return frame.to_numpy()
    if any(given.count(name) != 1 for name in names):
        raise ValueError(f"inputs has the columns {given}; the model learned from {names}, and wants each of them once")
    return np.column_stack([np.asarray(frame[columns[given.index(name)]]) for name in names])


def _number(value: Any) -> str:
    plain = value.item() if hasattr(value, "item") else value
    return repr(plain)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _content(value: Any, form: str) -> tuple[str, bytes] | None:
    """What a model that reads files is given in memory."""
    if form == "picture" and (_is_picture(value) or isinstance(value, np.ndarray)):
        return "picture.png", _png(value, "an input")[0]
    if form == "recording" and isinstance(value, (tuple, Mapping)):
        files, _ = _recordings("input", [value], [""], "the inputs")
        return "sound.wav", next(iter(files.values()))
    if form == "features" and isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "fiu":
        to = io.BytesIO()
        np.save(to, value.astype("<f4"))
        return "features.npy", to.getvalue()
    return None


def _text(value: Any, form: str) -> str | None:
    """What a model that reads numbers is given."""
    if isinstance(value, numbers.Real) and value != value:
        raise ValueError("an input is not a number (NaN): it is missing")
    if _is_number(value) and form not in ("picture", "recording", "features"):
        return _number(value)
    if isinstance(value, tuple) and value and all(_is_number(one) for one in value):
        return ",".join(_number(one) for one in value) if form != "recording" else None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        return None
    if form == "point" and value.ndim <= 1 and value.size:
        return ",".join(repr(float(one)) for one in value.reshape(-1))
    if form == "vectors" and value.ndim == 2:
        return " ".join(",".join(repr(float(one)) for one in vector) for vector in value)
    return None


def question(value: Any, form: str) -> str | tuple[str, bytes]:
    """An input for a model whose inputs are of a form; another is refused.

    >>> import numpy as np
    >>> from regard.question import question
    >>> question(np.array([0.5, 2]), "point")
    '0.5,2.0'
    >>> question(np.zeros((4, 4), np.uint8), "picture")[1][1:4]
    b'PNG'
    >>> question(np.zeros((4, 4), np.uint8), "text")
    Traceback (most recent call last):
    TypeError: an input is an array of uint8 [4, 4]; it wants a text
    """
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    found = _content(value, form) or _text(value, form)
    if found is not None:
        return found
    told = type(value).__name__
    if isinstance(value, np.ndarray):
        told = f"an array of {value.dtype} {list(value.shape)}"
    raise TypeError(f"an input is {told}; it wants {_WANTED.get(form, 'a text')}")
