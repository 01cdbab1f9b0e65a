"""The numbers of a scene, as the native half gives them: the bytes of a safetensors file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

_DTYPES: dict[str, Any] = {"F32": np.float32, "I64": np.int64, "BOOL": np.bool_}


def arrays(data: bytes) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """The arrays by name, and the labels that stand beside them."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    labels = json.loads(header.pop("__metadata__", {}).get("labels", "{}"))
    found = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        numbers = np.frombuffer(data[begin:end], _DTYPES[entry["dtype"]])
        found[name] = numbers.reshape(entry["shape"]).copy()
    return found, labels
