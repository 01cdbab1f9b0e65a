"""Options of a task as they are written in Python, for the native half: ``key=value`` with the value in TOML."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


def _value(name: str, value: Any) -> str:
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()  # a number of NumPy's
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(name, one) for one in value) + "]"
    raise TypeError(f"{name} is {type(value).__name__}; an option is a number, a text, a truth or a list of them")


def settings(options: Mapping[str, Any]) -> list[str]:
    """One text for each option; a dictionary is a section."""
    found = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            found += [f"{name}.{key}={_value(f'{name}.{key}', one)}" for key, one in value.items()]
        else:
            found.append(f"{name}={_value(name, value)}")
    return found


def path(name: str, value: Any) -> str | None:
    """A path as text."""
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} is {type(value).__name__}; it wants a path")
    text = os.fspath(value)
    if not isinstance(text, str):
        raise TypeError(f"{name} is a path of bytes; it wants one of text")
    return text


def device_name(device: Any) -> str:
    """A device as the native half takes it: its name, or that of a device of PyTorch's.

    >>> from regard._options import device_name
    >>> device_name("cuda:1")
    'cuda:1'
    """
    if isinstance(device, str):
        return device
    if type(device).__module__ == "torch" and type(device).__name__ == "device":
        return str(device)
    raise TypeError(f"device is {type(device).__name__}; it wants a name, as 'cuda', or a torch.device")
