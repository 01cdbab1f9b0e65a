#!/usr/bin/env python3
"""Writes the guide's small files of tensors, numbers chosen so that one can follow them by hand.

    python3 docs/guide/data/write.py docs/guide/data
"""

import json
import math
import random
import struct
import sys
from pathlib import Path

# Four things, each as (how sour, how hot): lemon, hot-and-sour soup, chili, water.
THINGS = [[2, 0], [1, 1], [0, 2], [0, 0]]
# Two questions: what is sour, what is hot.
QUESTIONS = [[1, 0], [0, 1]]


def shape(rows):
    """The lengths of nested lists."""
    return [len(rows), *shape(rows[0])] if isinstance(rows, list) else []


def flat(rows):
    """Nested lists as one."""
    return [number for row in rows for number in flat(row)] if isinstance(rows, list) else [rows]


def write(path, **tensors):
    """A safetensors file: the length of a header, the header in JSON, the numbers."""
    header, body = {}, b""
    for name, rows in tensors.items():
        numbers = flat(rows)
        dtype, letter = ("I64", "q") if name == "edges" else ("F32", "f")
        begin, body = len(body), body + struct.pack(f"<{len(numbers)}{letter}", *numbers)
        header[name] = {"dtype": dtype, "shape": shape(rows), "data_offsets": [begin, len(body)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def normal(rows, width, seed):
    """Numbers of mean 0 and variance 1, to three digits."""
    draw = random.Random(seed)
    return [[round(draw.gauss(0, 1), 3) for _ in range(width)] for _ in range(rows)]


def states():
    """A query and six keys as a recurrent network's states are: each number a tanh, so between -1 and 1.
    The fourth key belongs to the query: they have more in common than chance gives."""
    query, keys = normal(1, 64, 4)[0], normal(6, 64, 5)
    keys[3] = [0.6 * a + 0.8 * b for a, b in zip(query, keys[3])]
    return [[round(math.tanh(0.4 * x), 3) for x in row] for row in [query, *keys]]


def main():
    folder = Path(sys.argv[1])
    write(folder / "tastes.safetensors", q=QUESTIONS, k=THINGS, v=THINGS)
    # One question, and what the scores with parameters need beside it.
    one = {"q": QUESTIONS[:1], "k": THINGS, "v": THINGS}
    write(folder / "additive.safetensors", **one, w=[1, 1])
    write(folder / "gaussian.safetensors", **one, w=[1, 1])
    write(folder / "cosine.safetensors", **one, temperature=3)
    write(folder / "bilinear.safetensors", **one, W=[[0, 1], [1, 0]])
    write(folder / "concat.safetensors", **one, w=[0, 0, 1, 1])
    # Vectors wide enough to see what a dot product becomes without a scale.
    write(folder / "wide.safetensors", q=normal(1, 256, 1), k=normal(6, 256, 2), v=normal(6, 256, 3))
    # The states of a recurrent network, which are no vectors of variance 1.
    query, *keys = states()
    write(folder / "states.safetensors", q=[query], k=keys, v=keys)
    # A price for each thing, apart from what it is found by.
    write(folder / "prices.safetensors", q=QUESTIONS, k=THINGS, v=[[3], [8], [2], [0]])
    # Who asks for both at once: with one head that sees both coordinates, and with a head for each.
    sour, hot = ([[thing[at]] for thing in THINGS] for at in (0, 1))
    write(folder / "one-head.safetensors", q=[[2, 2]], k=THINGS, v=THINGS)
    write(folder / "two-heads.safetensors", q=[[[[2]], [[2]]]], k=[[sour, hot]], v=[[sour, hot]])
    # The things as a sequence that attends to itself.
    write(folder / "self.safetensors", q=THINGS, k=THINGS, v=THINGS)
    # A graph: Ann is red, Bob and Cid are blue; of those whom they know, p and r are red, q and s are
    # blue. What p, q, r and s tell are numbers. a and b are GAT's vectors, w is GATv2's.
    red, blue = [1, -1], [-1, 1]
    knows = [[0, 0, 0, 1, 1, 1, 2], [0, 1, 2, 0, 1, 2, 3]]
    graph = {"q": [red, blue, blue], "k": [red, blue, red, blue], "v": [[1], [2], [3], [4]], "edges": knows}
    write(folder / "gat.safetensors", **graph, a=[1, 0], b=[1, 0])
    write(folder / "gatv2.safetensors", **graph, w=[1, 1])
    # One question, and what is wanted of the answer: more sourness.
    batch = {name: [rows] for name, rows in one.items()}
    write(folder / "backward.safetensors", **batch, grad_out=[[[1, 0]]])


if __name__ == "__main__":
    main()
