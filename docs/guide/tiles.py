#!/usr/bin/env python3
"""Attention tile by tile in plain Python: what the operator does, slowly enough to watch, and drawn.

    python3 docs/guide/tiles.py walk docs/guide/data/tastes.safetensors --keys 2 --out walk.svg
    python3 docs/guide/tiles.py mask 1024 --causal --out mask.svg
"""

import argparse
import json
import math
import struct
from pathlib import Path


def read(path, name):
    """The rows of a tensor [N, D] of a safetensors file."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    (rows, width), (begin, end) = header[name]["shape"], header[name]["data_offsets"]
    numbers = struct.unpack(f"<{rows * width}f", data[8 + length + begin : 8 + length + end])
    return [list(numbers[row * width : (row + 1) * width]) for row in range(rows)]


def walk(q, keys, values, tile):
    """Softmax attention of one query by the dot score, `tile` keys at a time: (m, l, o) after each tile.

    m is the largest score so far, l the sum of exp(s - m), o the sum of exp(s - m) v. No list of all
    scores is ever made.
    """
    m, l, o = -math.inf, 0.0, [0.0] * len(values[0])
    for first in range(0, len(keys), tile):
        scores = [sum(a * b for a, b in zip(q, k)) for k in keys[first : first + tile]]
        larger = max(m, *scores)
        shrink = math.exp(m - larger)
        l, o = l * shrink, [x * shrink for x in o]
        for s, v in zip(scores, values[first : first + tile]):
            e = math.exp(s - larger)
            l, o = l + e, [x + e * y for x, y in zip(o, v)]
        m = larger
        yield m, l, o


def kind(rows, columns, causal, window):
    """Of a tile of the square: how many of its pairs a mask allows."""
    allowed = lambda i, j: (not causal or j <= i) and (window is None or abs(i - j) <= window)
    seen = sum(allowed(i, j) for i in rows for j in columns)
    return "skipped" if seen == 0 else "whole" if seen == len(rows) * len(columns) else "partly masked"


COLORS = {"whole": "#2f7fc4", "partly masked": "#a8d3f0", "skipped": "#f4f6f8"}


def svg(path, width, height, shapes):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">'
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    Path(path).write_text("\n".join([head, ground, *shapes, "</svg>", ""]), encoding="utf-8")
    print(f"wrote {path}")


def box(x, y, width, height, fill):
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="#ffffff" stroke-width="2"/>'


def text(x, y, words, anchor="middle", fill="#1f2933", size=13):
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" text-anchor="{anchor}">{words}</text>'


def draw_walk(given):
    q, k, v = (read(given.file, name) for name in "qkv")
    shapes, cell, left = [], 84, 92
    for column in range(len(k)):
        shapes.append(text(left + (column + 0.5) * cell, 30, f"key {column + 1}"))
    for row, query in enumerate(q):
        y = 44 + row * 150
        shapes.append(text(left - 12, y + 38, f"query {row + 1}", "end"))
        for tile, (m, l, o) in enumerate(walk(query, k, v, given.keys)):
            first, last = tile * given.keys, min((tile + 1) * given.keys, len(k))
            o_text = " ".join(f"{x:.3f}" for x in o)
            print(f"query {row + 1}, keys {first + 1} to {last}: m {m:.3f}, l {l:.3f}, o {o_text}")
            x, wide = left + first * cell, (last - first) * cell
            shapes.append(box(x, y, wide, 62, "#2f7fc4"))
            shapes.append(text(x + wide / 2, y + 37, f"tile {row * -(-len(k) // given.keys) + tile + 1}", fill="#ffffff"))
            for line, words in enumerate([f"m {m:.3f}", f"l {l:.3f}", f"o {o_text}"]):
                shapes.append(text(x + wide - 6, y + 80 + 17 * line, words, "end", "#52606d", 12))
        print(f"query {row + 1}: out {' '.join(f'{x / l:.3f}' for x in o)}, lse {m + math.log(l):.3f}")
    svg(given.out, left + len(k) * cell + 16, 44 + 150 * len(q), shapes)


def draw_mask(given):
    n, counts, shapes = given.n, dict.fromkeys(COLORS, 0), []
    scale = 480 / n
    for row in range(0, n, given.queries):
        for column in range(0, n, given.keys):
            rows, columns = range(row, min(row + given.queries, n)), range(column, min(column + given.keys, n))
            found = kind(rows, columns, given.causal, given.window)
            counts[found] += 1
            x, y = round(90 + column * scale, 1), round(44 + row * scale, 1)
            wide, high = round(len(columns) * scale, 1), round(len(rows) * scale, 1)
            shapes.append(box(x, y, wide, high, COLORS[found]))
    words = ", ".join(f"{count} {found}" for found, count in counts.items())
    print(f"{sum(counts.values())} tiles of {given.queries} queries and {given.keys} keys: {words}")
    shapes += [text(330, 32, f"{n} keys"), text(78, 60, f"{n}", "end"), text(78, 77, "queries", "end")]
    for at, (found, count) in enumerate(counts.items()):
        shapes += [box(90 + at * 165, 540, 16, 16, COLORS[found]), text(112 + at * 165, 553, f"{count} {found}", "start")]
    svg(given.out, 600, 572, shapes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("walk", help="print and draw what is kept after each tile")
    verb.add_argument("file", help="a safetensors file with q, k and v")
    verb.add_argument("--keys", type=int, default=2, help="keys in a tile")
    verb.set_defaults(do=draw_walk)
    verb.add_argument("--out", default="walk.svg")
    verb = verbs.add_parser("mask", help="count and draw the tiles that a mask leaves")
    verb.add_argument("n", type=int, help="queries, and as many keys")
    verb.add_argument("--queries", type=int, default=64)
    verb.add_argument("--keys", type=int, default=96)
    verb.add_argument("--causal", action="store_true")
    verb.add_argument("--window", type=int, help="keys on each side that a query sees")
    verb.set_defaults(do=draw_mask)
    verb.add_argument("--out", default="mask.svg")
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
