"""Reads the event files of trainings with TensorBoard's own reader.

For every task: a short training that writes event files, and one more that is stopped on the way and
resumed. TensorBoard's `EventAccumulator` (the package `tensorboard`, without TensorFlow) reads the
folder; every curve of epochs is compared with what `metrics.jsonl` says: names, steps, and values to
the last bit of a 32-bit float; curves of batches have a point for every step, once. Says what it checked; exits with 1 where something differs.

    pip install tensorboard
    cargo build --release && python3 bench/events.py target/release/regard
"""

import argparse
import json
import math
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

from tensorboard import version
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

SETTINGS = {
    "regress": ["size=400", "epochs=40"],
    "translate": ["size=600", "embedded=dates", "hidden=32", "embedding=16", "epochs=4"],
    "label": ["size=400", "hidden=32", "embedding=32", "layers=1", "epochs=4"],
    "classify": ["size=600", "embedding=32", "epochs=6"],
    "image": ["size=300", "epochs=4", "batch_size=16"],
    "graph": ["epochs=40", "validate_every=4"],
    "answer": ["size=600", "facts=1", "embedding=32", "epochs=6", "batch_size=32"],
    "draw": ["size=200", "hidden=32", "embedding=16", "epochs=3", "batch_size=16"],
    "caption": ["size=200", "hidden=32", "embedding=16", "epochs=3", "batch_size=16"],
    "summarize": ["size=300", "hidden=32", "embedding=16", "epochs=3", "batch_size=16"],
    "transcribe": ["size=200", "hidden=32", "embedding=16", "epochs=3", "batch_size=16"],
}


def curves(run):
    """The curves of a run as TensorBoard reads them: name -> [(step, value)]."""
    reader = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    reader.Reload()
    return {tag: [(e.step, e.value) for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def told(records):
    """The curves that the lines of `metrics.jsonl` tell."""
    found = {}
    for record in records:
        measures = [(f"validation/{name}", value) for name, value in record["validation"]["values"]]
        for tag, value in [("training/loss", record["loss"]), ("training/epoch", record["epoch"]), *measures]:
            # What is no number is null in JSON.
            value = math.nan if value is None else value
            found.setdefault(tag, []).append((record["step"], value))
    return found


def equal(a, b):
    """Whether two numbers are equal as 32 bits hold them."""
    a, b = (struct.unpack("f", struct.pack("f", x))[0] for x in (a, b))
    return a == b or (math.isnan(a) and math.isnan(b))


def wrong(run):
    """What differs between a run's curves and its metrics, in sentences; how many curves and points
    were compared."""
    found = curves(run)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    expected = told(records)
    said = []
    for tag, points in expected.items():
        read = found.get(tag, [])
        if [step for step, _ in read] != [step for step, _ in points]:
            said.append(f"{tag}: steps {[s for s, _ in read]}, and the metrics have {[s for s, _ in points]}")
        said += [f"{tag}: {a} is not {b}" for a, b in zip(read, points) if not equal(a[1], b[1])]
    # Of batches the metrics say no more than how many there are.
    every = list(range(1, records[-1]["step"] + 1))
    for tag in ("batch/loss", "batch/rate"):
        steps = [step for step, _ in found.get(tag, [])]
        if steps != every:
            said.append(f"{tag}: {len(steps)} steps, and the training has {len(every)}")
    others = set(found) - set(expected) - {"batch/loss", "batch/rate"}
    said += [f"{tag}: nobody knows this curve" for tag in sorted(others)]
    return said, len(found), sum(map(len, found.values()))


def stopped(command, resume, run):
    """Trains until the first epoch is written, stops it there, and resumes it."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    metrics = run / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.stat().st_size):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    if process.wait() == 0:
        return False
    subprocess.run(resume, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("regard", type=pathlib.Path)
    parser.add_argument("--tasks", nargs="*", default=list(SETTINGS))
    chosen = parser.parse_args()
    print(f"TensorBoard {version.VERSION}\n")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for task in chosen.tasks:
            words = [*SETTINGS[task], "tensorboard=true"]
            for kind in ("straight", "stopped and resumed"):
                run = pathlib.Path(folder) / f"{task}-{kind.split()[0]}"
                command = [chosen.regard, "train", task, *words, "--out", run]
                resume = [chosen.regard, "train", "--resume", run]
                if kind == "straight":
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                elif not stopped(command, resume, run):
                    kind = "ended before it was stopped"
                said, count, points = wrong(run)
                files = len(list((run / "tensorboard").iterdir()))
                sizes = f"{files} file{'s' * (files > 1)}, {count} curves, {points} points"
                print(f"{task:<11} {kind:<28} {sizes}: {'; '.join(said) or 'equal'}", flush=True)
                failed |= bool(said)
    sys.exit(failed)


if __name__ == "__main__":
    main()
