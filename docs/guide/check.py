#!/usr/bin/env python3
"""Follows the guide: types the commands of each page in order, in a folder of its own, and compares what they print.

    python3 docs/guide/check.py target/release/regard              # all pages
    python3 docs/guide/check.py target/release/regard 2 5          # these pages alone
    python3 docs/guide/check.py target/release/regard --pictures   # and keep the pictures they draw
    python3 docs/guide/check.py target/release/regard --python target/python-environment/bin/python

A page says what is compared by a comment before a block, which a reader does not see:

    a block `sh`                     is run, with the folder `docs` of the checkout in reach
    a block `python`                 is run by the Python that --python names, where that has the packages
                                     `regard` and `torch`; where it has not, we say so
    <!-- output --> and `text`       the command before it printed these lines
    <!-- output ±0.02 --> or ±5%     … and decimal numbers may be off by so much; whole numbers may not.
                                     `…` stands for anything
    <!-- by hand --> and `text`      calculations: every `=` holds to the last digit written. A single
                                     name in front of `=` is a variable for the lines below

The words are looked at as well (`wording.py`). The Chinese pages have the same blocks, which `cargo test` sees to, so
the English ones are run.
"""

import argparse
import ast
import filecmp
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import wording

GUIDE = Path(__file__).resolve().parent
DECIMAL = re.compile(r"[-−]?\d+\.\d+(?:e[-+]?\d+)?")


# In place of what a block printed that was not run.
NOT_RUN = object()


class Wrong(Exception):
    """What a page says is not so."""


def blocks(text):
    """The fenced blocks of a page: line, language, the comment before, content."""
    found, comment, fence = [], "", None
    for number, line in enumerate(text.splitlines(), 1):
        if fence is not None:
            if line.startswith("```"):
                found.append((*fence, "\n".join(content)))
                fence, comment = None, ""
            else:
                content.append(line)
        elif line.startswith("```"):
            fence, content = (number, line[3:].strip(), comment), []
        elif match := re.fullmatch(r"<!-- (.*) -->", line.strip()):
            comment = match[1]
        elif line.strip():
            comment = ""
    return found


class Reader:
    """Who follows the guide: has a folder, the program `regard`, and perhaps a Python with our package."""

    def __init__(self, folder, regard, python):
        self.folder, self.regard = folder, regard
        found = subprocess.run([python, "-c", "import regard, torch"], cwd=folder, capture_output=True)
        self.python = python if found.returncode == 0 else None

    def run(self, *command):
        """What a command prints, both streams in their order."""
        path = f"{self.regard.parent}{os.pathsep}{os.environ['PATH']}"
        # Pages are followed two at a time: a thread each.
        environment = {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "RAYON_NUM_THREADS": "1"}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, text=True, timeout=900,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        if done.returncode != 0:
            raise Wrong(f"status {done.returncode} of\n{command[-1]}\n{done.stdout}")
        return done.stdout


def tolerance(comment):
    """From `output ±0.02` or `output ±5%` to whether a printed number is near enough to a quoted one."""
    given = re.fullmatch(r"output(?: ±([\d.]+)(%?))?", comment)
    if not given:
        raise Wrong(f"a comment that is not understood: {comment}")
    if given[1] is None:
        return lambda quoted, printed: quoted == printed
    size = float(given[1])
    if given[2]:
        return lambda quoted, printed: abs(quoted - printed) <= size / 100 * abs(quoted)
    return lambda quoted, printed: abs(quoted - printed) <= size


def compare(quoted, printed, near):
    """Refuses a quotation that is not in what was printed, blanks aside.

    >>> near = tolerance("output ±0.01")
    >>> compare("exact … 0.92", "loss 1.0, exact match   0.925", near)
    >>> compare("exact 0.92", "exact 0.90", near)
    Traceback (most recent call last):
    ...
    check.Wrong: quoted is
    exact 0.92
    printed was
    exact 0.90
    >>> compare("2 heads 0.5", "3 heads 0.5", near)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    check.Wrong: quoted, and not printed:...
    """
    squeeze = lambda text: " ".join(text.split())
    quoted, printed = squeeze(quoted), squeeze(printed)
    wanted, pattern, end = [], "", 0
    literal = lambda text: ".*?".join(re.escape(part) for part in re.split(" ?… ?", text))
    for number in DECIMAL.finditer(quoted):
        pattern += literal(quoted[end:number.start()]) + f"({DECIMAL.pattern})"
        wanted.append(value(number[0]))
        end = number.end()
    pattern += literal(quoted[end:])
    # A quotation may begin anywhere: of a row of numbers, say, any stretch that is near enough.
    found = list(re.finditer(f"(?=({pattern}))", printed))
    if not found:
        raise Wrong(f"quoted, and not printed:\n{quoted}\nprinted was:\n{printed}")
    groups = [[value(number) for number in match.groups()[1:]] for match in found]
    if not any(all(map(near, wanted, numbers)) for numbers in groups):
        raise Wrong(f"quoted is\n{quoted}\nprinted was\n{found[0][1]}")


def value(text):
    return float(text.replace("−", "-"))


FUNCTIONS = {
    name: getattr(math, name) for name in ("exp", "log", "sqrt", "tanh", "sin", "cos")
} | {"max": max, "abs": abs, "σ": lambda x: 1 / (1 + math.exp(-x))}
ALLOWED = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Load, ast.Constant,
           ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub)


