#!/usr/bin/env python3
"""Refuses turns of phrase that are not plain English or plain Chinese, and says what to write instead.

    python3 docs/guide/wording.py

It reads the guide, the READMEs, the results, the templates of the options, the program's help and messages, the
explorer's words in both languages, the doc comments of the crates above the kernels, and the Python package. A phrase is looked for across line ends, so that wrapping does not hide it. `check.py` calls it too.
"""

import re
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent

# What is refused, as a regular expression in which a blank is any white space, and what to write instead.
ENGLISH = [
    (r"\b(is|are|be) told from\b", "predicted from"),
    (r"\btelling each\b", "predicting each"),
    (r"\bwant to tell\b", "estimate, predict"),
    (r"\bin the bare\b", "by itself"),
    (r"\bwanted is\b", "we want …"),
    (r"\b(both|one|is|are) (are |is )?wanted\b", "is needed, is expected"),
    (r"\bfor long under\b", "has long existed"),
    (r"\basking a text\b", "asking questions about a text"),
    (r"\border of the sums\b", "order of summation"),
    (r"\b[Rr]ather than to\b", "rather than …ing"),
    (r"\b[Cc]ut otherwise\b", "use other tile sizes"),
    (r"\bA training may\b|\bMost trainings\b|\bboth trainings\b", "training can; most runs"),
    (r"\b[Oo]ne's own\b", "your own"),
    (r"\bone edge far\b|\bedges far\b", "one layer reaches one edge away"),
    (r"\ba thing to ask\b|\ba thing you can\b", "say what it does: can be queried"),
    (r"\bdata are many\b", "there is plenty of data"),
    (r"\bis the knife\b", "plain words"),
    (r"\b(good )?listeners?\b", "speech model"),
    (r"\btranslators?\b", "translation model"),
    (r"\bwhile learning\b", "during training"),
    (r"\bmade small\b", "lowercased"),
    (r"\b(each|every|the|a|of) (place|places)\b", "position"),
    (r"\bknows? places\b", "encodes positions"),
    (r"\bwas any good\b", "say what was not a number, or not found"),
    (r"\bAdam keeps\b", "Adam's decay rates"),
    (r"\bnow and then\b", "at every symbol; sometimes"),
]
# The same of doc comments, of the Python package and of the explorer's English, which have words of their own for
# other things: an event's listener, a place in memory.
COMMENTS = [
    (r"\b[Tt]old from\b", "predicted from"),
    (r"\bwhile learning\b", "during training"),
    (r"\b[Oo]ne's own\b", "your own"),
    (r"\bmade small\b", "lowercased"),
    (r"\b[Tt]ranslators?\b", "translation model"),
    (r"\bAdam keeps\b", "Adam's decay rates"),
    (r"\b(both|one|are) (are |is )?wanted\b", "is needed, is expected"),
    (r"\bin the bare\b", "by itself"),
    (r"\bwas any good\b", "say what was not a number, or not found"),
]
CHINESE = [
    ("拿来细看|做成一件", "机制任选，能训练，跑得快，权重看得见"),
    ("四处可选", "四个可选项"),
    ("自己说明自己", "自带完整说明"),
    ("都允许，才看得见", "多个掩码取交集"),
    ("分享一份信任|分享一个总量", "权重之和为 1"),
    ("问得有多尖锐|再尖锐下去|听错人", "查询越长，分布越尖；再大就会选错键"),
    ("一行是一个数据[，。；]", "一行是一个数据点"),
    ("真正相遇|先相遇", "发生交互"),
    ("宽度都是", "维度都是"),
    ("一幅对齐", "一张对齐图"),
    ("生来就有|成见", "归纳偏置"),
    ("抽样", "采样"),
    ("类别标记", "类别词元"),
    ("两个核心|所有核心|几个核心", "CPU 核"),
    ("中学数学", "说出要哪些：向量、矩阵、指数函数"),
    ("时不时用一下", "每写一个符号都用一次"),
]


