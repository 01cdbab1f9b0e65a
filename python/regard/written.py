"""Data from memory as the files that a task reads, under a name made of their content: a run that is resumed or
evaluated reads them again, and runs on the same data share them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import struct
import tempfile
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .records import named_columns, rows

Files = dict[str, bytes]
Options = dict[str, Any]

# What a row of each task has.
FIELDS: dict[str, tuple[str, ...]] = {
    "classify": ("text", "label"),
    "translate": ("source", "target"),
    "summarize": ("text", "summary"),
    "label": ("words", "labels"),
    "answer": ("context", "question", "answers"),
    "image": ("image", "label"),
    "caption": ("image", "sentence"),
    "draw": ("image", "sentence"),
    "transcribe": ("audio", "text"),
    "regress": ("features", "target"),
    "graph": ("x", "edge_index", "y"),
}


def fields(task: str) -> tuple[str, ...]:
    """What the rows of a task's data have.

    >>> from regard.written import fields
    >>> fields("translate")
    ('source', 'target')
    """
    if task not in FIELDS:
        raise ValueError(f"{task!r} takes no data from memory; {', '.join(FIELDS)} do")
    return FIELDS[task]


def written(
    task: str, parts: Mapping[str, Any], columns: Mapping[str, str] | None, beside: str | os.PathLike[str]
) -> Options:
    """Writes the parts of a task's data into the folder ``beside``, and gives the options that name the files.

    >>> import tempfile
    >>> from regard.written import written
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(written("translate", {"train": [("hi", "hallo")]}, None, folder))
    ['data.source_column', 'data.target_column', 'data.train_pairs']
    """
    fields(task)
    found: Options = {}
    for part, data in parts.items():
        name = "data" if part == "train" else part
        files, options = _WRITERS[task](part, data, columns, name)
        folder = _kept(files, Path(beside))
        for key, value in options.items():
            found[key] = str(folder / value[1]) if isinstance(value, tuple) else value
    return found


def _kept(files: Files, beside: Path) -> Path:
    """The folder of these files, which is written where it is not there yet; nobody ever sees half of it."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name} {len(files[name])} ".encode())
        digest.update(files[name])
    folder = beside.absolute() / digest.hexdigest()[:16]
    if folder.is_dir():
        return folder
    beside.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".making-", dir=beside))
    for name, content in files.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(content)
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        # Another process was as fast.
        for name in sorted(files, reverse=True):
            (made / name).unlink()
        for place in sorted((place for place in made.rglob("*")), reverse=True):
            place.rmdir()
        made.rmdir()
    return folder


def _path(name: str) -> tuple[str, str]:
    """An option that is the path of a file."""
    return ("path", name)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is {type(value).__name__}; it wants a text")
    return value


def _name(value: Any, what: str) -> str:
    """A label, as text."""
    if isinstance(value, (str, bool, int, float, np.bool_, np.integer, np.floating)):
        return str(value.item() if isinstance(value, np.generic) else value)
    raise TypeError(f"{what} is {type(value).__name__}; it wants a text or a number")


def _names(values: Sequence[Any], what: Callable[[int], str]) -> list[str]:
    """Labels as text: of one type, since 1 and 1.0 would be two labels, and 1 and "1" one."""
    found = [_name(value, what(at)) for at, value in enumerate(values)]
    kinds = [_kind(value) for value in values]
    for at, kind in enumerate(kinds):
        if kind != kinds[0]:
            told = f"{what(at)} is {values[at]!r}, {kind}; {what(0)} is {values[0]!r}, {kinds[0]}"
            raise ValueError(f"{told}: labels want one type")
    return found


