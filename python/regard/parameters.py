"""The parameters of a run's model, by name."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from . import _native


class Parameters(MutableMapping[str, "np.ndarray[Any, Any]"]):
    """The parameters of a run's model: NumPy arrays of float32 by name.

    Reading gives a copy; setting changes the model in memory, and nothing in the run's folder. What is set may be
    a NumPy array or a PyTorch tensor of the same shape, so ``{name: torch.from_numpy(x)}`` and back is all there
    is to it.

    >>> import regard, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = regard.train("regress", epochs=2, out=folder, progress=False)
    ...     run.parameters["w"] = run.parameters["w"] * 2
    ...     sorted(run.parameters)
    ['keys', 'values', 'w']
    """

    def __init__(self, run: _native.Run, changed: set[str] | None = None) -> None:
        self._run = run
        #: The names of those that were set, for whoever has to keep them.
        self._changed = set() if changed is None else changed

    def _shapes(self) -> dict[str, list[int]]:
        return dict(self._run.shapes())

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        shape = self._shapes()[name]
        return np.frombuffer(self._run.parameter(name), "<f4").astype(np.float32).reshape(shape)

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def __delitem__(self, name: str) -> None:
        raise TypeError("a model keeps all of its parameters; set another value")

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes())

    def __len__(self) -> int:
        return len(self._shapes())

    def update(self, *others: Any, **named: Any) -> None:
        """Sets some parameters: all that are given or, where one is refused, none.

        Refuses a name that the model does not have (``KeyError``) and another shape (``ValueError``).

        >>> import regard, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = regard.train("regress", epochs=2, out=folder, progress=False)
        ...     run.parameters.update({"height": [1.0]})
        Traceback (most recent call last):
        KeyError: "the model has no parameter 'height'"
        """
        given: dict[str, Any] = dict(*others, **named)
        known = self._shapes()
        for name in given:
            if name not in known:
                raise KeyError(f"the model has no parameter {name!r}")
        self._run.set_parameters([(name, *_plain(name, value)) for name, value in given.items()])
        self._changed.update(given)

    def tensors(self) -> dict[str, Any]:
        """A copy of all of them as PyTorch tensors by name, as a state dict has them.

        >>> import regard, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = regard.train("regress", epochs=2, out=folder, progress=False)
        ...     {name: x.dtype for name, x in run.parameters.tensors().items()}["w"]
        torch.float32
        """
        import torch

        return {name: torch.from_numpy(self[name]) for name in self}

    def __repr__(self) -> str:
        lines = [f"  {name} {shape}" for name, shape in self._shapes().items()]
        return "\n".join(["Parameters:", *lines])


def _plain(name: str, value: Any) -> tuple[list[int], bytes]:
    """A shape and the numbers as float32."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError:
        raise TypeError(f"parameter {name!r} is given a list of unequal rows; it wants an array") from None
    if array.dtype.kind not in "fiu":
        raise TypeError(f"parameter {name!r} is given {array.dtype}; it wants numbers")
    return list(array.shape), np.ascontiguousarray(array, "<f4").tobytes()

