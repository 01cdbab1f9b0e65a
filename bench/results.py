#!/usr/bin/env python3
"""Trains the configurations in configs/ on the real data beside the checkout and writes
docs/results.md: what was reached, beside what was asked, with the command and the time of each.

    python3 bench/results.py                     # all rows that are not done yet
    python3 bench/results.py --only cora         # rows whose name contains a text
    python3 bench/results.py --table             # only writes the table again

A row's runs are kept in runs/results/ROW-seedN. A run that was interrupted is resumed; one that is
done is not trained again. The test part is read once for each run, by `regard eval`, after the
training; its answer is kept in the run's folder. Wants nothing but Python and the built program.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target" / "release" / "regard"
RUNS = ROOT / "runs" / "results"
TABLE = ROOT / "docs" / "results.md"
KEPT = ROOT / "docs" / "results.json"
DATA = ROOT.parent / "shared" / "data"

# Name, what it is, task, configuration, further settings, seeds, measure (times 100 where it is a
# share), what was asked (a number, or how far above another row), minutes of training allowed.
ROWS = [
    ("multi30k-gru", "Multi30k de→en, GRU with additive attention", "translate", "multi30k-gru", [], 1, "BLEU", 30.0, 60),
    ("multi30k-fixed", "Multi30k de→en, GRU with a fixed vector", "translate", "multi30k-gru", ["context=fixed"], 1, "BLEU", None, 60),
    ("multi30k-transformer", "Multi30k de→en, Transformer", "translate", "multi30k-transformer", [], 1, "BLEU", 36.5, 90),
    ("ewt-upos", "UD English EWT, UPOS", "label", "ewt-upos", [], 1, "accuracy", 93.0, 30),
    ("rt-polarity", "rt-polarity, 10% held out", "classify", "rt-polarity", [], 1, "accuracy", 76.0, 15),
    ("fashion-mnist", "Fashion-MNIST, ViT", "image", "fashion-mnist", [], 1, "accuracy", 91.0, 60),
    ("fsdd-digit", "FSDD, digit", "classify", "fsdd-digit", [], 1, "accuracy", 97.0, 15),
    ("fsdd-speaker", "FSDD, speaker", "classify", "fsdd-speaker", [], 1, "accuracy", 97.0, 15),
    ("cora", "Cora, public split, GAT", "graph", "cora-gat", [], 10, "accuracy", 83.0, 10),
]


def regard(*arguments):
    """The program's standard output; its standard error is shown."""
    command = [str(PROGRAM), *arguments]
    print("$", " ".join(command), file=sys.stderr, flush=True)
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def folder(row, seed):
    return RUNS / f"{row[0]}-seed{seed}"


def train(row, seed):
    """Trains a row's run, or what is left of it, and measures it once on the test part."""
    _, _, task, config, settings, *_ = row
    run = folder(row, seed)
    if (run / "test.json").exists():
        return
    if (run / "run.json").exists():
        regard("train", "--resume", str(run.relative_to(ROOT)))
    else:
        sets = [part for s in [*settings, f"training.seed={seed}"] for part in ("--set", s)]
        regard("train", task, "--config", f"configs/{config}.toml", *sets, "--out", str(run.relative_to(ROOT)))
    report = regard("eval", str(run.relative_to(ROOT)), "--json")
    partial = run / "test.json.part"
    partial.write_text(report, encoding="utf-8")
    os.replace(partial, run / "test.json")


def measured(row):
    """The measure of each seed's run that is done here, and its minutes of training."""
    _, _, _, _, _, seeds, measure, *_ = row
    values, minutes = [], []
    for seed in range(1, seeds + 1):
        run = folder(row, seed)
        if not (run / "test.json").exists():
            continue
        scores = dict(json.loads((run / "test.json").read_text(encoding="utf-8"))["scores"]["values"])
        value = scores[measure]
        values.append(value if measure == "BLEU" else 100 * value)
        lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        minutes.append(json.loads(lines[-1])["seconds"] / 60)
    return {"values": values, "minutes": minutes}


def line(row, kept):
    name, what, task, config, settings, seeds, measure, asked, budget = row
    values, minutes = kept[name]["values"], kept[name]["minutes"]
    sets = "".join(f" --set {s}" for s in settings)
    command = f"`regard train {task} --config configs/{config}.toml{sets}`"
    wanted = f"≥ {asked}" if asked is not None else "—"
    if not values:
        return f"| {what} | {wanted} | not measured yet | {budget} min | | {command} |"
    mean = statistics.mean(values)
    shown = f"{mean:.1f}" if len(values) == 1 else f"{mean:.1f} ± {statistics.stdev(values):.1f} ({len(values)} seeds)"
    if asked is not None and mean < asked:
        shown = f"**{shown}**"
    return f"| {what} | {wanted} | {measure} {shown} | {budget} min | {sum(minutes):.1f} min | {command} |"


def write_table():
    """The table of what was measured here, and before that elsewhere."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for row in ROWS:
        now = measured(row)
        if len(now["values"]) >= len(kept.get(row[0], {"values": []})["values"]):
            kept[row[0]] = now
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    text = TABLE.read_text(encoding="utf-8")
    begin, end = "<!-- table -->\n", "<!-- end of table -->"
    head, rest = text.split(begin)
    _, tail = rest.split(end)
    rows = ["| data | asked | reached | allowed | trained | command |", "|---|---|---|---|---|---|"]
    rows += [line(row, kept) for row in ROWS]
    TABLE.write_text(head + begin + "\n".join(rows) + "\n" + end + tail, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--table", action="store_true", help="only write the table again")
    arguments = parser.parse_args()
    if not arguments.table:
        if not DATA.exists():
            sys.exit(f"the data are not beside the checkout: {DATA.relative_to(ROOT.parent)} is missing")
        if not PROGRAM.exists():
            sys.exit("build the program first: cargo build --release")
        RUNS.mkdir(parents=True, exist_ok=True)
        for row in ROWS:
            if arguments.only in row[0]:
                for seed in range(1, row[5] + 1):
                    train(row, seed)
    write_table()


if __name__ == "__main__":
    main()
