"""Kills trainings at random moments and compares what they end with.

For every task: one training straight through, and others that are killed (KILL, TERM, INT in turn) at
random moments and resumed, until they have been killed as often as asked. The files of all must be
equal, but for the clock. Writes a table; exits with 1 where files differ.

    cargo build --release && python3 bench/kills.py target/release/regard --kills 50
"""

import argparse
import hashlib
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SETTINGS = {
    "regress": ["size=400", "epochs=600", "schedule=plateau", "validate_every=1"],
    "translate": ["size=600", "embedded=dates", "hidden=32", "embedding=16", "epochs=6"],
    "label": ["size=400", "hidden=32", "embedding=32", "layers=1", "epochs=8"],
    "classify": ["size=600", "embedding=32", "epochs=10", "ema_decay=0.9"],
    "image": ["size=300", "epochs=6", "batch_size=16"],
    "graph": ["epochs=400", "dropout=0.5", "validate_every=1"],
    "answer": ["size=600", "facts=1", "embedding=32", "epochs=10", "batch_size=32"],
    "draw": ["size=200", "hidden=32", "embedding=16", "epochs=4", "batch_size=16"],
    "caption": ["size=200", "hidden=32", "embedding=16", "epochs=4", "batch_size=16"],
    "summarize": ["size=300", "hidden=32", "embedding=16", "epochs=4", "batch_size=16"],
    "transcribe": ["size=200", "hidden=32", "embedding=16", "epochs=4", "batch_size=16"],
}


def sums(run):
    """The sum of every file of a run, its scenes too, but what is hidden and the clock."""
    files = sorted(p for p in run.rglob("*") if p.is_file() and p.name[0] != "." and p.name != "clock.json")
    return {str(p.relative_to(run)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def killed(command, resume, run, wanted, whole, chance):
    """Trains in `run` until it was killed `wanted` times, and to its end. Gives how often each signal
    came, and the sums of every run that came to its end; one that does early is begun anew."""
    heard = dict.fromkeys((signal.SIGKILL, signal.SIGTERM, signal.SIGINT), 0)
    ends = []
    while True:
        there = (run / "run.json").exists()
        process = subprocess.Popen(
            resume if there else command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        number = sum(heard.values())
        if number < wanted:
            time.sleep(chance.random() * whole / 5)
            if process.poll() is None:
                kind = list(heard)[number % 3]
                process.send_signal(kind)
                heard[kind] += 1
        if process.wait() == 0:
            ends.append(sums(run))
            if sum(heard.values()) >= wanted:
                return heard, ends
            shutil.rmtree(run)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program", help="the program, as target/release/regard")
    arguments.add_argument("--kills", type=int, default=50, help="for each task")
    arguments.add_argument("--tasks", nargs="*", default=list(SETTINGS))
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    chance, equal = random.Random(given.seed), True
    print(f"{'task':<10} {'KILL':>5} {'TERM':>5} {'INT':>5}  files")
    for task in given.tasks:
        with tempfile.TemporaryDirectory() as folder:
            # Pictures are headed by the name of the run.
            straight, other = (pathlib.Path(folder, name, "run") for name in ("straight", "killed"))
            sets = [x for setting in SETTINGS.get(task, []) for x in ("--set", setting)]
            train = [given.program, "train", task, *sets, "--out"]
            begun = time.time()
            subprocess.run([*train, straight], check=True, capture_output=True)
            whole = time.time() - begun
            resume = [given.program, "train", "--resume", other]
            heard, ends = killed([*train, other], resume, other, given.kills, whole, chance)
            a, different = sums(straight), set()
            for b in ends:
                different |= {name for name in a.keys() | b.keys() if a.get(name) != b.get(name)}
            equal = equal and not different
            said = f"{len(a)} files of {len(ends)} runs equal"
            if different:
                said = ", ".join(sorted(different)) + " differ"
            counts = " ".join(f"{n:>5}" for n in heard.values())
            print(f"{task:<10} {counts}  {said}", flush=True)
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
