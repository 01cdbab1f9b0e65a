"""Training on data that lie in memory: what is given is what is learned, or it is refused in a sentence."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pandas
import pytest
import regard
from regard.records import rows
from regard.written import written

QUICK = {"epochs": 1, "progress": False}
random = np.random.default_rng(0)
TEXTS = ['a fine film, "really"\nwith a new line', "a dull\tfilm"] * 30
LABELS = ["good", "bad"] * 30
SOUNDS = [((np.sin(np.arange(4000) * 0.1 * (1 + n % 2)) * 0.5).astype(np.float32), 8000) for n in range(20)]
GRAY = random.integers(0, 255, (40, 12, 12), dtype=np.uint8)
COLOR = random.integers(0, 255, (40, 16, 16, 3), dtype=np.uint8)
CLASSES = np.arange(40) % 4
EDGES = np.array([[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]])
X = random.normal(size=(8, 4))
MASKS = {"train_mask": np.arange(8) < 4, "val_mask": np.arange(8) // 2 == 2, "test_mask": np.arange(8) >= 6}


class Dataset:
    """As a dataset of Hugging Face is read: columns by their names."""

    def __init__(self, columns):
        self._columns = columns
        self.column_names = list(columns)

    def __getitem__(self, name):
        return self._columns[name]


class Picture:
    """As a picture of Pillow's is read."""

    def __init__(self, array, mode="RGBA"):
        self._array, self.mode = array, mode

    def convert(self, mode):
        assert mode == "RGB"
        return self._array


class Graph:
    """As PyG's `Data` is read."""

    def __init__(self, **given):
        self.__dict__.update(given)


