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
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target" / "release" / "regard"
RUNS = ROOT / "runs" / "results"
TABLE = ROOT / "docs" / "results.md"
KEPT = ROOT / "docs" / "results.json"
DATA = ROOT.parent / "shared" / "data"

@dataclass(frozen=True)
class Row:
    """One line of the table: a training, its runs and what was asked of them."""

    name: str
    what: str
    task: str
    # The file in configs/, or none where the task's own options do.
    config: str | None
    # Measures and what was asked of each: at least so much, at most where the number is negative, or nothing.
    bars: list[tuple[str, float | None]]
    # Minutes of training allowed.
    minutes: int
    settings: list[str] = field(default_factory=list)
    seeds: int = 1


ROWS = [
    Row("multi30k-gru", "Multi30k de→en, GRU with additive attention", "translate", "multi30k-gru", [("BLEU", 30.0)], 60),
    Row("multi30k-fixed", "Multi30k de→en, GRU with a fixed vector", "translate", "multi30k-gru", [("BLEU", None)], 60, ["context=fixed"]),
    Row("multi30k-transformer", "Multi30k de→en, Transformer", "translate", "multi30k-transformer", [("BLEU", 36.5)], 90),
    Row("ewt-upos", "UD English EWT, UPOS", "label", "ewt-upos", [("accuracy", 93.0)], 30),
    Row("rt-polarity", "rt-polarity, 10% held out", "classify", "rt-polarity", [("accuracy", 76.0)], 15),
    Row("fashion-mnist", "Fashion-MNIST, ViT", "image", "fashion-mnist", [("accuracy", 91.0)], 60),
    Row("fsdd-digit", "FSDD, digit", "classify", "fsdd-digit", [("accuracy", 97.0)], 15),
    Row("fsdd-speaker", "FSDD, speaker", "classify", "fsdd-speaker", [("accuracy", 97.0)], 15),
    Row("cora", "Cora, public split, GAT", "graph", "cora-gat", [("accuracy", 83.0)], 10, seeds=10),
    Row("fsdd-strings", "FSDD strings, 3 to 7 digits", "transcribe", "fsdd-strings", [("WER", -2.0)], 30),
    Row("fsdd-strings-fixed", "FSDD strings, a fixed vector", "transcribe", "fsdd-strings", [("WER", None)], 30, ["context=fixed"]),
]
for facts, bar in [(1, 99.0), (2, 97.0), (3, 90.0)]:
    story = f"stories, {facts} {'fact' if facts == 1 else 'facts'}"
    ROWS.append(Row(f"stories-{facts}", f"Embedded {story}", "answer", f"stories-{facts}", [("accuracy", bar), ("supporting", 90.0)], 10))
    ROWS.append(Row(f"stories-{facts}-without", f"Embedded {story}, without attention", "answer", f"stories-{facts}", [("accuracy", None)], 10, ["attention=false", "encoder=gru"]))
ROWS += [
    Row("cmrc2018", "CMRC 2018, a reader with attention", "answer", "cmrc2018", [("F1", None), ("exact match", None)], 30),
    Row("cmrc2018-without", "CMRC 2018, a reader without attention", "answer", "cmrc2018", [("F1", None), ("exact match", None)], 30, ["attention=false"]),
    Row("captions-english", "Embedded captions, English", "caption", "captions", [("exact", 95.0)], 5),
    Row("captions-chinese", "Embedded captions, Chinese", "caption", "captions", [("exact", 95.0)], 5, ["embedded=chinese"]),
    Row("draw-english", "Embedded scenes drawn, English", "draw", None, [("exact", 90.0)], 15),
    Row("reports-copying", "Embedded reports, copying", "summarize", None, [("ROUGE-L", None)], 5),
    Row("reports-without", "Embedded reports, without copying", "summarize", None, [("ROUGE-L", None)], 5, ["copy=false"]),
    Row("distance-attention", "Distance 64, self-attention", "label", "distance-64", [("accuracy", 98.0)], 5, ["encoder=transformer"]),
    Row("distance-recurrent", "Distance 64, recurrent", "label", "distance-64", [("accuracy", None)], 5, ["encoder=lstm"]),
    Row("distance-connected", "Distance 64, fully connected", "label", "distance-64", [("accuracy", None)], 5, ["encoder=fully-connected", "max_length=100"]),
    Row("distance-truncated", "Distance 64, truncated to 8", "label", "distance-64", [("accuracy", None)], 5, ["encoder=transformer", "window=8"]),
    Row("misleading-mean", "Misleading neighbors, their mean", "graph", "misleading-neighbors", [("accuracy", None)], 1, ["layer=mean"]),
    Row("misleading-gat", "Misleading neighbors, GAT", "graph", "misleading-neighbors", [("accuracy", None)], 1, ["layer=gat"]),
    Row("matching-gat", "GATv2's case, GAT", "graph", "matching-neighbors", [("accuracy", None)], 1, ["layer=gat"]),
    Row("matching-gatv2", "GATv2's case, GATv2", "graph", "matching-neighbors", [("accuracy", None)], 1, ["layer=gatv2"]),
]
# Measures that are not shares of one.
PLAIN = {"BLEU", "chrF", "ROUGE-L"}


