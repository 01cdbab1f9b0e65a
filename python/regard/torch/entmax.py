"""Sparsemax and entmax as modules, and the losses that go with them, with the arguments of the package `entmax`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..simplex import entmax, entmax15, sparsemax


def _check_k(k: Any) -> None:
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise ValueError(f"k is {k!r}; it wants a whole number from 1 on: it says how much is sorted first, and nothing is here")


class _Map(nn.Module):
    def __init__(self, dim: int = -1, k: int | None = None) -> None:
        super().__init__()
        _check_k(k)
        self.dim = dim
        self.k = k

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Sparsemax(_Map):
    """``regard.sparsemax`` as a module. ``k`` changes no result, in the package `entmax` neither.

    >>> import torch, regard.torch
    >>> regard.torch.Sparsemax(dim=0)(torch.tensor([2.0, 1.5, 0.1]))
    tensor([0.7500, 0.2500, 0.0000])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Weights of the shape of ``x``, which sum to 1 along ``dim``."""
        found: Tensor = sparsemax(x, self.dim)
        return found


class Entmax15(_Map):
    """``regard.entmax15`` as a module. ``k`` changes no result, in the package `entmax` neither.

    >>> import torch, regard.torch
    >>> regard.torch.Entmax15()(torch.tensor([0.0, 0.0, -9.0]))
    tensor([0.5000, 0.5000, 0.0000])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Weights of the shape of ``x``, which sum to 1 along ``dim``."""
        found: Tensor = entmax15(x, self.dim)
        return found


class EntmaxBisect(nn.Module):
    """``regard.entmax`` as a module: any α from 1 on, or an ``nn.Parameter`` above 1 that learns.

    >>> import torch, regard.torch
    >>> alpha = torch.nn.Parameter(torch.tensor([1.7]))
    >>> layer = regard.torch.EntmaxBisect(alpha)
    >>> layer(torch.tensor([2.0, 1.5, 0.1])).square().sum().backward()
    >>> bool(alpha.grad > 0)
    True
    """

    def __init__(self, alpha: Any = 1.5, dim: int = -1, n_iter: int = 50) -> None:
        super().__init__()
        self.alpha = alpha
        self.dim = dim
        self.n_iter = n_iter

    def forward(self, x: Tensor) -> Tensor:
        """Weights of the shape of ``x``, which sum to 1 along ``dim``."""
        found: Tensor = entmax(x, self.alpha, self.dim, n_iter=self.n_iter)
        return found

    def extra_repr(self) -> str:
        alpha = "learned" if isinstance(self.alpha, Tensor) else self.alpha
        return f"alpha={alpha}, dim={self.dim}, n_iter={self.n_iter}"


class _Loss(nn.Module):
    """H(p) + (p − e_target) · x, where p are the weights of the scores x and H is their Tsallis entropy."""

    def __init__(self, ignore_index: int, reduction: str) -> None:
        super().__init__()
        if reduction not in ("elementwise_mean", "sum", "none"):
            raise ValueError(f"reduction is {reduction!r}; there are 'elementwise_mean', 'sum' and 'none'")
        self.ignore_index = ignore_index
        self.reduction = reduction

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Weights, and their entropy."""
        raise NotImplementedError

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """Scores ``[N, C]`` and the classes ``[N]`` that are right; what is ``ignore_index`` counts nothing."""
        if x.dim() != 2 or tuple(target.shape) != tuple(x.shape[:1]):
            raise ValueError(f"x has shape {list(x.shape)} and target {list(target.shape)}; it wants [N, C] and [N]")
        if target.is_floating_point() or target.is_complex() or target.dtype is torch.bool:
            raise TypeError(f"target is {target.dtype}; it wants whole numbers")
        ignored = target == self.ignore_index
        right = target.masked_fill(ignored, 0).long().unsqueeze(1)
        p, entropy = self._parts(x)
        # A class that is masked out by −inf has no weight, and no product.
        expected = (p * x.masked_fill(p == 0, 0.0)).sum(1)
        loss = (entropy + expected - x.gather(1, right).squeeze(1)).masked_fill(ignored, 0.0)
        if self.reduction == "none":
            return loss
        return loss.sum() if self.reduction == "sum" else loss.sum() / (~ignored).sum()

    def extra_repr(self) -> str:
        return f"ignore_index={self.ignore_index}, reduction={self.reduction!r}"


def _entropy(p: Tensor, alpha: Any) -> Tensor:
    """Tsallis' entropy, Shannon's for α = 1."""
    if not isinstance(alpha, Tensor) and alpha == 1:
        of_one: Tensor = torch.special.entr(p).sum(dim=1)
        return of_one
    found: Tensor = (1 - p.pow(alpha).sum(dim=1)) / (alpha * (alpha - 1))
    return found


class SparsemaxLoss(_Loss):
    """The loss of scores whose sparsemax are the weights of classes (Martins and Astudillo 2016).

    >>> import torch, regard.torch
    >>> loss = regard.torch.SparsemaxLoss()
    >>> loss(torch.tensor([[3.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.)
    """

    def __init__(self, k: int | None = None, ignore_index: int = -100, reduction: str = "elementwise_mean") -> None:
        super().__init__(ignore_index, reduction)
        _check_k(k)
        self.k = k

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        p: Tensor = sparsemax(x)
        return p, _entropy(p, 2.0)


class Entmax15Loss(_Loss):
    """The loss of scores whose entmax with α = 1.5 are the weights of classes (Peters, Niculae and Martins 2019).

    >>> import torch, regard.torch
    >>> loss = regard.torch.Entmax15Loss(reduction="none")
    >>> loss(torch.tensor([[3.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor([0.])
    """

    def __init__(self, k: int | None = 100, ignore_index: int = -100, reduction: str = "elementwise_mean") -> None:
        super().__init__(ignore_index, reduction)
        _check_k(k)
        self.k = k

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        p: Tensor = entmax15(x)
        return p, _entropy(p, 1.5)


class EntmaxBisectLoss(_Loss):
    """The same for any α from 1 on, also for one above 1 that learns (a tensor of one number).

    >>> import torch, regard.torch
    >>> loss = regard.torch.EntmaxBisectLoss(alpha=1.2, reduction="sum")
    >>> bool(loss(torch.tensor([[1.0, 0.0]]), torch.tensor([1])) > 0)
    True
    """

    def __init__(
        self, alpha: Any = 1.5, n_iter: int = 50, ignore_index: int = -100, reduction: str = "elementwise_mean"
    ) -> None:
        super().__init__(ignore_index, reduction)
        if isinstance(alpha, Tensor) and alpha.numel() != 1:
            raise ValueError(f"alpha has shape {list(alpha.shape)}; a loss has one number")
        self.alpha = alpha
        self.n_iter = n_iter

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        alpha = self.alpha.reshape(()) if isinstance(self.alpha, Tensor) else self.alpha
        p: Tensor = entmax(x, alpha, n_iter=self.n_iter)
        return p, _entropy(p, alpha)