PAIRS = list(zip(TEXTS, LABELS))
GIVEN = {
    "columns": (TEXTS, LABELS),
    "rows": PAIRS,
    "lists": [list(row) for row in PAIRS],
    "iterator": iter(PAIRS),
    "dictionaries": [{"label": label, "text": text, "id": 3} for text, label in PAIRS],
    "generator": ({"text": text, "label": label} for text, label in PAIRS),
    "dictionary": {"text": TEXTS, "label": np.array(LABELS)},
    "frame": pandas.DataFrame({"label": LABELS, "text": TEXTS}),
    "series": (pandas.Series(TEXTS), pandas.Series(LABELS).astype("category")),
    "arrays": (np.array(TEXTS), np.array(LABELS)),
    "dataset": Dataset({"text": TEXTS, "label": LABELS}),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_every_kind_of_data_is_the_same_data(kind, tmp_path):
    run = regard.train("classify", GIVEN[kind], out=tmp_path / "run", **QUICK)
    assert sorted(run.classes) == ["bad", "good"]
    assert run.evaluate().examples == 6
    # Under a name of their content: all kinds have written the same, once.
    (folder,) = (tmp_path / "data").iterdir()
    written("classify", {"train": PAIRS}, None, tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == [folder]
    with open(folder / "train.csv", newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == [{"label": label, "text": text} for text, label in PAIRS]


def images(kind):
    return {"image": list(kind), "label": CLASSES}


CASES = [
    ("classify", ([random.normal(size=(5, 3)) for _ in range(40)], CLASSES), {}),
    ("classify", (SOUNDS, LABELS[:20]), {}),
    ("classify", [({"array": samples, "sampling_rate": rate}, n % 2) for n, (samples, rate) in enumerate(SOUNDS)], {}),
    ("transcribe", (SOUNDS, ["one two"] * 20), {}),
    ("translate", [("hi there", "hallo du")] * 30, {}),
    ("translate", pandas.DataFrame({"en": ["hi"] * 20, "de": ["hallo"] * 20}), {"columns": {"source": "en", "target": "de"}}),
    ("summarize", {"text": ["a long text about a cat"] * 30, "summary": ["a cat"] * 30}, {}),
    ("label", [(["#", "-DOCSTART-", "a", "b c"], ["P", "X", "D", "N"])] * 30, {}),
    ("label", Dataset({"words": [["a", "b"]] * 30, "labels": [np.array([0, 1])] * 30}), {}),
    (
        "answer",
        [
            {"context": "Mary left. John came.", "question": "Who left?", "answers": {"text": ["Mary"], "answer_start": [0]}},
            {"context": "Mary left. John came.", "question": "Who came?", "answers": "John"},
            {"context": "Mary left. John came.", "question": "Who sang?", "answers": []},
        ]
        * 10,
        {"model": "reader"},
    ),
    ("image", (GRAY, CLASSES), {}),
    ("image", images(COLOR), {"image_size": 16}),
    ("image", ([Picture(one) for one in COLOR], CLASSES), {}),
    ("image", (GRAY[..., None], CLASSES.astype(str)), {}),
    ("caption", [(one, "a red thing") for one in COLOR], {"image_size": 16}),
    ("caption", [(one, ["a red thing", "a thing"]) for one in COLOR], {"image_size": 16}),
    ("draw", (COLOR, ["a red thing"] * 40), {"image_size": 16, "patch_size": 4}),
    ("regress", (np.linspace(0, 1, 50), np.linspace(0, 1, 50) ** 2), {}),
    ("regress", (random.normal(size=(50, 3)), random.normal(size=50)), {}),
    ("regress", pandas.DataFrame({"price": np.arange(50.0), "a": np.arange(50), "b": True}), {"columns": {"target": "price"}}),
    ("graph", Graph(x=X, edge_index=EDGES, y=np.arange(8) % 2, **MASKS), {}),
    ("graph", {"x": X, "edge_index": EDGES, "y": np.arange(8) % 2}, {"labeled": 1}),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)])
def test_every_task_learns_from_memory_and_its_run_stands_on_its_own(case, tmp_path, monkeypatch):
    task, data, more = case
    out = tmp_path / "runs" / "mine"
    os.makedirs(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    run = regard.train(task, data, out="runs/mine", **QUICK, **more)
    assert run.task == task
    # From another folder too, and further.
    monkeypatch.chdir(tmp_path / "elsewhere")
    run = regard.train(resume=out, epochs=2, progress=False)
    assert len(run.metrics) == 2
    part = "test" if task != "graph" or not isinstance(data, dict) else "validation"
    assert run.evaluate(part).examples > 0


def test_no_task_is_left_out():
    assert {task for task, *_ in CASES} == set(regard.tasks())


def test_parts_are_those_that_are_given(tmp_path):
    data = {"train": (TEXTS, LABELS), "validation": (TEXTS[:8], LABELS[:8]), "test": (TEXTS[:4], LABELS[:4])}
    for n, run in enumerate(
        [
            regard.train("classify", data, out=tmp_path / "together", **QUICK),
            regard.train(
                "classify", data["train"], validation=data["validation"], test=data["test"], out=tmp_path / "one", **QUICK
            ),
        ]
    ):
        found = [run.evaluate(part).examples for part in ("training", "validation", "test")]
        assert found == [60, 8, 4], n


def test_probabilities_are_those_of_the_predictions(tmp_path):
    run = regard.train("classify", (TEXTS, LABELS), out=tmp_path / "run", **QUICK)
    asked = ["a fine film", "a dull film", "film"]
    found = run.predict_proba(asked)
    assert found.shape == (3, 2) and np.allclose(found.sum(1), 1)
    for row, answer in zip(found, run.predict(asked)):
        assert run.classes[row.argmax()] == answer.output
        assert dict(zip(run.classes, row)) == answer.details["probabilities"]
    other = regard.train("regress", (np.arange(20.0), np.arange(20.0)), out=tmp_path / "other", **QUICK)
    with pytest.raises(TypeError, match="does not choose one of several labels"):
        other.predict_proba([0.5])


def test_what_lies_in_memory_is_predicted_as_the_file_of_it_is(tmp_path):
    run = regard.train("image", (COLOR, CLASSES), image_size=16, out=tmp_path / "images", **QUICK)
    folder = next((tmp_path / "data").glob("*/train/2"))
    for path in sorted(folder.iterdir())[:3]:
        array, expected = COLOR[int(path.stem)], run.predict(path)
        for given in (array, Picture(array)):
            (found,) = run.predict([given])
            assert (found.output, found.details) == (expected.output, expected.details)
        assert run.predict(Picture(array)).details == expected.details
    assert np.array_equal(run.predict_proba(COLOR[:2]), run.predict_proba([COLOR[0], COLOR[1]]))
    weights = next(iter(run.attention(COLOR[0]).values())).weights
    assert np.array_equal(weights, next(iter(run.attention(Picture(COLOR[0])).values())).weights)
    assert "picture.png" in run.show(COLOR[0]).html

    run = regard.train("classify", (SOUNDS, LABELS[:20]), out=tmp_path / "sounds", **QUICK)
    (path,) = (tmp_path / "data").glob("*/train/03.wav")
    samples, rate = SOUNDS[3]
    expected = run.predict(path).details
    assert run.predict((samples, rate)).details == expected == run.predict({"array": samples, "sampling_rate": rate}).details
    assert run.predict([SOUNDS[3], SOUNDS[4]])[0].details == expected


def test_points_come_as_an_array_a_frame_or_tuples(tmp_path):
    points = random.normal(size=(50, 3))
    run = regard.train("regress", (points, points.sum(1)), out=tmp_path / "run", **QUICK)
    expected = run.predict([tuple(point) for point in points])
    assert run.predict(points) == expected == run.predict(pandas.DataFrame(points))
    assert run.predict(points.astype(np.float32))[0].output != ""
    many = np.tile(points, (200, 1))
    assert [one.output for one in run.predict(many)] == [one.output for one in expected] * 200


ASKED = [
    ("image", [GRAY[0] / 255], "holds float64; pixels are uint8"),
    ("image", GRAY[0], "it wants [height, width]"),
    ("image", [0.5], "an input is float; it wants a path, a picture"),
    ("classify", [GRAY[0]], "an input is an array of uint8 [12, 12]; it wants a text"),
    ("classify", pandas.DataFrame({"text": TEXTS}), "frame[NAME], is inputs"),
    ("regress", [np.ones((2, 2))], "an input is an array of float64 [2, 2]; it wants a number"),
    ("regress", np.ones((2, 3)), "input 0 ('1.0,1.0,1.0'): `1.0,1.0,1.0` is not one number"),
]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    place = tmp_path_factory.mktemp("asked")
    data = {"image": (GRAY, CLASSES), "classify": PAIRS, "regress": (np.arange(20.0), np.arange(20.0))}
    return {task: regard.train(task, one, out=place / task, **QUICK) for task, one in data.items()}


@pytest.mark.parametrize("case", ASKED, ids=range(len(ASKED)))
def test_what_a_model_does_not_read_is_refused(case, asked):
    task, given, said = case
    with pytest.raises((TypeError, ValueError)) as refused:
        asked[task].predict(given)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_section_of_options_is_no_data(tmp_path):
    run = regard.train("classify", data={"size": 50}, out=tmp_path / "run", **QUICK)
    assert run.config["data"]["size"] == 50
    files = tmp_path / "train.tsv"
    files.write_text("".join(f"{label}\t{n} words\n" for n, label in enumerate(LABELS)))
    run = regard.train("classify", data={"train": files}, out=tmp_path / "files", **QUICK)
    assert Path(run.config["data"]["train"]) == files
    assert not (tmp_path / "data").exists()


REFUSED = [
    ("classify", pandas.DataFrame({"a": ["x"], "b": ["y"]}), {}, "no column 'text', it has ['a', 'b']"),
    ("classify", PAIRS, {"columns": {"words": "text"}}, "the fields are ['text', 'label']"),
    ("classify", (["x"], ["y", "z"]), {}, "columns of several lengths: 1 of text, 2 of label"),
    ("classify", [("x", None)], {}, "row 0 of data has no label"),
    ("classify", [("x", float("nan"))], {}, "row 0 of data has no label"),
    ("classify", pandas.DataFrame({"text": ["x", pandas.NA], "label": ["y", "z"]}), {}, "row 1 of data has no text"),
    ("classify", [("x", "y"), ("x",)], {}, "row 1 of data is"),
    ("classify", [{"text": "x"}], {}, "row 0 of data has no 'label'"),
    ("classify", [("x", "y"), (3, "y")], {}, "text of row 1 of data is int"),
    ("classify", [("x", ["y"])], {}, "label of row 0 of data is list"),
    ("classify", 7, {}, "data is int"),
    ("classify", "train.tsv", {}, "data is str"),
    ("classify", [], {}, "data has no rows"),
    ("classify", [(np.ones(3), "y")], {}, "it wants vectors"),
    ("classify", [("same", "one")] * 10, {}, "all 8 training examples have the label `one`"),
    ("classify", PAIRS, {"train": "a.tsv"}, "the option data.train too"),
    ("classify", PAIRS, {"resume": "run"}, "a run that is resumed has its data"),
    ("classify", None, {"test": PAIRS}, "no data to learn"),
    ("classify", None, {"columns": {"text": "a"}}, "no data are given"),
    ("classify", {"train": PAIRS}, {"test": PAIRS}, "data has parts"),
    ("translate", [("a", 3)], {}, "target of row 0 of data is int"),
    ("label", [(["a"], ["b", "c"])], {}, "1 words and 2 labels"),
    ("label", [(["a\tb"], ["c"])], {}, "'a\\tb'"),
    ("answer", [("text", "question", "nowhere")], {}, "does not stand in its text"),
    ("image", (GRAY / 255, CLASSES), {}, "pixels are uint8"),
    ("image", (GRAY[0], CLASSES[:12]), {}, "it wants [height, width]"),
    ("image", ([GRAY[0]], ["a/b"]), {}, "a folder may be called"),
    ("image", ([Picture(GRAY[0], "I;16")], ["a"]), {}, "mode 'I;16', whose numbers do not end at 255"),
    ("image", ([Picture(GRAY[0], "I")], ["a"]), {}, "mode 'I'"),
    ("image", ([Picture(GRAY[0], "F")], ["a"]), {}, "mode 'F'"),
    ("transcribe", [((np.array([0.5, -1.5]), 8000), "one")], {}, "row 0 of data has the sample 1.5; samples are from -1 to 1"),
    ("transcribe", [(np.ones(5), "one")], {}, "it wants (samples, rate)"),
    ("transcribe", [((np.array([1, 2]), 8000), "one")], {}, "finite samples"),
    ("regress", (["a", "b"], [1, 2]), {}, "are no numbers"),
    ("regress", (np.array([1.0, np.inf]), [1, 2]), {}, "row 1 of data has inf as x1"),
    ("regress", pandas.DataFrame({"y": [1.0, 2.0]}), {}, "one column"),
    ("graph", {"x": X, "edge_index": EDGES[:, :1], "y": np.arange(8)}, {}, "graphs are read as undirected"),
    ("graph", {"x": X, "edge_index": EDGES, "y": np.arange(7)}, {}, "they want [N, D], [2, E], [N]"),
    ("graph", Graph(x=X, edge_index=EDGES, y=np.arange(8), edge_attr=X), {}, "edge_attr and edge_weight"),
    ("graph", [1, 2], {}, "it wants x, edge_index and y"),
    ("paint", PAIRS, {}, "paint"),
]


@pytest.mark.parametrize("case", REFUSED, ids=[f"{n}-{case[0]}" for n, case in enumerate(REFUSED)])
def test_what_cannot_be_meant_is_refused_in_one_sentence(case, tmp_path):
    task, data, more, said = case
    place = {} if "resume" in more else {"out": tmp_path / "run"}
    with pytest.raises((TypeError, ValueError)) as refused:
        regard.train(task, data, **place, **QUICK, **more)
    assert said in str(refused.value), str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_columns_of_other_names_are_data_and_no_section_of_options(tmp_path):
    given = {"review": TEXTS, "stars": LABELS}
    run = regard.train("classify", given, columns={"text": "review", "label": "stars"}, out=tmp_path / "run", **QUICK)
    assert sorted(run.classes) == ["bad", "good"]
    with pytest.raises(ValueError, match="no column 'label'"):
        regard.train("classify", given, columns={"text": "review"}, out=tmp_path / "other", **QUICK)


@pytest.mark.parametrize("package", ["polars", "datasets"])
def test_frames_of_polars_and_datasets_of_hugging_face_hold_the_same_rows(package):
    found = pytest.importorskip(package)
    columns = {"label": LABELS, "text": TEXTS}
    data = found.DataFrame(columns) if package == "polars" else found.Dataset.from_dict(columns)
    assert rows(data, ["text", "label"]) == PAIRS
    with pytest.raises(ValueError, match="no column 'summary'"):
        rows(data, ["text", "summary"])


def test_edges_that_are_there_twice_are_said_to_count_once(tmp_path):
    graph = Graph(x=X, edge_index=np.concatenate([EDGES, EDGES[:, :2]], 1), y=np.arange(8) % 2, **MASKS)
    with pytest.warns(UserWarning, match="2 edges more than once; each counts once") as told:
        regard.train("graph", graph, out=tmp_path / "run", **QUICK)
    assert any(one.filename == __file__ for one in told)


def test_tasks_and_options_are_told():
    assert len(regard.tasks()) == 11
    for task in regard.tasks():
        assert regard.options(task, epochs=7)["training"]["epochs"] == 7
    with pytest.raises(ValueError, match="paint"):
        regard.options("paint")
    assert json.dumps(regard.options("classify"))