def calculate(text, names):
    """The value of a calculation as it stands in a page."""
    for ours, theirs in (("·", "*"), ("×", "*"), ("−", "-"), ("^", "**"), ("√", "sqrt")):
        text = text.replace(ours, theirs)
    tree = ast.parse(text.strip(), mode="eval")
    if not all(isinstance(node, ALLOWED) for node in ast.walk(tree)):
        raise Wrong(f"not a calculation: {text}")
    return eval(compile(tree, "page", "eval"), {"__builtins__": {}}, {**FUNCTIONS, **names})


def by_hand(text):
    """Refuses a line in which an `=` does not hold to the last digit written.

    >>> by_hand("third = 1 / 3 = 0.33\\none = 3 · third = √(1) = 1")
    >>> by_hand("third = 1 / 3 = 0.34")
    Traceback (most recent call last):
    ...
    check.Wrong: third = 1 / 3 = 0.34: it is 0.333333
    >>> by_hand("x = open('page') = 1")
    Traceback (most recent call last):
    ...
    check.Wrong: x = open('page') = 1: name 'open' is not defined
    """
    names = {}
    for line in filter(str.strip, text.splitlines()):
        sides = [side.strip() for side in line.split("=")]
        if len(sides) < 2:
            raise Wrong(f"nothing is said to be equal: {line}")
        try:
            name = sides.pop(0) if sides[0].isidentifier() and len(sides) > 1 else None
            exact = calculate(sides[0], names)
            for side in sides[1:]:
                digits = len(side.partition(".")[2]) if re.fullmatch(r"[-−]?[\d.]+", side) else 9
                if abs(calculate(side, names) - exact) > 0.5000001 * 10.0**-digits:
                    raise Wrong(f"{line}: it is {exact:.6g}")
            if name:
                names[name] = exact
        except (SyntaxError, NameError, ArithmeticError, ValueError) as error:
            raise Wrong(f"{line}: {error}") from error


def follow(page, reader):
    """Runs a page; gives how many of its blocks in Python could not be run."""
    printed, left_out = None, 0
    for line, language, comment, content in blocks(page.read_text(encoding="utf-8")):
        try:
            if language == "sh":
                printed = reader.run("bash", "-euo", "pipefail", "-c", content)
            elif language == "python" and reader.python is None:
                printed, left_out = NOT_RUN, left_out + 1
            elif language == "python":
                printed = reader.run(reader.python, "-c", content)
            elif language == "text" and comment == "by hand":
                by_hand(content)
            elif language == "text" and printed is not NOT_RUN:
                if printed is None:
                    raise Wrong("no command stands before this output")
                compare(content, printed, tolerance(comment))
        except (Wrong, subprocess.TimeoutExpired) as error:
            raise Wrong(f"{page.relative_to(GUIDE.parent.parent)}:{line}: {error}") from error
    return left_out


def keep_pictures(page, folder):
    """Takes the pictures that a page shows from where its commands drew them."""
    for name in re.findall(r"\]\(\.\./pictures/([^)]+)\)", page.read_text(encoding="utf-8")):
        shutil.copyfile(folder / name, GUIDE / "pictures" / name)


def main():
    parser = argparse.ArgumentParser(description="Follow the guide with a program `regard`.")
    parser.add_argument("regard", type=Path)
    parser.add_argument("pages", type=int, nargs="*", help="[default: all]")
    parser.add_argument("--pictures", action="store_true", help="keep the pictures that are drawn")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="[default: this one]")
    given = parser.parse_args()
    pages = sorted((GUIDE / "en").glob("[0-9]*.md"))
    if given.pages:
        pages = [page for page in pages if int(page.name[:2]) in given.pages]
    started, failed = time.monotonic(), 0
    for mistake in wording.mistakes():
        print(mistake)
        failed += 1
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        (place / "bin").mkdir()
        (place / "bin" / "regard").symlink_to(given.regard.resolve(strict=True))
        (place / "data").mkdir()
        subprocess.run([sys.executable, GUIDE / "data" / "write.py", place / "data"], check=True)
        for made in (place / "data").iterdir():
            if not filecmp.cmp(made, GUIDE / "data" / made.name, shallow=False):
                print(f"docs/guide/data/{made.name} is not what docs/guide/data/write.py writes")
                failed += 1
        program = place / "bin" / "regard"

        def follow_alone(page):
            """What is to be said of a page that is followed in a folder of its own, as by a reader who begins there."""
            begun, folder = time.monotonic(), place / page.stem
            folder.mkdir()
            (folder / "docs").symlink_to(GUIDE.parent)
            # Not resolved: a virtual environment is known by its link.
            left_out = follow(page, Reader(folder, program, given.python.absolute()))
            if given.pictures:
                keep_pictures(page, folder)
            said = f"{page.name}: {time.monotonic() - begun:.1f} s"
            if left_out:
                said += f"\n  {given.python} has no packages regard and torch: {left_out} blocks not run"
            return said

        with ThreadPoolExecutor(2) as readers:
            for followed in [readers.submit(follow_alone, page) for page in pages]:
                try:
                    print(followed.result(), flush=True)
                except Wrong as error:
                    print(error, flush=True)
                    failed += 1
    print(f"{len(pages)} pages, {time.monotonic() - started:.1f} s in all, {failed} wrong")
    sys.exit(failed > 0 or not pages)


if __name__ == "__main__":
    main()
