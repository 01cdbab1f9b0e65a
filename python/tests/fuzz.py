"""Random calls, right and wrong: a right one gives the formula's numbers, a wrong one raises an exception of the
right type with one sentence, and nothing ends the interpreter.

    python fuzz.py CALLS SEED
"""

import sys

import numpy as np
import torch
from reference import attention as reference

import regard

TYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
ERRORS = (TypeError, ValueError)


class Draw:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, *options):
        return options[self.rng.integers(len(options))]

    def size(self, most=9):
        return int(self.rng.integers(0 if self.chance(0.05) else 1, most))

    def normal(self, *shape):
        return torch.from_numpy(np.asarray(self.rng.normal(size=shape)))


def layout(draw, x):
    """The same numbers, laid out in memory in some way."""
    way = draw.rng.integers(4)
    if way == 1 and x.ndim > 2:
        return x.transpose(-2, -3).contiguous().transpose(-2, -3)
    if way == 2:
        return x.repeat_interleave(2, -1)[..., ::2]
    if way == 3 and x.ndim > 1:
        return x.transpose(-1, -2).contiguous().transpose(-1, -2)
    return x


def right_call(draw):
    """q, k, v, options of `attention`, and the same for the reference."""
    b, hk, group = draw.size(3), draw.size(3), 1 + int(draw.rng.integers(3))
    nq, nk, d, dv = draw.size(), draw.size(12), draw.size(), draw.size()
    hq = hk * group
    axes = draw.pick(4, 4, 4, 3, 2)
    if axes < 4:
        hk = hq = 1
    b = 1 if axes == 2 else b
    q, k, v = draw.normal(b, hq, nq, d), draw.normal(b, hk, nk, d), draw.normal(b, hk, nk, dv)
    ours, theirs = {}, {}
    if draw.chance(0.3):
        ours["is_causal"] = theirs["is_causal"] = True
    if draw.chance(0.3):
        ours["offset"] = theirs["offset"] = int(draw.rng.integers(-3, 6))
    if draw.chance(0.2):
        ours["window"] = theirs["window"] = tuple(int(x) for x in draw.rng.integers(0, 5, 2))
    if draw.chance(0.2):
        ours["key_lengths"] = theirs["key_lengths"] = torch.from_numpy(draw.rng.integers(0, nk + 1, b))
    if draw.chance(0.2):
        pair = tuple(torch.from_numpy(draw.rng.integers(0, 3, (b, n))) for n in (nq, nk))
        ours["segments"] = theirs["segments"] = pair
    if draw.chance(0.2) and nq and nk:
        count = int(draw.rng.integers(0, 12))
        pair = [torch.from_numpy(draw.rng.integers(0, n, count)) for n in (nk, nq)]
        ours["edges"] = theirs["edges"] = torch.stack(pair)
    shape = [draw.pick(1, n) for n in (b, hq, nq, nk)]
    if draw.chance(0.3):
        mask = draw.normal(*shape)
        truths = draw.chance(0.5)
        mask = mask > -0.5 if truths else mask
        theirs["dense" if truths else "bias"] = mask
        if axes == 3:
            mask = mask[:, 0]
        elif axes == 2:
            mask = mask[0, 0]
        ours["attn_mask"] = mask
    if draw.chance(0.2):
        ours["key_bias"] = theirs["key_bias"] = draw.normal(b, nk)
    if draw.chance(0.2):
        ours["alibi_slopes"] = theirs["alibi"] = draw.normal(hq).abs()
    if draw.chance(0.2):
        ours["relative_bias"] = theirs["relative"] = draw.normal(draw.pick(1, hq), 2 * draw.size(4) + 1)
    score = draw.pick("dot", "dot", "additive", "text")
    if score == "dot" and draw.chance(0.3):
        ours["scale"] = theirs["scale"] = float(draw.rng.random())
    if score == "additive":
        w = draw.normal(*draw.pick((d,), (hq, d)))
        ours["score"] = regard.Additive(w, "tanh")
        theirs |= {"score": "additive", "activation": torch.tanh, "w": w}
    if score == "text":
        w = draw.normal(d)
        ours["score"] = regard.Expression("sum(w * (q - k) * (q - k)) / 3", w=w)
        theirs |= {"score": "expression", "expression": lambda a, b: (w * (a - b) ** 2).sum(-1) / 3}
    ours["normalizer"] = theirs["normalizer"] = draw.pick("softmax", "softmax", "sparsemax", "entmax15", "sigmoid", "none")
    drop = {4: lambda x: x, 3: lambda x: x[:, 0], 2: lambda x: x[0, 0]}[axes]
    return drop(q), drop(k), drop(v), ours, theirs


def as_numpy(x):
    if isinstance(x, torch.Tensor):
        return x.numpy()
    if isinstance(x, tuple):
        return tuple(as_numpy(y) for y in x)
    if isinstance(x, regard.Additive):
        return regard.Additive(as_numpy(x.w), x.activation)
    if isinstance(x, regard.Expression):
        return regard.Expression(x.text, **{name: as_numpy(y) for name, y in x.parameters.items()})
    return x


