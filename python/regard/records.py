"""Data that lie in memory, as rows of a task's fields: lists, arrays, data frames, datasets, iterators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

PARTS = ("train", "validation", "test")


def has_parts(data: Any) -> bool:
    """Whether data are several parts by name, as a ``DatasetDict`` of Hugging Face has them, and not the paths that
    the section ``data`` of a task's options may have under the same names.

    >>> from regard.records import has_parts
    >>> has_parts({"train": [("a film", "good")]}), has_parts({"train": "train.tsv", "test": "test.tsv"})
    (True, False)
    """
    if not isinstance(data, Mapping) or not data or not set(data) <= set(PARTS):
        return False
    return any(not isinstance(part, str) and not hasattr(part, "__fspath__") for part in data.values())


def is_option(data: Any, fields: Sequence[str], columns: Mapping[str, str] | None = None) -> bool:
    """Whether ``data`` is the section of that name of a task's options, and holds no data; ``columns`` speak of data.

    >>> from regard.records import is_option
    >>> is_option({"held_out": 0.2}, ["text", "label"]), is_option({"text": ["a"], "label": ["b"]}, ["text", "label"])
    (True, False)
    """
    return isinstance(data, Mapping) and columns is None and not has_parts(data) and not set(fields) <= set(data)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _columns(data: Any) -> dict[str, Any] | None:
    """The columns of a frame, a dataset or a dictionary of columns, by name; None where data have no such."""
    if isinstance(data, Mapping):
        return dict(data)
    names = getattr(data, "column_names", None)  # Hugging Face's
    if names is None and hasattr(data, "to_dict"):
        names = getattr(data, "columns", None)  # pandas' and Polars'
    if names is None or callable(names):
        return None
    found = {str(name): data[name] for name in names}
    if len(found) < len(names):
        # Of two columns with one name one would be lost.
        raise ValueError(f"the columns {[str(name) for name in names]} have one name twice; each wants one of its own")
    return found


def _as_list(column: Any, name: str) -> list[Any]:
    if isinstance(column, (str, bytes, Mapping, set, frozenset)) or not isinstance(column, Iterable):
        # A dictionary would give its keys, a text its letters, a set any order.
        raise TypeError(f"column {name} is {type(column).__name__}; it wants a list or an array")
    # An array of many dimensions stays a list of arrays: the pictures of `[N, H, W]`.
    plain = getattr(column, "ndim", 1) == 1
    for method in ("tolist", "to_list", "to_pylist"):
        if plain and hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _is_column(value: Any) -> bool:
    return not isinstance(value, (str, bytes, Mapping)) and hasattr(value, "__len__") and hasattr(value, "__getitem__")


def named_columns(data: Any) -> dict[str, list[Any]] | None:
    """All columns of data that have names, as lists; None where they have none.

    >>> from regard.records import named_columns
    >>> named_columns({"x": (1, 2), "y": [3, 4]})
    {'x': [1, 2], 'y': [3, 4]}
    """
    found = _columns(data)
    return None if found is None else {name: _as_list(column, name) for name, column in found.items()}


def rows(
    data: Any, fields: Sequence[str], columns: Mapping[str, str] | None = None, part: str = "data"
) -> list[tuple[Any, ...]]:
    """Data as rows of these fields: from columns by name, from a tuple of as many sequences, or from an iterable of
    rows, each a dictionary or a sequence in the order of the fields. ``columns`` says what a field is called where
    that is another name. Refuses a column that is not there, columns of several lengths, and a value that is missing.

    >>> from regard.records import rows
    >>> rows({"text": ["a", "b"], "label": [0, 1]}, ["text", "label"])
    [('a', 0), ('b', 1)]
    >>> rows((["a", "b"], [0, 1]), ["text", "label"])
    [('a', 0), ('b', 1)]
    >>> rows([{"review": "a", "stars": 5}], ["text", "label"], {"text": "review", "label": "stars"})
    [('a', 5)]
    """
    names = [str((columns or {}).get(field, field)) for field in fields]
    unknown = set(columns or {}) - set(fields)
    if unknown:
        raise ValueError(f"columns names {sorted(unknown)}; the fields are {list(fields)}")
    table = _columns(data)
    if table is not None:
        _check_names(names, fields, table, part)
        found = _side_by_side([_as_list(table[name], name) for name in names], names, part)
    elif isinstance(data, tuple) and len(data) == len(fields) and all(_is_column(one) for one in data):
        found = _side_by_side([_as_list(one, field) for one, field in zip(data, fields)], fields, part)
    elif isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        found = [_row(at, one, names, fields, part) for at, one in enumerate(data)]
    else:
        raise TypeError(f"{part} is {type(data).__name__}; it wants rows, columns, a data frame or a dataset")
    if not found:
        raise ValueError(f"{part} has no rows")
    for at, row in enumerate(found):
        for field, value in zip(fields, row):
            if _is_missing(value):
                raise ValueError(f"row {at} of {part} has no {field}")
    return found


def _check_names(names: Sequence[str], fields: Sequence[str], there: Iterable[str], part: str) -> None:
    there = list(there)
    for name, field in zip(names, fields):
        if name not in there:
            raise ValueError(
                f"{part} has no column {name!r}, it has {there}; columns={{{field!r}: NAME}} says which one is meant"
            )


def _side_by_side(columns: list[list[Any]], names: Sequence[str], part: str) -> list[tuple[Any, ...]]:
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        told = ", ".join(f"{length} of {name}" for name, length in zip(names, lengths))
        raise ValueError(f"{part} has columns of several lengths: {told}")
    return list(zip(*columns))


def _row(at: int, row: Any, names: Sequence[str], fields: Sequence[str], part: str) -> tuple[Any, ...]:
    if isinstance(row, Mapping):
        missing = [name for name in names if name not in row]
        if missing:
            raise ValueError(f"row {at} of {part} has no {missing[0]!r}, it has {list(row)}")
        return tuple(row[name] for name in names)
    if not _is_column(row) or len(row) != len(fields):
        raise ValueError(f"row {at} of {part} is {str(row)[:60]!r}; it wants {' and '.join(fields)}")
    return tuple(row)
