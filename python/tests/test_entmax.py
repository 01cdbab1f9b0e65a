"""Entmax for any α, its modules and losses: against the package `entmax`, an independent solver, and finite differences."""

import itertools

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import regard
import regard.torch

ALPHAS = [1.0, 1.1, 1.25, 1.5, 1.7, 2.0, 3.0]


def scores(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2


def solved(row, alpha):
    """The weights by Brent's method, where α is not 1."""
    if alpha == 1.0:
        return torch.softmax(row, -1).numpy()
    scaled = (alpha - 1) * row.numpy()
    low, high = scaled.max() - 1, scaled.max()

    def weights(threshold):
        return np.maximum(scaled - threshold, 0) ** (1 / (alpha - 1))

    # Regula falsi and halving in turns, until nothing changes.
    for _ in range(400):
        middle = (low + high) / 2
        low, high = (middle, high) if weights(middle).sum() > 1 else (low, middle)
    return weights(high)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_weights_solve_their_equation_in_numpy_and_in_pytorch(alpha):
    x = scores(6, 9)
    expected = np.stack([solved(row, alpha) for row in x])
    for n_iter in (None, 60):
        np.testing.assert_allclose(regard.entmax(x, alpha, n_iter=n_iter), expected, atol=1e-9)
        np.testing.assert_allclose(regard.entmax(x.numpy(), alpha, n_iter=n_iter), expected, atol=1e-9)
    np.testing.assert_allclose(regard.entmax(x.T, alpha, 0), expected.T, atol=1e-9)
    np.testing.assert_allclose(regard.entmax(x.numpy().T, alpha, 0), expected.T, atol=1e-9)
    np.testing.assert_allclose(regard.entmax(x.float(), alpha), expected, atol=2e-6)
    assert regard.entmax(x.bfloat16(), alpha).dtype is torch.bfloat16


def test_an_alpha_of_its_own_for_each_row_is_that_row_s():
    x, each = scores(5, 9), torch.tensor([1.1, 1.3, 1.5, 2.0, 2.7], dtype=torch.float64)
    expected = torch.stack([regard.entmax(row, float(alpha)) for row, alpha in zip(x, each)])
    torch.testing.assert_close(regard.entmax(x, each[:, None]), expected, atol=1e-9, rtol=1e-9)
    np.testing.assert_allclose(regard.entmax(x.numpy(), each[:, None].numpy()), expected, atol=1e-9)
    np.testing.assert_allclose(regard.entmax(x.numpy().T, each[None].numpy(), 0), expected.T, atol=1e-9)


@pytest.mark.parametrize("alpha", [1.1, 1.5, 1.7, 2.0, 3.0])
def test_gradients_of_scores_and_of_alpha_are_those_of_finite_differences(alpha):
    x = scores(3, 6).requires_grad_()
    learned = torch.full((3, 1), alpha, dtype=torch.float64, requires_grad=True)
    assert gradcheck(regard.entmax, (x, learned))
    assert gradcheck(lambda x: regard.entmax(x, alpha), (x,))
    one = torch.tensor([alpha], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, a: regard.entmax(x, a, 0), (x, one))
    if alpha < 2:
        assert gradgradcheck(lambda x: regard.entmax(x, alpha, n_iter=60), (x,))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_what_is_masked_out_has_no_weight_and_no_gradient(alpha):
    x = scores(2, 5)
    x[0, 2:] = -torch.inf
    x[1] = -torch.inf
    given = x.clone().requires_grad_()
    p = regard.entmax(given, alpha)
    assert (p[0, 2:] == 0).all() and (p[1] == 0).all()
    torch.testing.assert_close(p[0, :2], regard.entmax(x[0, :2], alpha))
    (gradient,) = torch.autograd.grad(p.square().sum(), given)
    assert gradient.isfinite().all() and (gradient[0, 2:] == 0).all()
    np.testing.assert_allclose(regard.entmax(x.numpy(), alpha), p.detach(), atol=1e-9)


LOSSES = {
    "SparsemaxLoss": {}, "Entmax15Loss": {}, "EntmaxBisectLoss": {"alpha": 1.3},
}  # fmt: skip


@pytest.mark.parametrize("reduction", ["elementwise_mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_have_the_gradient_of_finite_differences_and_ignore_what_is_ignored(name, reduction):
    loss = getattr(regard.torch, name)(**LOSSES[name], ignore_index=2, reduction=reduction)
    x, target = scores(4, 5).requires_grad_(), torch.tensor([0, 4, 2, 1])
    assert gradcheck(lambda x: loss(x, target), (x,))
    (gradient,) = torch.autograd.grad(loss(x, target).sum(), x)
    assert (gradient[2] == 0).all() and (gradient[0] != 0).any()
    # Weights less the one that is right: nothing where that has all the weight.
    sure = torch.tensor([[9.0, 0.0, 0.0]])
    assert loss.train()(sure, torch.tensor([0])).abs().sum() < 1e-6


def test_a_loss_of_alpha_one_is_cross_entropy():
    x, target = scores(4, 5), torch.tensor([0, 4, 2, 1])
    ours = regard.torch.EntmaxBisectLoss(1.0)(x, target)
    torch.testing.assert_close(ours, torch.nn.functional.cross_entropy(x, target))


def test_modules_and_losses_are_the_package_s():
    entmax = pytest.importorskip("entmax")
    count = 0
    alpha = torch.tensor([1.3], dtype=torch.float64)
    cases = [("Sparsemax", {}), ("Sparsemax", {"k": 3}), ("Entmax15", {}), ("Entmax15", {"k": 3})]
    cases += [("EntmaxBisect", {"alpha": a}) for a in (1.1, 1.5, 2.0, 2.5, alpha)] + [("EntmaxBisect", {"n_iter": 40})]
    for (name, options), dim in itertools.product(cases, (0, 1, -1)):
        x = scores(4, 5, 6).requires_grad_()
        found = [getattr(one, name)(dim=dim, **options)(x) for one in (regard.torch, entmax)]
        found = [(p, *torch.autograd.grad(p.cos().sum(), x)) for p in found]
        for a, b in zip(*found):
            torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-7)
        count += 1
    losses = [("SparsemaxLoss", {}), ("SparsemaxLoss", {"k": 3}), ("Entmax15Loss", {}), ("Entmax15Loss", {"k": None})]
    losses += [("EntmaxBisectLoss", {"alpha": a}) for a in (1.1, 1.5, 2.0)]
    for (name, options), reduction, ignored in itertools.product(losses, ("elementwise_mean", "sum", "none"), (-100, 1)):
        x, target = scores(6, 5).requires_grad_(), torch.tensor([0, 1, 2, 3, 4, 1])
        found = [getattr(one, name)(reduction=reduction, ignore_index=ignored, **options)(x, target) for one in (regard.torch, entmax)]
        found = [(loss, *torch.autograd.grad(loss.sum(), x)) for loss in found]
        for a, b in zip(*found):
            torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-7)
        count += 1
    assert count == 72


def test_a_learned_alpha_has_the_package_s_gradient():
    entmax = pytest.importorskip("entmax")
    x, found = scores(4, 6), []
    for one in (regard.torch, entmax):
        alpha = torch.full((4, 1), 1.4, dtype=torch.float64, requires_grad=True)
        found.append(torch.autograd.grad(one.EntmaxBisect(alpha)(x).cos().sum(), alpha)[0])
    torch.testing.assert_close(*found, rtol=1e-6, atol=1e-6)


X = torch.zeros(2, 3)
WRONG = {
    "an alpha below 1": (ValueError, "from 1 on", lambda: regard.entmax(X, 0.9)),
    "an alpha below 1 of an array": (ValueError, "from 1 on", lambda: regard.entmax(X.numpy(), np.array([0.5]))),
    "a tensor at 1": (ValueError, "above 1", lambda: regard.entmax(X, torch.ones(1))),
    "an endless tensor": (ValueError, "alpha has inf", lambda: regard.entmax(X, torch.tensor(float("inf")))),
    "an alpha for each score": (ValueError, "broadcast", lambda: regard.entmax(X, torch.full((2, 3), 1.5))),
    "a word": (TypeError, "alpha", lambda: regard.entmax(X, "1.5")),
    "no bisection": (ValueError, "n_iter", lambda: regard.entmax(X, 1.3, n_iter=0)),
    "no axis": (ValueError, "axis", lambda: regard.entmax(X, 1.3, 2)),
    "whole numbers": (TypeError, "fractions", lambda: regard.entmax(X.long(), 1.3)),
    "a list": (TypeError, "NumPy", lambda: regard.entmax([1.0], 1.3)),
    "another reduction": (ValueError, "reduction", lambda: regard.torch.SparsemaxLoss(reduction="mean")),
    "targets of another shape": (ValueError, r"\[N, C\]", lambda: regard.torch.SparsemaxLoss()(X, X)),
    "fractions as targets": (TypeError, "whole", lambda: regard.torch.SparsemaxLoss()(X, X[:, 0])),
    "several alphas of a loss": (ValueError, "one number", lambda: regard.torch.EntmaxBisectLoss(torch.ones(2))),
    "half a k": (ValueError, "k is", lambda: regard.torch.Sparsemax(k=0.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_meant_is_refused(name):
    kind, part, call = WRONG[name]
    with pytest.raises(kind, match=part):
        call()


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_near_softmax_half_the_digits_are_not_lost(dtype, learned):
    rows, worst = scores(6, 40, seed=9).to(dtype), 0.0
    for alpha in (1.2, 1.06, 1.05, 1.04, 1.01, 1.001, 1.0001, 1.00001, 1.000001):
        # As the type of a parameter has it.
        given = torch.tensor(alpha, dtype=torch.float32)
        found = regard.entmax(rows, given if learned else given.item())
        expected = np.stack([solved(row.double(), given.item()) for row in rows])
        worst = max(worst, float((found.double() - torch.from_numpy(expected)).abs().max()))
    assert worst < {torch.float32: 2e-6, torch.bfloat16: 4e-3, torch.float16: 5e-4}[dtype], worst


@pytest.mark.parametrize("shape,axis", [((5, 0), -1), ((0, 5), -1), ((0, 5), 0), ((2, 0, 3), 1), ((0,), 0)])
def test_axes_without_entries_give_what_they_are(shape, axis):
    for function in (regard.sparsemax, regard.entmax15, lambda x, axis: regard.entmax(x, 1.3, axis=axis)):
        x = torch.zeros(shape, requires_grad=True)
        out = function(x, axis=axis)
        out.sum().backward()
        assert out.shape == x.shape == x.grad.shape
        assert function(np.zeros(shape), axis=axis).shape == shape


def test_any_alpha_is_mapped_and_differentiated_by_torch_func():
    x = scores(3, 5)
    for alpha in (1.01, 1.3, 1.7, 3.0):
        mapped = torch.vmap(lambda row, alpha=alpha: regard.entmax(row, alpha))(x)
        torch.testing.assert_close(mapped, regard.entmax(x, alpha))
        given = x.clone().requires_grad_()
        expected = torch.autograd.grad(regard.entmax(given, alpha).square().sum(), given)[0]
        found = torch.func.grad(lambda y, alpha=alpha: regard.entmax(y, alpha).square().sum())(x)
        torch.testing.assert_close(found, expected)
        rows = torch.vmap(torch.func.grad(lambda y, alpha=alpha: regard.entmax(y, alpha).square().sum()))(x)
        torch.testing.assert_close(rows, expected)