NONSENSE = [
    None, 3, -1, 1.5, "x", b"x", [], [[]], {}, object(), float("nan"), float("inf"), 1 << 70, -(1 << 70),
    np.zeros((2, 3)), np.zeros(0), np.array(["a"]), np.array([object()]), np.zeros((1, 2, 3, 4, 5)),
    np.arange(6, dtype=">f8"), np.zeros((3, 3), np.complex128), np.zeros(3, np.int32), np.ones((4, 4), bool),
    np.ma.masked_array([1.0], [True]), np.zeros((2, 2), dtype="datetime64[s]"),
    torch.zeros(2, 3), torch.zeros(0), torch.zeros(1, 2, 3, 4, 5), torch.zeros(3, dtype=torch.complex64),
    torch.zeros(3, dtype=torch.int64), torch.ones(4, 4, dtype=torch.bool), torch.zeros(2, 2).to_sparse(),
    torch.zeros(2, 2, device="meta"), torch.full((2, 2), float("nan")), torch.zeros(1).expand(1 << 40),
    torch.zeros(1, 1).expand(1 << 30, 1 << 30), np.broadcast_to(np.zeros(1), (1 << 40,)), torch.float32,
    regard.Additive(torch.zeros(3)), regard.Additive(None), regard.Expression("q @@ k"), regard.Expression("q"),
    regard.Expression("w * (q @ k)"), regard.Expression("sum(a)", a=torch.zeros(5)), (1, 2, 3), (None, None), (-5, 2),
]  # fmt: skip
NAMES = [
    "attn_mask", "is_causal", "scale", "dropout_p", "seed", "window", "key_lengths", "segments", "edges", "offset",
    "key_bias", "alibi_slopes", "relative_bias", "score", "normalizer", "return_aux",
]  # fmt: skip


def spoil(draw, arguments, options):
    """One thing of a right call made wrong, or at least odd."""
    way = draw.rng.integers(6)
    if way < 3:
        options[draw.pick(*NAMES)] = draw.pick(*NONSENSE)
    elif way == 3:
        arguments[draw.rng.integers(3)] = draw.pick(*NONSENSE)
    elif way == 4:
        at = draw.rng.integers(3)
        x = arguments[at]
        arguments[at] = draw.pick(x[..., :0], x[None], x[0] if x.shape[0] else x, x[..., :-1], x.repeat(1))
    else:
        if draw.chance(0.5):
            options[draw.pick("weigths", "mask", "causal")] = 1
        else:
            options["normalizer"] = draw.pick("softmin", "", "Softmax")


def wrong(draw, kind):
    """Whether a spoiled call was refused; what it must not do is end the interpreter or say nothing."""
    q, k, v, options, _ = right_call(draw)
    arguments = [q, k, v]
    if kind == "numpy":
        arguments = [as_numpy(x) for x in arguments]
        options = {name: as_numpy(x) for name, x in options.items()}
    try:
        spoil(draw, arguments, options)
    except (IndexError, TypeError, AttributeError, RuntimeError, ValueError):
        return False  # an array too odd to be spoiled that way
    try:
        regard.attention(*arguments, **options)
    except ERRORS as error:
        sentence = str(error)
        assert sentence and len(sentence) < 500, sentence
        return True
    except (MemoryError, RuntimeError) as error:
        # What an allocator says of more memory than there is.
        assert "alloc" in str(error) or "memory" in str(error) or isinstance(error, MemoryError), repr(error)
        return True
    return False


def right(draw, kind):
    q, k, v, options, meant = right_call(draw)
    name = draw.pick(*TYPES)
    if kind == "numpy" and name == "bfloat16":
        name = "float32"
    dtype = TYPES[name]
    rounded = [x.to(dtype) for x in (q, k, v)]
    expected, weights, _ = reference(*(x.double() for x in rounded), **meant)
    given = [layout(draw, x) for x in rounded]
    if kind == "numpy":
        given = [x.numpy() for x in given]
        options = {name: as_numpy(x) for name, x in options.items()}
    out, aux = regard.attention(*given, return_aux="weights", **options)
    # Sums of a few products: some roundings, of the largest among them.
    scale = 1 + expected.abs().max().item() if expected.numel() else 1
    tolerance = {"float64": 1e-9, "float32": 2e-4, "bfloat16": 2e-2, "float16": 4e-3}[name] * scale
    np.testing.assert_allclose(np.asarray(torch.as_tensor(out).double()), expected, atol=tolerance, rtol=tolerance)
    if name == "float64":
        np.testing.assert_allclose(np.asarray(aux.weights), weights, atol=1e-9 * scale, rtol=1e-8)
        gradients(draw, kind, rounded, options, meant)


def gradients(draw, kind, inputs, options, meant):
    """The gradients of q, k and v, by autograd and by hand, against autograd through the formula."""
    theirs = [x.clone().requires_grad_() for x in inputs]
    expected, _, _ = reference(*theirs, **meant)
    grad = draw.normal(*expected.shape)
    # Where nothing is seen at all the formula has no gradient; ours is zeros.
    wanted = torch.autograd.grad(expected, theirs, grad, allow_unused=True) if expected.requires_grad else [None] * 3
    if kind == "numpy":
        found = regard.attention_backward(as_numpy(grad), *(as_numpy(x) for x in inputs), **options)[:3]
    else:
        ours = [layout(draw, x).detach().requires_grad_() for x in inputs]
        found = torch.autograd.grad(regard.attention(*ours, **options), ours, grad)
    for mine, their in zip(found, wanted):
        their = np.zeros(mine.shape) if their is None else their.numpy()
        scale = 1 + (float(np.abs(their).max()) if their.shape and 0 not in their.shape else 0)
        np.testing.assert_allclose(np.asarray(mine), their, atol=1e-8 * scale, rtol=1e-7)


def main(calls, seed):
    refused = 0
    for n in range(calls):
        draw = Draw([seed, n])
        kind = draw.pick("numpy", "torch")
        try:
            if n % 2:
                right(draw, kind)
            else:
                refused += wrong(draw, kind)
        except BaseException:
            print(f"call {n} with seed {seed}", file=sys.stderr)
            raise
    print(f"{calls} calls: {calls // 2} right ones as the formula has it, {refused} of the others refused")
    assert refused > calls // 5


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
