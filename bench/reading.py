"""Measures how fast data are read: photographs beside Pillow, and a table of numbers.

Photographs: six JPEG files of 12 megapixels (4000 x 3000, made here: smooth shapes with noise, as a camera
has it), in folders for labels. Regard's turn is the whole process of `regard data image`, with an empty
cache; Pillow's turn decodes and resizes the same files (box filter, as Regard's), one after the other, and
its start and imports are not counted. Turns alternate; medians and their ratio are told, and the time of
a second reading from Regard's cache.

Table: a CSV file of numbers, and `regard data regress` on it; told in MB a second of the whole process,
beside Python's csv module on the same file, whose cells are made numbers.

    pip install pillow numpy
    cargo build --release && python3 bench/reading.py target/release/regard
"""

import argparse
import csv
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import PIL
from PIL import Image

SIDE = 64
# What Regard's time may be of Pillow's.
WANTED = 1.5


def photograph(seed):
    """4000 x 3000 pixels: shapes of every size, and noise."""
    chance = numpy.random.default_rng(seed)
    picture = numpy.zeros((3000, 4000, 3), numpy.float32)
    for size in (4, 16, 64, 250):
        small = chance.integers(0, 256, (3 * size, 4 * size, 3), numpy.uint8)
        picture += numpy.asarray(Image.fromarray(small).resize((4000, 3000), Image.BICUBIC)) / 4
    picture += chance.normal(0, 4, picture.shape)
    return Image.fromarray(picture.clip(0, 255).astype(numpy.uint8))


def written(folder):
    """Six photographs in two folders."""
    files = []
    for at in range(6):
        file = folder / ("day", "night")[at % 2] / f"{at}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        photograph(at).save(file, quality=92)
        files.append(file)
    return files


def pillow(files):
    begun = time.perf_counter()
    for file in files:
        Image.open(file).convert("RGB").resize((SIDE, SIDE), Image.BOX).tobytes()
    return time.perf_counter() - begun


def regard(program, words, cache):
    environment = dict(os.environ, REGARD_CACHE=str(cache))
    begun = time.perf_counter()
    subprocess.run([program, "data", *words], check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - begun


def photographs(program, folder, rounds):
    files = written(folder / "photographs")
    cache = folder / "cache"
    words = ["image", f"train_folder={folder / 'photographs'}", f"image_size={SIDE}", "held_out=0.2"]
    times = {"regard": [], "again": [], "pillow": []}
    for _ in range(rounds + 1):
        shutil.rmtree(cache, ignore_errors=True)
        times["regard"].append(regard(program, words, cache))
        times["again"].append(regard(program, words, cache))
        times["pillow"].append(pillow(files))
    # The first round warms the files up.
    medians = {name: statistics.median(all[1:]) for name, all in times.items()}
    ratio = medians["regard"] / medians["pillow"]
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"six photographs of 12 megapixels ({size:.0f} MB), median of {rounds}:")
    print(f"  regard {medians['regard']:.3f} s, Pillow {PIL.__version__} {medians['pillow']:.3f} s: {ratio:.2f}x")
    print(f"  regard from its cache {medians['again']:.3f} s")
    return ratio <= WANTED


def table(program, folder, rounds):
    file = folder / "table.csv"
    chance = random.Random(1)
    with file.open("w") as out:
        out.write("a,b,c,d,e\n")
        for _ in range(600_000):
            out.write(",".join(f"{chance.gauss(0, 100):.4f}" for _ in range(5)) + "\n")
    size = file.stat().st_size / 1e6
    own, other = [], []
    for _ in range(rounds):
        own.append(regard(program, ["regress", f"train={file}"], folder / "cache"))
        begun = time.perf_counter()
        with file.open(newline="") as rows:
            reader = csv.reader(rows)
            next(reader)
            for row in reader:
                [float(cell) for cell in row]
        other.append(time.perf_counter() - begun)
    own, other = statistics.median(own), statistics.median(other)
    print(f"a table of {size:.0f} MB, median of {rounds}:")
    print(f"  regard {size / own:.0f} MB/s, Python's csv module {size / other:.0f} MB/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("regard", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        quick = photographs(chosen.regard, pathlib.Path(folder), chosen.rounds)
        table(chosen.regard, pathlib.Path(folder), chosen.rounds)
    sys.exit(not quick)


if __name__ == "__main__":
    main()