def squeezed(text):
    """One line, without blanks between Chinese, so that wrapping hides nothing.

    >>> squeezed("in the\\n  bare")
    'in the bare'
    >>> squeezed("让所有数据\\n分享")
    '让所有数据分享'
    """
    text = re.sub(r"[ \t]*\n[ \t#>]*", "\n", text)
    text = re.sub(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=[\u3000-\u9fff\uff00-\uffef])", "", text)
    return " ".join(text.split())


def refused(text, phrases):
    """The phrases that a text has, each with what is around it and what to write instead.

    >>> refused("Self-attention in\\nthe bare.", ENGLISH)
    [('in the bare', '…Self-attention in the bare.…', 'by itself')]
    >>> refused("The weights are predicted from the scores.", ENGLISH)
    []
    >>> [found[0] for found in refused("按概率抽样，两个核\\n心", CHINESE)]
    ['抽样', '两个核心']
    """
    line, found = squeezed(text), []
    for pattern, better in phrases:
        for match in re.finditer(pattern, line):
            around = line[max(0, match.start() - 30):match.end() + 30]
            found.append((match[0], f"…{around}…", better))
    return found


def prose(path):
    """What of a file is read by people: code and formulas of a page left out, of a template the comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        # Titles of papers are what they are.
        return re.sub(r"`[^`\n]*`", "`…`", text)
    if path.suffix == ".rs":
        # Messages are strings; clap makes help of the doc comments of arguments.
        strings = re.findall(r'"((?:[^"\\]|\\.|\\\n)*)"', re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
        help_texts = re.findall(r"^ *///(.*)$", text, flags=re.MULTILINE) if "regard-cli" in path.parts else []
        return "\n".join([*(string.replace("\\\n", " ") for string in strings), "", *help_texts])
    if path.suffix == ".toml":
        return "\n".join(line for line in text.splitlines() if line.startswith("#"))
    return text


def comments(path):
    """The doc comments of a file of Rust, and what else of it is prose; any other file as it is."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".rs":
        return text
    return "\n".join([*re.findall(r"^ *//[/!]?(.*)$", text, flags=re.MULTILINE), "", prose(path)])


def commented():
    """Every file whose comments are read."""
    found = []
    for crate in ("regard", "regard-data", "regard-cli", "regard-tasks", "regard-picture", "regard-explorer"):
        found += (CHECKOUT / "crates" / crate / "src").rglob("*.rs")
    found += (CHECKOUT / "crates" / "regard-explorer" / "page").rglob("*.js")
    python = CHECKOUT / "python"
    found += [python / "README.md", *(python / "regard").rglob("*.py"), *(python / "examples").glob("*.ipynb")]
    return sorted(path for path in found if path.name != "chinese.js")


def files():
    """Every file that is read, with the phrases that it may not have."""
    guide = CHECKOUT / "docs" / "guide"
    english = [*(guide / "en").glob("*.md"), CHECKOUT / "README.md", CHECKOUT / "docs" / "results.md"]
    english += [CHECKOUT / "docs" / "pictures.md", *(CHECKOUT / "crates" / "regard-tasks" / "src").rglob("*.toml")]
    for crate in ("regard-cli", "regard-data", "regard-tasks", "regard-picture", "regard-explorer"):
        english += (CHECKOUT / "crates" / crate / "src").rglob("*.rs")
    chinese = [*(guide / "zh").glob("*.md"), CHECKOUT / "README.zh.md"]
    chinese.append(CHECKOUT / "crates" / "regard-explorer" / "page" / "chinese.js")
    return [(path, ENGLISH) for path in sorted(english)] + [(path, CHINESE) for path in sorted(chinese)]


def mistakes():
    """A line for each phrase that is found."""
    return [
        f"{path.relative_to(CHECKOUT)}: {around} — not “{phrase}”; better: {better}"
        for path, phrases in files()
        for phrase, around, better in refused(prose(path), phrases)
    ] + [
        f"{path.relative_to(CHECKOUT)}: {around} — not “{phrase}”; better: {better}"
        for path in commented()
        for phrase, around, better in refused(comments(path), COMMENTS)
    ]


def main():
    found, read = mistakes(), [*files(), *commented()]
    print("\n".join([*found, f"{len(read)} files, {len(found)} phrases to mend"]))
    sys.exit(bool(found) or len(read) < 500)


if __name__ == "__main__":
    main()
