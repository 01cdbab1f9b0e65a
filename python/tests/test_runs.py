"""Runs from Python: trained, loaded, asked, measured, looked at."""

import builtins
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import regard

SMALL = dict(size=200, epochs=2, hidden=16, embedding=16, score_hidden=16, progress=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "translate"
    regard.train("translate", out=place, **SMALL)
    return place


@pytest.fixture
def run(folder):
    return regard.load(folder)


def test_a_run_knows_its_task_its_options_and_its_epochs(run, folder):
    assert run.task == "translate"
    assert run.folder == str(folder)
    assert run.config["training"]["epochs"] == 2 and run.config["model"]["hidden"] == 16
    metrics = run.metrics
    assert list(metrics["epoch"]) == [1, 2]
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert list(metrics["training_loss"]) == [line["loss"] for line in lines]
    assert list(metrics["perplexity"]) == [dict(line["validation"]["values"])["perplexity"] for line in lines]


def test_metrics_are_rows_where_pandas_is_missing(run, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    rows = run.metrics
    assert isinstance(rows, list) and rows[1]["epoch"] == 2


def test_predictions_come_one_by_one_and_side_by_side(run):
    one = run.predict("I see a bird")
    assert isinstance(one, regard.Prediction) and one.input == "I see a bird" and str(one) == one.output
    many = run.predict(["I see a bird", "", "the garden"])
    assert [answer.input for answer in many] == ["I see a bird", "", "the garden"]
    assert many[0].output == one.output and many[1].output == ""
    assert run.predict([]) == []
    assert run.predict(np.array(["I see a bird"]))[0].output == one.output


def test_attention_is_arrays_by_name_whose_rows_are_weights(run):
    scenes = run.attention("I see a bird")
    scene = scenes["alignment"]
    assert scene.weights.dtype == np.float32
    assert scene.weights.shape == (len(scene.heads), len(scene.rows), len(scene.columns))
    assert "bird" in scene.columns
    np.testing.assert_allclose(scene.weights.sum(-1), 1, atol=1e-5)
    assert np.array_equal(scene[scene.heads[0]], scene.weights[0])
    with pytest.raises(KeyError):
        scene["no such head"]


def test_show_draws_itself_as_the_page_of_show(run, tmp_path):
    page = run.show("I see a bird")
    assert page.html.startswith("<!DOCTYPE html>") and "bird" in page.html
    assert page._repr_html_().startswith('<iframe sandbox="allow-scripts" srcdoc=')
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.html
    page.save(tmp_path / "PAGE.SVG")
    assert (tmp_path / "PAGE.SVG").read_text() == page.svg and page.svg.startswith("<svg")
    with pytest.raises(ValueError, match="there is no scene `other`; there are: alignment"):
        run.show("I see a bird", scene="other")


def test_a_report_has_measures_outputs_and_samples(run):
    report = run.evaluate("validation")
    assert report.scores["perplexity"] == pytest.approx(list(run.metrics["perplexity"])[-1], rel=1e-5)
    assert report.examples == len(report.outputs) > 0
    assert len(report.samples[0]) == 3


def test_changes_compose_and_an_identity_changes_nothing(run):
    text = "she is drawing a bird"
    plain = run.predict(text)
    assert run.predict(text, changes=[regard.change.temperature(1.0)]).output == plain.output
    changes = [regard.change.forbid("cross", 0), regard.change.temperature(3.0)]
    changed = run.predict(text, changes=changes)
    assert changed.details["score"] != plain.details["score"]
    weights = run.attention(text, changes=changes)["alignment"].weights
    assert (weights[..., 0] == 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    # Both, one after the other, are what the operator makes of scores divided by 3 without the first.
    hot = run.attention(text, changes=changes[1:])["alignment"].weights[0, 0]
    np.testing.assert_allclose(weights[0, 0, 1:], hot[1:] / hot[1:].sum(), rtol=1e-4)
    assert run.predict([text, text], changes=changes) == [changed, changed]
    assert run.predict(text) == plain
    off = run.predict(text, changes=[regard.change.off("cross")])
    assert off.details["score"] != plain.details["score"]


def test_a_head_is_put_from_another_input(tmp_path):
    run = regard.train("label", out=tmp_path / "run", size=60, epochs=1, encoder="transformer", progress=False)
    scenes = [run.attention(f"test:{at}")["self-attention"] for at in range(20)]
    a, b = next(
        (one, other)
        for one in range(20)
        for other in range(one)
        if scenes[one].weights.shape == scenes[other].weights.shape
    )

    def put(other):
        changes = [regard.change.patch("encoder", 0, 1, f"test:{other}", "attention")]
        return run.attention(f"test:{a}", changes=changes)["self-attention"].weights

    np.testing.assert_allclose(put(a), scenes[a].weights, atol=1e-6)
    np.testing.assert_allclose(put(b)[1], scenes[b].weights[1], atol=1e-6)
    np.testing.assert_allclose(put(b)[0], scenes[a].weights[0], atol=1e-6)


def test_heads_have_a_worth_and_something_they_do(run, folder):
    found = run.ablate("validation")
    whole = run.evaluate("validation")
    assert found.whole == next(iter(whole.scores.values())) and found.examples == whole.examples
    assert [(row["site"], row["layer"], row["head"]) for row in found.heads] == [("cross", 0, 0)]
    assert found.map("cross").shape == (1, 1) and np.isfinite(found.map("cross", "zero")).all()
    assert (folder / "ablation.json").exists() and run.ablate("validation") == found
    [head] = run.heads("validation")
    assert head["site"] == "cross" and head["sentence"] and head["strongest"] and head["alike"] == []


def test_what_matters_is_told_in_several_ways_and_tried(run):
    text = "I see a bird"
    found = run.saliency(text, "integrated-gradients", faithfulness=True)
    assert found.values.sum() == pytest.approx(found.difference, rel=0.03, abs=0.03)
    assert len(found.names) == len(found.values) and found.ranked()[0][1] == found.values.max()
    curve = found.faithfulness["most"]["scores"]
    assert found.difference == pytest.approx(curve[0] - curve[-1], abs=1e-4)
    # The area is the mean fall, by the trapezoidal rule of NumPy.
    trapezoid = getattr(np, "trapezoid", None) or np.trapz
    area = trapezoid(curve[0] - np.array(curve), found.faithfulness["removed"])
    assert found.faithfulness["most"]["area"] == pytest.approx(area)
    weights = run.saliency(text, "attention")
    assert weights.values.sum() == pytest.approx(1, abs=1e-4) and weights.faithfulness is None
    off = run.saliency(text, "attention", changes=[regard.change.forbid("cross", 0)])
    assert off.values[0] == 0 and weights.values[0] > 0
    areas = run.attribution("validation", examples=2)
    assert [one["method"] for one in areas["methods"]][:2] == ["gradient-input", "integrated-gradients"]
    assert areas["examples"] == 2 and areas["methods"][0]["refused"] is None
    with pytest.raises(ValueError, match="self-attention"):
        run.saliency(text, "rollout")
    with pytest.raises(ValueError, match="there is no method `gradients`"):
        run.saliency(text, "gradients")
    with pytest.raises(ValueError, match="`examples` cannot be 0"):
        run.attribution(examples=0)


def test_parameters_go_to_pytorch_and_back(run, tmp_path):
    torch = pytest.importorskip("torch")
    before = run.predict("I see a bird").details
    state = {name: torch.from_numpy(array) for name, array in run.parameters.items()}
    assert sum(x.numel() for x in state.values()) == sum(np.prod(run.parameters[name].shape) for name in state)
    run.parameters.update({name: x * 0 for name, x in state.items()})
    assert all(not run.parameters[name].any() for name in run.parameters)
    assert run.predict("I see a bird").details != before
    run.parameters.update({name: x.requires_grad_() for name, x in state.items()})
    assert run.predict("I see a bird").details == before
    path = tmp_path / "weights.safetensors"
    run.save_parameters(path)
    other = regard.train("translate", out=tmp_path / "other", init_from=path, **{**SMALL, "epochs": 1, "rate": 1e-12})
    assert other.predict("I see a bird").details.keys() == before.keys()
    for name, x in state.items():
        np.testing.assert_allclose(other.parameters[name], x.detach().numpy(), atol=1e-6)


def test_parameters_that_are_refused_change_nothing(run):
    name = sorted(run.parameters)[0]
    before = run.parameters[name]
    with pytest.raises(KeyError, match="no parameter 'other'"):
        run.parameters.update({name: before * 0, "other": before})
    with pytest.raises(ValueError, match="has shape"):
        run.parameters[name] = np.zeros((1, 2, 3))
    with pytest.raises(TypeError, match="wants numbers"):
        run.parameters[name] = np.array(["a"])
    with pytest.raises(TypeError, match="keeps all"):
        del run.parameters[name]
    assert np.array_equal(run.parameters[name], before)


def test_options_of_search_may_change_and_those_of_training_not(folder):
    assert regard.load(folder, beam=1).config["search"]["beam"] == 1
    assert regard.load(folder, search={"beam": 2}).config["search"]["beam"] == 2
    with pytest.raises(ValueError, match="`model.hidden` belongs to training"):
        regard.load(folder, hidden=32)


def test_what_is_remarked_of_options_and_data_is_a_warning(folder, tmp_path):
    with pytest.warns(UserWarning, match="`longest_output` is called `search.max_output_length` now"):
        run = regard.load(folder, longest_output=5)
    assert run.config["search"]["max_output_length"] == 5
    table = tmp_path / "texts.tsv"
    rows = [f"{label}\tthe {label} film number {n}" for n in range(20) for label in ("good", "bad")]
    table.write_text("label\ttext\n" + "\n".join(rows) + "\n")
    with pytest.warns(UserWarning) as heard:
        regard.train("classify", out=tmp_path / "run", train=str(table), epochs=1, batch=8, embedding=8, progress=False)
    texts = [str(one.message) for one in heard]
    assert any("`batch` is called `training.batch_size` now" in text for text in texts), texts
    assert any("line 1 names the columns" in text for text in texts), texts


def test_a_run_is_pickled_by_its_folder(run):
    again = pickle.loads(pickle.dumps(run))
    assert again.predict("I see a bird").output == run.predict("I see a bird").output


def test_a_pickled_run_keeps_the_parameters_that_were_set(run):
    name = next(iter(run.parameters))
    before = {key: x for key, x in run.parameters.items()}
    run.parameters[name] = before[name] * 2 + 1
    try:
        again = pickle.loads(pickle.dumps(run))
        once_more = pickle.loads(pickle.dumps(again))
    finally:
        run.parameters[name] = before[name]
    for kept in (again, once_more):
        np.testing.assert_array_equal(kept.parameters[name], before[name] * 2 + 1)
        for key in set(before) - {name}:
            np.testing.assert_array_equal(kept.parameters[key], before[key])


def refusals(folder, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "config.toml").write_text((folder / "config.toml").read_text())
    unvalidated = tmp_path / "unvalidated"
    unvalidated.mkdir()
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for name in ("config.toml", "vocabulary.json", "run.json", "best.safetensors"):
        (damaged / name).write_bytes((folder / name).read_bytes()[:-40 if name.endswith("s") else None])
        if name != "best.safetensors":
            (unvalidated / name).write_bytes((folder / name).read_bytes())
    run = regard.load(folder)
    train = lambda task="translate", **options: regard.train(task, out=tmp_path / "new", progress=False, **options)
    return {
        "no folder": (FileNotFoundError, "run.json", lambda: regard.load(tmp_path / "none")),
        "an empty folder": (FileNotFoundError, "run.json", lambda: regard.load(empty)),
        "a run that never began": (ValueError, "ended before it began", lambda: regard.load(begun)),
        "no validated epoch": (FileNotFoundError, "no epoch has been validated", lambda: regard.load(unvalidated)),
        "a damaged checkpoint": (ValueError, "damaged", lambda: regard.load(damaged)),
        "a number as folder": (TypeError, "wants a path", lambda: regard.load(5)),
        "nothing as folder": (TypeError, "wants a path", lambda: regard.load(None)),
        "another task": (ValueError, "there is no task `translat`", lambda: train("translat")),
        "no task": (TypeError, "no task is named", lambda: regard.train()),
        "a task that is a number": (TypeError, "wants a name", lambda: regard.train(5)),
        "another option": (ValueError, "the nearest is `model.hidden`", lambda: train(hiden=5)),
        "a value of another type": (ValueError, "a whole number", lambda: train(epochs="many")),
        "a value that is none": (TypeError, "epochs is NoneType", lambda: train(epochs=None)),
        "a model that does not fit": (ValueError, "parameters, more than the", lambda: train(hidden=10**8)),
        "no epochs": (ValueError, "`training.epochs` cannot be 0", lambda: train(epochs=0)),
        "a folder that is taken": (FileExistsError, "`overwrite=True`", lambda: regard.train("translate", out=folder)),
        "a callback that is none": (TypeError, "wants a function", lambda: train(callback=5)),
        "resume and out": (TypeError, "resumed", lambda: regard.train(resume=folder, out=tmp_path)),
        "resume with another model": (ValueError, "cannot change on the way", lambda: regard.train(resume=folder, hidden=5)),
        "an input of bytes": (TypeError, "an input is bytes", lambda: run.predict([b"a"])),
        "an input that is none": (TypeError, "an input is NoneType", lambda: run.predict([None])),
        "no part": (ValueError, "there is no part", lambda: run.evaluate("tests")),
        "no part to take heads away on": (ValueError, "there is no part", lambda: run.ablate("tests")),
        "a change alone": (TypeError, "a list of changes", lambda: run.predict("a", changes=regard.change.off("cross"))),
        "another change": (ValueError, "changes[0]: unknown variant `of`", lambda: run.predict("a", changes=[{"change": "of"}])),
        "attention that is not there": (
            ValueError, "no hops attention", lambda: run.predict("a", changes=[regard.change.off("hops")])),
        "no temperature": (
            ValueError, "a temperature of 0", lambda: run.attention("a", changes=[regard.change.temperature(0)])),
    }


CASES = [
    "no folder", "an empty folder", "a run that never began", "no validated epoch", "a damaged checkpoint",
    "a number as folder", "nothing as folder", "another task", "no task", "a task that is a number", "another option",
    "a model that does not fit", "a value of another type", "a value that is none", "no epochs", "a folder that is taken", "a callback that is none",
    "resume and out", "resume with another model", "an input of bytes", "an input that is none", "no part",
    "no part to take heads away on", "a change alone", "another change", "attention that is not there", "no temperature",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_said_in_one_sentence(case, folder, tmp_path):
    cases = refusals(folder, tmp_path)
    assert sorted(cases) == sorted(CASES)
    kind, words, call = cases[case]
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind
    assert words in str(raised.value) and "\n" not in str(raised.value)
    assert not (tmp_path / "new" / "run.json").exists()


def test_the_callback_sees_every_epoch_and_stops_the_training(tmp_path):
    rows = []

    def callback(row):
        rows.append(row)
        return row["epoch"] < 2

    run = regard.train("translate", out=tmp_path / "run", callback=callback, **{**SMALL, "epochs": 4})
    assert [row["epoch"] for row in rows] == [1, 2]
    assert rows[0]["perplexity"] == run.metrics["perplexity"][0] and rows[0]["best"] is True
    whole = regard.train("translate", out=tmp_path / "whole", **{**SMALL, "epochs": 4})
    again = regard.train(resume=tmp_path / "run", progress=False)
    assert (tmp_path / "run" / "last.safetensors").read_bytes() == (tmp_path / "whole" / "last.safetensors").read_bytes()
    assert list(again.metrics["epoch"]) == [1, 2, 3, 4] == list(whole.metrics["epoch"])
    assert len(regard.train(resume=tmp_path / "run", epochs=5, progress=False).metrics) == 5


def test_what_a_callback_raises_is_raised_with_a_checkpoint_kept(tmp_path):
    def callback(row):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        regard.train("translate", out=tmp_path / "run", callback=callback, **SMALL)
    assert len(regard.train(resume=tmp_path / "run", progress=False).metrics) == 2


INTERRUPTED = """
import regard, sys
try:
    regard.train("translate", out=sys.argv[1], size=2000, epochs=50, hidden=16, embedding=16, score_hidden=16)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_leaves_a_checkpoint_that_goes_on(tmp_path):
    place = tmp_path / "run"
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(place)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 120
    while not (place / "run.json").exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    said, told = child.communicate(timeout=60)
    assert said.strip() == "interrupted", told
    assert f"regard.train(resume={str(place)!r}) goes on" in told
    assert "parameters; 50 epochs of" in told
    assert (place / "last.safetensors").exists()
    lines = []
    regard.train(resume=place, callback=lambda row: lines.append(row) or False, progress=False)
    assert len(lines) == 1


def test_other_threads_run_while_one_trains(tmp_path):
    beats = []
    done = threading.Event()

    def beat():
        while not done.is_set():
            beats.append(time.monotonic())
            time.sleep(0.01)

    other = threading.Thread(target=beat)
    other.start()
    regard.train("translate", out=tmp_path / "run", **SMALL)
    done.set()
    other.join()
    assert max(np.diff(beats)) < 0.5


def test_two_threads_train_and_ask_at_once(tmp_path, run):
    expected = run.predict("I see a bird").output
    found = []

    def ask():
        found.extend(run.predict("I see a bird").output for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    threads += [
        threading.Thread(target=lambda n=n: regard.train("regress", out=tmp_path / str(n), epochs=3, progress=False))
        for n in range(2)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert found == [expected] * 15
    assert all((tmp_path / str(n) / "best.safetensors").exists() for n in range(2))


TASKS = {
    "regress": dict(epochs=2),
    "label": dict(epochs=1),
    "classify": dict(epochs=1),
    "graph": dict(epochs=2),
    "image": dict(epochs=1),
}


@pytest.mark.parametrize("task", TASKS)
def test_every_kind_of_task_trains_answers_and_shows(task, tmp_path):
    run = regard.train(task, out=tmp_path / "run", progress=False, **TASKS[task])
    report = run.evaluate("validation")
    assert report.examples > 0 and report.scores
    given = report.samples[0][0] if report.samples else "0"
    given = {"graph": 3, "regress": 0.25, "image": "validation:0"}.get(task, given)
    answer = run.predict(given)
    assert answer.output
    scenes = run.attention(given)
    assert scenes
    for scene in scenes.values():
        assert len(scene) == len(scene.heads) == len(scene.weights)
    assert run.show(given).html.startswith("<!DOCTYPE html>")


def test_a_notebook_shows_a_bar_and_lines(monkeypatch):
    pytest.importorskip("IPython")
    from regard import _progress

    drawn = []

    class Handle:
        def update(self, what):
            drawn.append(what.data)

    def display(what, display_id):
        drawn.append(what.data)
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(_progress, "_PACE", 0.0)
    shown = _progress.Notebook()
    shown.line("epoch 1 <best>")
    shown.bar("epoch 2", 3, 10)
    shown.clear()
    assert drawn[0] == "<pre>epoch 1 &lt;best&gt;</pre>"
    assert '<progress value="3" max="10">' in drawn[1] and "epoch 2" in drawn[1]
    assert "<progress" not in drawn[2]