def _kind(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "a truth"
    if isinstance(value, str):
        return "a text"
    return "a whole number" if isinstance(value, (int, np.integer)) else "a fraction"


def _csv(header: Sequence[str], lines: Sequence[Sequence[str]]) -> bytes:
    to = io.StringIO(newline="")
    table = csv.writer(to, quoting=csv.QUOTE_ALL, lineterminator="\n")
    table.writerow(header)
    table.writerows(lines)
    return to.getvalue().encode()


def _pairs(key: str, header: tuple[str, str], given: tuple[str, str]) -> Callable[..., tuple[Files, Options]]:
    def write(part: str, data: Any, columns: Mapping[str, str] | None, name: str) -> tuple[Files, Options]:
        lines = [
            [_text(one, f"{field} of row {at} of {name}") for field, one in zip(given, row)]
            for at, row in enumerate(rows(data, given, columns, name))
        ]
        options: Options = {f"data.{part}_{key}": _path(f"{part}.csv")}
        options |= {"data.source_column": header[0], "data.target_column": header[1]}
        return {f"{part}.csv": _csv(header, lines)}, options

    return write


def _array(value: Any, what: str) -> np.ndarray[Any, Any]:
    """An array of what is all there."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        raise ValueError(f"{what} has masked numbers, which are missing; fill them in, or leave the rows out")
    return np.asarray(value)


def _vectors(value: Any, what: str) -> str:
    """A set of vectors as the program reads it."""
    array = _array(value, what)
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "iuf":
        raise ValueError(f"{what} is an array of {array.dtype} {list(array.shape)}; it wants vectors, [N, width]")
    return " ".join(",".join(repr(float(number)) for number in vector) for vector in array)


def _classify(part: str, data: Any, columns: Mapping[str, str] | None, name: str) -> tuple[Files, Options]:
    found = rows(data, FIELDS["classify"], columns, name)
    labels = _names([label for _, label in found], lambda at: f"label of row {at} of {name}")
    if _is_sound(found[0][0]):
        files, listed = _recordings(part, [sound for sound, _ in found], labels, name)
        options: Options = {"data.kind": "audio", f"data.{part}": _path(f"{part}.csv")}
        options |= {"data.text_column": "path", "data.label_column": "label"}
        return {**files, f"{part}.csv": _csv(("path", "label"), listed)}, options
    if isinstance(found[0][0], str):
        texts = [_text(text, f"text of row {at} of {name}") for at, (text, _) in enumerate(found)]
        lines = [list(row) for row in zip(labels, texts)]
        options = {f"data.{part}": _path(f"{part}.csv"), "data.label_column": "label", "data.text_column": "text"}
        return {f"{part}.csv": _csv(("label", "text"), lines)}, options
    for at, label in enumerate(labels):
        if "\t" in label or "\n" in label:
            raise ValueError(f"label of row {at} of {name} holds a tab or a new line")
    vectors = [_vectors(one, f"row {at} of {name}") for at, (one, _) in enumerate(found)]
    text = "".join(f"{label}\t{one}\n" for label, one in zip(labels, vectors))
    return {f"{part}.tsv": text.encode()}, {"data.kind": "vectors", f"data.{part}": _path(f"{part}.tsv")}


def _label(part: str, data: Any, columns: Mapping[str, str] | None, name: str) -> tuple[Files, Options]:
    text = []
    for at, (words, labels) in enumerate(rows(data, FIELDS["label"], columns, name)):
        if isinstance(words, str) or isinstance(labels, str):
            raise TypeError(f"row {at} of {name} has a text for its words or labels; it wants a list of either")
        words, labels = list(words), list(labels)
        if not words:
            raise ValueError(f"row {at} of {name} has no words")
        if len(words) != len(labels):
            raise ValueError(f"row {at} of {name} has {len(words)} words and {len(labels)} labels")
        for n, (word, label) in enumerate(zip(words, labels), 1):
            both = _text(word, f"a word of row {at} of {name}"), _name(label, f"a label of row {at} of {name}")
            for one in both:
                if not one.strip() or "\t" in one or "\n" in one or "\r" in one:
                    raise ValueError(f"row {at} of {name} has {one!r}; words and labels have no tab and no new line")
            text.append(f"{n}\t{both[0]}\t_\t{both[1]}" + "\t_" * 6 + "\n")
        text.append("\n")
    return {f"{part}.conllu": "".join(text).encode()}, {f"data.{part}": _path(f"{part}.conllu"), "data.column": "upos"}


def _answer(part: str, data: Any, columns: Mapping[str, str] | None, name: str) -> tuple[Files, Options]:
    paragraphs = []
    for at, (context, question, answers) in enumerate(rows(data, FIELDS["answer"], columns, name)):
        context = _text(context, f"context of row {at} of {name}")
        starts: Sequence[Any] = ()
        texts: Any = answers
        if isinstance(answers, Mapping):  # As SQuAD's at Hugging Face.
            texts, starts = answers["text"], list(answers.get("answer_start", ()))
        told = []
        for n, answer in enumerate([texts] if isinstance(texts, str) else list(texts)):
            answer = _text(answer, f"an answer of row {at} of {name}")
            start = int(starts[n]) if n < len(starts) else context.find(answer)
            if start < 0:
                raise ValueError(f"row {at} of {name}: the answer {answer[:60]!r} does not stand in its text")
            told.append({"text": answer, "answer_start": start})
        question = _text(question, f"question of row {at} of {name}")
        asked = {"id": str(at), "question": question, "answers": told, "is_impossible": not told}
        paragraphs.append({"context": context, "qas": [asked]})
    content = json.dumps({"version": "2.0", "data": [{"paragraphs": paragraphs}]}, ensure_ascii=False)
    return {f"{part}.json": content.encode()}, {f"data.{part}": _path(f"{part}.json")}


def _png(value: Any, what: str) -> tuple[bytes, bool]:
    """A picture as a PNG file, and whether it has colors."""
    if hasattr(value, "convert") and hasattr(value, "mode"):  # Pillow's
        if value.mode in ("I", "F") or value.mode.startswith("I;"):
            # Pillow clips these at 255, which turns pictures of 16 bits white.
            raise ValueError(
                f"{what} has Pillow's mode {value.mode!r}, whose numbers do not end at 255; "
                "scale it to 0 to 255, as an array of uint8"
            )
        value = value.convert("L" if value.mode in ("1", "L") else "RGB")
    array = _array(value, what)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3) or array.size == 0:
        raise ValueError(f"{what} has the shape {list(array.shape)}; it wants [height, width] or [height, width, 3]")
    if array.dtype != np.uint8:
        raise ValueError(f"{what} holds {array.dtype}; pixels are uint8, from 0 to 255")

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = array.shape[:2]
    color = array.ndim == 3
    lines = b"".join(b"\0" + np.ascontiguousarray(line).tobytes() for line in array)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if color else 0, 0, 0, 0)
    chunks = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines, 1)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks), color


def _image(part: str, data: Any, columns: Mapping[str, str] | None, name: str) -> tuple[Files, Options]:
    files: Files = {}
    options: Options = {f"data.{part}_folder": _path(part)}
    found = rows(data, FIELDS["image"], columns, name)
    digits = len(str(len(found)))
    labels = _names([label for _, label in found], lambda at: f"label of row {at} of {name}")
    for at, ((image, _), label) in enumerate(zip(found, labels)):
        if label.startswith(".") or label != label.strip() or not label or any(one in label for one in "/\\\0\n:"):
            raise ValueError(f"label of row {at} of {name} is {label!r}; it wants one that a folder may be called")
        files[f"{part}/{label}/{at:0{digits}}.png"], color = _png(image, f"image of row {at} of {name}")
        if color:
            options["data.color"] = True
    return files, options


def _captioned(part: str, data: Any, columns: Mapping[str, str] | None, name: str) -> tuple[Files, Options]:
    files: Files = {}
    listed = []
    for at, (image, sentence) in enumerate(rows(data, FIELDS["caption"], columns, name)):
        content, _ = _png(image, f"image of row {at} of {name}")
        # Of several sentences for one picture each is right.
        path = f"{part}/{hashlib.sha256(content).hexdigest()[:16]}.png"
        files[path] = content
        for one in [sentence] if isinstance(sentence, str) else list(sentence):
            listed.append([path, _text(one, f"sentence of row {at} of {name}")])
    files[f"{part}.csv"] = _csv(("path", "sentence"), listed)
    return files, {f"data.{part}": _path(f"{part}.csv"), "data.path_column": "path", "data.text_column": "sentence"}


def _is_sound(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, tuple) and len(value) == 2 and np.ndim(value[1]) == 0)


def _recordings(part: str, sounds: Sequence[Any], texts: Sequence[str], name: str) -> tuple[Files, list[list[str]]]:
    files: Files = {}
    listed = []
    digits = len(str(len(sounds)))
    for at, (sound, text) in enumerate(zip(sounds, texts)):
        if not _is_sound(sound):
            raise TypeError(f"audio of row {at} of {name} is {type(sound).__name__}; it wants (samples, rate)")
        samples, rate = (sound["array"], sound["sampling_rate"]) if isinstance(sound, Mapping) else sound
        wave = _array(samples, f"audio of row {at} of {name}")
        if isinstance(rate, bool) or not float(rate).is_integer() or rate < 1:
            raise ValueError(f"audio of row {at} of {name} has the rate {rate}; it wants a whole number of samples a second")
        is_sound = wave.ndim == 1 and wave.size > 0 and np.issubdtype(wave.dtype, np.floating)
        if not is_sound or not np.isfinite(wave).all():
            raise ValueError(f"audio of row {at} of {name} wants finite samples from -1 to 1 in one dimension")
        loudest = float(np.abs(wave).max())
        if loudest > 1.0:
            raise ValueError(
                f"audio of row {at} of {name} has the sample {loudest:.6g}; samples are from -1 to 1, whole numbers of 16 "
                "bits divided by 32768"
            )
        content = wave.astype("<f4").tobytes()
        head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 3, 1, int(rate), 4 * int(rate), 4, 32)
        body = head + struct.pack("<4sI", b"data", len(content)) + content
        path = f"{part}/{at:0{digits}}.wav"
        files[path] = struct.pack("<4sI4s", b"RIFF", 4 + len(body), b"WAVE") + body
        listed.append([path, text])
    return files, listed


def _transcribe(part: str, data: Any, columns: Mapping[str, str] | None, name: str) -> tuple[Files, Options]:
    found = rows(data, FIELDS["transcribe"], columns, name)
    texts = [_text(text, f"text of row {at} of {name}") for at, (_, text) in enumerate(found)]
    files, listed = _recordings(part, [sound for sound, _ in found], texts, name)
    files[f"{part}.csv"] = _csv(("path", "text"), listed)
    return files, {f"data.{part}": _path(f"{part}.csv"), "data.path_column": "path", "data.text_column": "text"}


def _regress(part: str, data: Any, columns: Mapping[str, str] | None, name: str) -> tuple[Files, Options]:
    table = named_columns(data)
    if table is not None and "features" not in table:
        # A frame: what is not the target is known.
        target = (columns or {}).get("target", "target" if "target" in table else list(table)[-1])
        if set(columns or {}) - {"target"} or target not in table:
            told = "columns={'target': NAME} says which one is predicted"
            raise ValueError(f"{name} has the columns {list(table)}; {told}")
        names = [*(one for one in table if one != target), target]
        known = np.column_stack([_numbers(table[one], f"column {one} of {name}") for one in names])
    else:
        found = rows(data, FIELDS["regress"], columns, name)
        features = np.stack([np.atleast_1d(_numbers(x, f"row {at} of {name}")) for at, (x, _) in enumerate(found)])
        target_column = _numbers([y for _, y in found], f"the targets of {name}")
        known = np.column_stack([features, target_column])
        names = [*(f"x{n + 1}" for n in range(known.shape[1] - 1)), "y"]
    if known.shape[1] < 2:
        raise ValueError(f"{name} has one column; a target and the features it is predicted from were expected")
    bad = np.argwhere(~np.isfinite(known))
    if bad.size:
        raise ValueError(f"row {bad[0][0]} of {name} has {known[tuple(bad[0])]} as {names[bad[0][1]]}")
    lines = [[repr(float(number)) for number in row] for row in known]
    return {f"{part}.csv": _csv(names, lines)}, {f"data.{part}": _path(f"{part}.csv")}


def _numbers(values: Any, what: str) -> np.ndarray[Any, Any]:
    array = _array(values, what)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{what}: {array.dtype} are no numbers")
    return array.astype(np.float64)


def _graph(part: str, data: Any, columns: Mapping[str, str] | None, name: str) -> tuple[Files, Options]:
    if part != "train" or columns:
        raise ValueError("a graph has its parts in train_mask, val_mask and test_mask, and no columns")

    def of(key: str) -> Any:
        found = data.get(key) if isinstance(data, Mapping) else getattr(data, key, None)
        return None if found is None else np.asarray(found)

    x, edges, y = (of(key) for key in FIELDS["graph"])
    if x is None or edges is None or y is None:
        raise TypeError(f"data is {type(data).__name__}; it wants x, edge_index and y, as PyG's Data has them")
    if x.ndim != 2 or edges.ndim != 2 or edges.shape[0] != 2 or y.shape != x.shape[:1]:
        told = f"x {list(x.shape)}, edge_index {list(edges.shape)}, y {list(y.shape)}"
        raise ValueError(f"{told}; they want [N, D], [2, E], [N]")
    x = _numbers(x, "x")
    if not np.isfinite(x).all():
        raise ValueError("x holds a number that is not finite")
    if edges.dtype.kind not in "iu":
        raise ValueError(f"edge_index is {edges.dtype}; it wants whole numbers")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y holds a number that is not finite")
    masks = _masks(of, len(x))
    pairs = {(int(a), int(b)) for a, b in edges.T}
    if len(pairs) < edges.shape[1]:
        warnings.warn(f"edge_index has {edges.shape[1] - len(pairs)} edges more than once; each counts once", stacklevel=5)
    one_way = next(((a, b) for a, b in sorted(pairs) if (b, a) not in pairs), None)
    if one_way is not None:
        raise ValueError(
            f"edge_index has an edge from {one_way[0]} to {one_way[1]} and none back; graphs are read as undirected: "
            "torch_geometric.utils.to_undirected makes them so"
        )
    if of("edge_attr") is not None or of("edge_weight") is not None:
        raise ValueError("edge_attr and edge_weight are not taken from memory; files have them (edges.tsv)")
    nodes = []
    for node, features in enumerate(x):
        there = [f"{n}:{number!r}" for n, number in enumerate(features.tolist()) if number != 0 or n == x.shape[1] - 1]
        label = _name(y[node], f"y of node {node}")
        if label.split() != [label]:
            raise ValueError(f"y of node {node} is {label!r}; a label of a node has no blanks")
        nodes.append(" ".join([label, *there]) + "\n")
    files: Files = {"nodes.svm": "".join(nodes).encode()}
    files["edges.tsv"] = "".join(f"{a}\t{b}\n" for a, b in sorted(pairs) if a <= b).encode()
    if masks:
        lines = [f"{one}\t{node}\n" for one, mask in masks.items() for node in np.flatnonzero(mask)]
        files["split.tsv"] = "".join(lines).encode()
    return files, {"data.folder": _path("")}


def _masks(of: Callable[[str], Any], nodes: int) -> dict[str, Any]:
    """The nodes of each part, as truths; nothing where no part is given."""
    found = {one: of(f"{one}_mask") for one in ("train", "val", "test")}
    given = {one: mask for one, mask in found.items() if mask is not None}
    for one, mask in given.items():
        if mask.dtype != np.bool_ or mask.shape != (nodes,):
            raise ValueError(f"{one}_mask is {mask.dtype} {list(mask.shape)}; it wants a truth for each of {nodes} nodes")
    if given and "train" not in given:
        raise ValueError(f"{' and '.join(f'{one}_mask' for one in given)} was given, and no train_mask")
    return given


_WRITERS: dict[str, Callable[..., tuple[Files, Options]]] = {
    "classify": _classify,
    "translate": _pairs("pairs", ("source", "target"), ("source", "target")),
    "summarize": _pairs("pairs", ("source", "target"), ("text", "summary")),
    "label": _label,
    "answer": _answer,
    "image": _image,
    "caption": _captioned,
    "draw": _captioned,
    "transcribe": _transcribe,
    "regress": _regress,
    "graph": _graph,
}
