"""Odd data in memory: what is learned or asked is what was given, or it is refused in a sentence that names it."""

import itertools

import numpy as np
import pandas
import pytest
import regard
import torch
from regard.records import rows
from regard.written import written

TEXT = ("text", "label")
FRAME = pandas.DataFrame({"text": ["a", "b", "c"], "label": [0, 1, 0]})
EXPECTED = [("a", 0), ("b", 1), ("c", 0)]
SAME = {
    "an index that repeats": lambda: (FRAME.set_index(pandas.Index([5, 5, 5])), None),
    "nullable columns": lambda: (FRAME.convert_dtypes(), None),
    "categories": lambda: (FRAME.astype({"text": "category", "label": "category"}), None),
    "columns with numbers for names": lambda: (FRAME.set_axis([0, 1], axis=1), {"text": 0, "label": 1}),
    "columns of two levels": lambda: (
        FRAME.set_axis(pandas.MultiIndex.from_product([["x"], TEXT]), axis=1),
        {"text": ("x", "text"), "label": ("x", "label")},
    ),
    "records": lambda: (FRAME.to_dict("records"), None),
    "lists": lambda: (FRAME.to_dict("list"), None),
    "tensors": lambda: ({"text": ["a", "b", "c"], "label": torch.tensor([0, 1, 0])}, None),
    "a masked array without masked values": lambda: (
        {"text": ["a", "b", "c"], "label": np.ma.masked_array([0, 1, 0], [False] * 3)},
        None,
    ),
}


def test_every_odd_frame_gives_the_rows_that_it_has():
    for name, make in SAME.items():
        data, columns = make()
        assert rows(data, TEXT, columns) == EXPECTED, name
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for data in (polars.DataFrame(FRAME), arrow.Table.from_pandas(FRAME), arrow.RecordBatch.from_pandas(FRAME)):
        assert rows(data, TEXT) == EXPECTED
    assert len(SAME) == 9


EYE = {"x": np.eye(3), "edge_index": np.array([[0, 1], [1, 0]]), "y": np.array([0, 1, 0])}
WAVE = np.zeros(9, np.float32)
#: A task, what it is given, and what the refusal says.
REFUSED = [
    ("classify", FRAME.to_dict(), "column text is dict"),
    ("classify", {"text": "abc", "label": [0, 1, 0]}, "column text is str"),
    ("classify", {"text": {"a", "b"}, "label": [0, 1]}, "column text is set"),
    ("classify", {"text": ["a"], "label": 1}, "column label is int"),
    ("classify", pandas.DataFrame([["a", "x", 0], ["b", "y", 1]], columns=["text", "text", "label"]), "one name twice"),
    ("classify", {"text": ["a", "b"], "label": [np.float32("nan"), 1]}, "row 0 of data has no label"),
    ("classify", {"text": ["a", "b"], "label": pandas.Categorical(["x", None])}, "row 1 of data has no label"),
    ("classify", {"text": ["a", "b"], "label": np.ma.masked_array([0, 1], [False, True])}, "row 1 of data has no label"),
    *(
        ("classify", {"text": ["a", "b"], "label": list(labels)}, "labels want one type")
        for labels in itertools.permutations([1, 1.0, "1", True], 2)
    ),
    ("image", (np.zeros((2, 4, 4), np.uint8), [1, "1"]), "labels want one type"),
    ("classify", [((WAVE, 8000.5), "a")], "rate 8000.5"),
    ("classify", [((WAVE, 0), "a")], "rate 0"),
    ("transcribe", [((WAVE, -8000), "a")], "rate -8000"),
    ("classify", [(np.ma.masked_array(np.eye(2), np.eye(2)), "a")], "masked numbers"),
    ("regress", pandas.DataFrame({"x": [1.5, 2.5], "y": [1.0, 2.0]}).to_dict(), "column x is dict"),
    ("regress", (np.ma.masked_array(np.eye(2), np.eye(2)), np.ones(2)), "masked numbers"),
    ("regress", (np.array([[1, 2], [3, 4]], "m8[s]"), np.ones(2)), "are no numbers"),
    ("regress", pandas.DataFrame([[1, 2, 3.0]], columns=["x", "x", "y"]), "one name twice"),
    ("label", [("abc", "xyz")], "a text for its words"),
    ("label", [([], [])], "has no words"),
    ("graph", {**EYE, "edge_index": np.array([[0.5, 1], [1, 0.5]])}, "edge_index is float64"),
    ("graph", {**EYE, "y": np.array([0, np.nan, 1])}, "not finite"),
    *(
        ("graph", {**EYE, "train_mask": np.ones(3, bool), f"{part}_mask": mask}, f"{part}_mask is")
        for part in ("train", "val", "test")
        for mask in (np.array([0, 1, 2]), np.array([0, 1]), np.ones((3, 2), bool), np.ones(4, bool))
    ),
    ("graph", {**EYE, "val_mask": np.ones(3, bool)}, "no train_mask"),
]