def regard(*arguments):
    """The program's standard output; its standard error is shown."""
    command = [str(PROGRAM), *arguments]
    print("$", " ".join(command), file=sys.stderr, flush=True)
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def folder(row, seed):
    return RUNS / f"{row.name}-seed{seed}"


def command(row):
    """What trains it, as one types it."""
    config = f" --config configs/{row.config}.toml" if row.config else ""
    return f"train {row.task}{config}" + "".join(f" --set {setting}" for setting in row.settings)


def train(row, seed):
    """Trains a row's run, or what is left of it, and measures it once on the test part."""
    run = folder(row, seed)
    if (run / "test.json").exists():
        return
    if (run / "run.json").exists():
        regard("train", "--resume", str(run.relative_to(ROOT)))
    else:
        regard(*command(row).split(), "--set", f"training.seed={seed}", "--out", str(run.relative_to(ROOT)))
    report = regard("eval", str(run.relative_to(ROOT)), "--json")
    partial = run / "test.json.part"
    partial.write_text(report, encoding="utf-8")
    os.replace(partial, run / "test.json")


def measured(row):
    """The measures of each seed's run that is done here, and its minutes of training."""
    found = {measure: [] for measure, _ in row.bars}
    minutes = []
    for seed in range(1, row.seeds + 1):
        run = folder(row, seed)
        if not (run / "test.json").exists():
            continue
        scores = dict(json.loads((run / "test.json").read_text(encoding="utf-8"))["scores"]["values"])
        for measure, values in found.items():
            values.append(scores[measure] * (1 if measure in PLAIN else 100))
        minutes.append(json.loads((run / "clock.json").read_text(encoding="utf-8"))["seconds"] / 60)
    return {"measures": found, "minutes": minutes}


def line(row, kept):
    measures, minutes = kept[row.name]["measures"], kept[row.name]["minutes"]
    wanted, reached = [], []
    for measure, asked in row.bars:
        if asked is not None:
            wanted.append(f"≥ {asked}" if asked >= 0 else f"≤ {-asked}")
        values = measures.get(measure, [])
        if values:
            mean = statistics.mean(values)
            shown = f"{mean:.1f}"
            if len(values) > 1:
                shown += f" ± {statistics.stdev(values):.1f} ({len(values)} seeds)"
            short = asked is not None and (mean < asked if asked >= 0 else mean > -asked)
            reached.append(f"{measure} " + (f"**{shown}**" if short else shown))
    cells = [row.what, ", ".join(wanted) or "—", ", ".join(reached) or "not measured yet", f"{row.minutes} min"]
    cells += [f"{sum(minutes):.1f} min" if reached else "", f"`regard {command(row)}`"]
    return "| " + " | ".join(cells) + " |"


def write_table():
    """The table of what was measured here, and before that elsewhere."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for row in ROWS:
        now = measured(row)
        if len(now["minutes"]) >= len(kept.get(row.name, {"minutes": []})["minutes"]):
            kept[row.name] = now
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
            if arguments.only in row.name:
                for seed in range(1, row.seeds + 1):
                    train(row, seed)
    write_table()


if __name__ == "__main__":
    main()
