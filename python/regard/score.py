"""Scores with learned numbers: how much a key matters to a query."""

from __future__ import annotations

from typing import Any


class Additive:
    """Σ w · act(q + k): Bahdanau's score with ``tanh``, GATv2's with ``leaky_relu``.

    ``w`` is ``[D]`` or, for each query head its own, ``[Hq, D]``. The activation is one of ``tanh``,
    ``leaky_relu`` (``leaky_relu(0.1)`` for another slope than 0.2), ``relu``, ``gelu`` and ``identity``.

    >>> import numpy as np, regard
    >>> q, k = np.ones((2, 3)), np.zeros((4, 3))
    >>> regard.attention(q, k, k, score=regard.Additive(np.ones(3))).shape
    (2, 3)
    """

    __slots__ = ("w", "activation")

    def __init__(self, w: Any, activation: str = "tanh") -> None:
        if not isinstance(activation, str):
            raise TypeError(f"activation is {type(activation).__name__}; it wants the name of one, as 'tanh'")
        self.w = w
        self.activation = activation

    def __repr__(self) -> str:
        return f"Additive({_shown(self.w)}, {self.activation!r})"


class Expression:
    """A score of your own, written over the query ``q``, the key ``k`` and named parameters.

    A parameter is one number (``[]`` or ``[1]``), a row as wide as a head (``[D]``), or one of either for
    each query head (``[Hq, 1]``, ``[Hq, D]``). There are ``+ - * / @``, ``sum``, ``mean``, ``norm``,
    ``square``, ``sqrt``, ``abs``, ``exp``, ``log``, ``tanh``, ``sigmoid``, ``relu``, ``leaky_relu``,
    ``gelu``, ``softplus``, ``sin``, ``cos``, ``max`` and ``min``; ``d`` is the width. It is
    differentiated and run on tiles, forward and backward.

    >>> import numpy as np, regard
    >>> x, w = np.eye(3), np.array([1.0, 2.0, 3.0])
    >>> near = regard.Expression("-sum(square(w * (q - k)))", w=w)
    >>> regard.attention(x, x, x, score=near).argmax(axis=1)
    array([0, 1, 2])
    """

    __slots__ = ("text", "parameters")

    def __init__(self, text: str, /, **parameters: Any) -> None:
        if not isinstance(text, str):
            raise TypeError(f"the expression is {type(text).__name__}; it wants text, as 'q @ k'")
        self.text = text
        self.parameters = parameters

    def __repr__(self) -> str:
        named = "".join(f", {name}={_shown(x)}" for name, x in self.parameters.items())
        return f"Expression({self.text!r}{named})"


def _shown(x: Any) -> str:
    """A number as it is, and of an array its type and shape."""
    shape = getattr(x, "shape", None)
    if shape is None:
        return repr(x)
    if len(shape) == 0 and not getattr(x, "is_meta", False):
        return repr(x.item())
    return f"{str(x.dtype).removeprefix('torch.')}{list(shape)}"
