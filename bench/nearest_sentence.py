#!/usr/bin/env python3
"""What a reader must beat on SQuAD's JSON: the answer is the sentence that shares most characters with the question.

    python3 bench/nearest_sentence.py ../shared/data/cmrc2018/cmrc2018_trial.json.gz

prints exact match and F1 as CMRC 2018's script counts them (the rules of bench/fixtures/answers.py, which wants NLTK).
"""

import gzip
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "fixtures"))
from answers import cmrc  # noqa: E402


def sentences(text):
    return [s.strip() for s in re.findall(r"[^。！？；\n]+[。！？；\n]*", text) if s.strip()]


def main():
    path = sys.argv[1]
    data = json.load((gzip.open if path.endswith(".gz") else open)(path))["data"]
    exact, f1, count = 0.0, 0.0, 0
    for article in data:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                asked = set(question["question"])
                best = max(sentences(paragraph["context"]), key=lambda s: len(asked & set(s)))
                score = cmrc(best, [answer["text"] for answer in question["answers"]])
                exact, f1, count = exact + score["exact"], f1 + score["f1"], count + 1
    print(f"{count} questions: exact match {exact / count:.4f}, F1 {f1 / count:.4f}")


if __name__ == "__main__":
    main()
