"""Calls on an NVIDIA GPU that nobody thought of: sizes, types and options by chance, against the formula in float64."""

import random

import pytest

torch = pytest.importorskip("torch")

import reference
import regard

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")

CALLS = 12  # of each draw
#: Of what a number is rounded to; several are added up on the way.
ROUNDING = {torch.float32: 2e-6, torch.bfloat16: 1.6e-2, torch.float16: 2e-3}


class Drawn:
    """One call: tensors on the GPU, its options, and the same for the formula."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.tensors = torch.Generator().manual_seed(seed)
        pick = self.draw.choice
        self.dtype = pick(list(ROUNDING))
        self.b, (self.hq, self.hk) = pick([1, 2, 3]), pick([(1, 1), (2, 2), (4, 2), (3, 1), (8, 8)])
        self.nq, self.nk = pick([1, 5, 17, 64, 100, 130, 257]), pick([1, 7, 33, 64, 128, 200, 300])
        d, dv = pick([8, 17, 32, 40, 64, 80, 96, 128, 160, 192, 256]), pick([8, 24, 33, 64, 80, 128, 192, 256])
        shapes = [(self.b, self.hq, self.nq, d), (self.b, self.hk, self.nk, d), (self.b, self.hk, self.nk, dv)]
        self.leaves = [self.rows(shape) for shape in shapes]
        self.options, self.formula = {}, {}
        self.normalizer = self.options["normalizer"] = pick(["softmax"] * 4 + ["sigmoid", "none"])
        self.masks()
        self.biases()
        self.dropout(seed)
        self.wants_weights = self.happens(0.3)

    def happens(self, chance):
        return self.draw.random() < chance

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.tensors)

    def rows(self, shape):
        b, h, n, d = shape
        x = self.normal(b, n, h, d).transpose(1, 2) if self.happens(0.3) else self.normal(*shape)
        return x.to("cuda", self.dtype).requires_grad_()

    def give(self, name, formula, x):
        self.options[name] = x.cuda() if isinstance(x, torch.Tensor) else x
        self.formula[formula] = x

    def learn(self, name, formula, x):
        self.options[name] = x.to("cuda", self.dtype if name == "attn_mask" else torch.float32).requires_grad_()
        self.formula[formula] = len(self.leaves)
        self.leaves.append(self.options[name])

    def masks(self):
        if self.happens(0.4):
            self.give("is_causal", "is_causal", True)
        if self.happens(0.2):
            self.give("window", "window", (self.draw.choice([3, 40]), self.draw.choice([0, 9])))
        if self.happens(0.2):
            self.give("key_lengths", "key_lengths", torch.randint(0, self.nk + 1, (self.b,), generator=self.tensors))
        if self.happens(0.3):
            self.give("offset", "offset", self.draw.choice([self.nk - self.nq, 3, -5]))

    def biases(self):
        axes = [(1, self.b), (1, self.hq), (1, self.nq, self.nq), (1, self.nk, self.nk)]
        which, shape = self.draw.random(), [self.draw.choice(sizes) for sizes in axes]
        if which < 0.3:
            seen = torch.rand(*shape[:2], self.nq, self.nk, generator=self.tensors) > 0.2
            self.give("attn_mask", "dense", seen)
        elif which < 0.6:
            self.learn("attn_mask", "bias", self.normal(*shape))
        if self.happens(0.2):
            self.learn("key_bias", "key_bias", self.normal(self.b, self.hq, 1, self.nk))
        if self.happens(0.2):
            self.give("alibi_slopes", "alibi", torch.rand(self.hq, generator=self.tensors))
        if self.happens(0.2):
            reach = self.draw.choice([1, 8, 40])
            self.learn("relative_bias", "relative", self.normal(self.draw.choice([1, self.hq]), 2 * reach + 1))

    def dropout(self, seed):
        if not self.happens(0.3):
            return
        self.options |= {"dropout_p": 0.25, "seed": seed}
        # What the CPU keeps for the same seed, from weights that are all one half.
        q, k = torch.zeros(self.b, self.hq, self.nq, 8), torch.zeros(self.b, self.hk, self.nk, 8)
        _, aux = regard.attention(q, k, k, normalizer="sigmoid", dropout_p=0.25, seed=seed, return_aux="weights")
        self.formula["keep"] = aux.weights.double() * 2

    def run(self):
        """Output, weights and gradients; and what the formula has."""
        aux = {"return_aux": "weights"} if self.wants_weights else {}
        found = regard.attention(*self.leaves[:3], **self.options, **aux)
        found = [found[0], found[1].weights] if self.wants_weights else [found]
        arriving = [self.normal(*x.shape).to(x) for x in found]
        gradients = torch.autograd.grad(found, self.leaves, arriving)
        exact = [x.detach().cpu().double().requires_grad_() for x in self.leaves]
        formula = {name: exact[x] if name in ("bias", "key_bias", "relative") else x for name, x in self.formula.items()}
        if "alibi" in formula:
            formula["alibi"] = formula["alibi"].double()
        out, weights, _ = reference.attention(*exact[:3], normalizer=self.normalizer, **formula)
        expected = [out, weights][: len(found)]
        above = [x.cpu().double() for x in arriving]
        return [*found, *gradients], [*expected, *torch.autograd.grad(expected, exact, above)], above

    def scales(self, expected, above):
        """The largest terms that results are sums of: where they cancel, roundings of them are left."""
        q, k, v = (x.detach().cpu().double().abs() for x in self.leaves[:3])
        pair = above[0].abs().max() * v.max() * v.shape[-1] ** 0.5 + (above[1].abs().max() if len(above) > 1 else 0)
        each = {"q": k.max(), "k": q.max()}
        names = ["out", "weights"][: len(above)] + ["q", "k", "v"] + ["learned"] * (len(self.leaves) - 3)
        for name, x in zip(names, expected):
            terms = 0 if name in ("out", "weights", "v") else pair * each.get(name, torch.tensor(1.0))
            x = x.detach()
            yield name, x, max(float(x.abs().max()), float(terms), 1e-30)


@pytest.mark.parametrize("draw", range(10))
def test_calls_by_chance_agree_with_the_formula(draw):
    compared = 0
    for seed in range(draw * CALLS, (draw + 1) * CALLS):
        call = Drawn(seed)
        found, expected, above = call.run()
        for (name, exact, scale), x in zip(call.scales(expected, above), found):
            error = float((x.detach().cpu().double() - exact).abs().max()) / scale if x.numel() else 0.0
            allowed = 4 * ROUNDING[call.dtype]
            assert error <= allowed, f"{name} of {seed}: {error:.1e}, {call.dtype}, {call.options}"
            compared += 1
    assert compared >= 4 * CALLS
