#!/usr/bin/env python3
"""Strings of digits out of the Free Spoken Digit Dataset: 3 to 7 recordings of one speaker, joined with short pauses.

    python3 bench/fsdd_strings.py ../shared/data/fsdd runs/fsdd-strings

reads the folder `recordings` of the first argument (files DIGIT_SPEAKER_NUMBER.wav) and writes three folders of WAV files
and three lists of them (path, tab, what is said) to the second: `train.tsv`, `validation.tsv`, `test.tsv`. It wants Python alone,
and the same files come out every time.

The corpus says that recordings 0 to 4 of each speaker and digit are its test. The strings of the test are made of these
alone, those of the validation of recordings 5 to 9, those that are learned of all others: no recording is in two parts.
"""

import argparse
import random
import wave
from pathlib import Path

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
PARTS = {"train": range(10, 1000), "validation": range(5, 10), "test": range(0, 5)}
SHORTEST, LONGEST = 3, 7  # recordings in a string
PAUSE = (0.05, 0.25)  # seconds, between recordings and at both ends


def recordings(folder):
    """Samples by speaker, number and digit, and the one rate that all have."""
    found, rates = {}, set()
    for path in sorted(folder.glob("*.wav")):
        digit, speaker, number = path.stem.split("_")
        with wave.open(str(path)) as sound:
            if (sound.getnchannels(), sound.getsampwidth()) != (1, 2):
                raise SystemExit(f"{path}: one channel of 16 bits was expected")
            rates.add(sound.getframerate())
            found[speaker, int(number), int(digit)] = sound.readframes(sound.getnframes())
    if not found:
        raise SystemExit(f"{folder}: there are no recordings DIGIT_SPEAKER_NUMBER.wav")
    if len(rates) != 1:
        raise SystemExit(f"{folder}: recordings of {len(rates)} rates; one was expected")
    return found, rates.pop()


def silence(draw, rate):
    return bytes(2 * int(draw.uniform(*PAUSE) * rate))


def strings(found, rate, part, count, seed):
    """Pairs of the samples of a string and its words."""
    draw = random.Random(f"{seed} {part}")
    there = [key for key in found if key[1] in PARTS[part]]
    speakers = sorted({speaker for speaker, _, _ in there})
    by_speaker = {speaker: [key for key in there if key[0] == speaker] for speaker in speakers}
    for _ in range(count):
        speaker = draw.choice(speakers)
        chosen = [draw.choice(by_speaker[speaker]) for _ in range(draw.randint(SHORTEST, LONGEST))]
        samples = silence(draw, rate)
        for key in chosen:
            samples += found[key] + silence(draw, rate)
        yield samples, " ".join(WORDS[digit] for _, _, digit in chosen)


def write(out, part, rate, pairs):
    folder = out / part
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for at, (samples, words) in enumerate(pairs):
        path = folder / f"{at:05}.wav"
        with wave.open(str(path), "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(rate)
            sound.writeframes(samples)
        lines.append(f"{part}/{path.name}\t{words}\n")
    (out / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")
    print(f"{out / part}.tsv: {len(lines)} strings")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path, help="the folder that has the folder `recordings`")
    parser.add_argument("out", type=Path, help="the folder to write to")
    parser.add_argument("--train", type=int, default=4000, help="how many strings are learned")
    parser.add_argument("--held-out", type=int, default=500, help="how many validate, and how many test")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found, rate = recordings(options.corpus / "recordings")
    for part, count in [("train", options.train), ("validation", options.held_out), ("test", options.held_out)]:
        write(options.out, part, rate, strings(found, rate, part, count, options.seed))


if __name__ == "__main__":
    main()