def test_data_that_would_be_read_as_something_else_are_refused_by_name(tmp_path):
    for task, data, match in REFUSED:
        with pytest.raises((TypeError, ValueError), match=match):
            written(task, {"train": data}, None, tmp_path)
    assert len(REFUSED) == 46
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    x = np.random.default_rng(0).normal(size=(60, 2))
    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "t": 3 * x[:, 0]})
    run = regard.train("regress", frame, epochs=2, out=tmp_path_factory.mktemp("frames") / "run", progress=False)
    return run, frame[:4]


def answers(run, inputs):
    return [answer.output for answer in run.predict(inputs)]


def test_the_columns_of_a_frame_are_asked_by_their_names(regression):
    run, frame = regression
    expected = answers(run, frame[["a", "b"]].to_numpy())
    polars = pytest.importorskip("polars")
    for inputs in (frame[["a", "b"]], frame[["b", "a"]], frame, frame.assign(note="x")[["note", "t", "b", "a"]]):
        assert answers(run, inputs) == expected
        assert answers(run, polars.DataFrame(inputs)) == expected
    for wrong in (frame[["a"]], frame[["a", "t"]], frame.set_axis([0, 1, 2], axis=1)[[0, 1]], frame[["a", "b", "a"]]):
        with pytest.raises(ValueError, match=r"learned from \['a', 'b'\]"):
            run.predict(wrong)
    with pytest.raises(ValueError, match="missing"):
        run.predict([float("nan")])


def test_a_frame_asks_a_model_of_an_array_by_place(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2))
    run = regard.train("regress", (x, x.sum(1)), epochs=1, out=tmp_path / "run", progress=False)
    for names in (["p", "q"], [0, 1]):
        assert answers(run, pandas.DataFrame(x[:3], columns=names)) == answers(run, x[:3])
    swapped = pandas.DataFrame(x[:3], columns=["x1", "x2"])[["x2", "x1"]]
    assert answers(run, swapped) == answers(run, x[:3])


def test_one_input_is_not_taken_for_several(tmp_path):
    data = (["a good film", "a bad film"] * 15, ["good", "bad"] * 15)
    run = regard.train("classify", data, epochs=1, out=tmp_path / "run", progress=False)
    assert run.predict_proba(pandas.Series(["a film"], index=[7])).shape == (1, 2)
    for wrong, match in (
        ("good", "one input"),
        (b"good", "bytes"),
        (None, "NoneType"),
        (3, "one input"),
        ({"a", "b"}, "set"),
        (pandas.DataFrame({"text": ["a"]}), "of columns"),
    ):
        with pytest.raises(TypeError, match=match):
            run.predict_proba(wrong)
    for wrong in (b"good", None, {"a", "b"}, pandas.DataFrame({"text": ["a"]})):
        with pytest.raises(TypeError):
            run.predict(wrong)
    with pytest.raises(ValueError, match="missing"):
        run.predict(["a film", float("nan")])
