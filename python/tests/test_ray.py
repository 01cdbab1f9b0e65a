"""Runs on a local Ray of two workers."""

import os

import pytest

import regard

pandas = pytest.importorskip("pandas")
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
pytest.importorskip("ray.tune")

SMALL = dict(size=200, epochs=2, hidden=16, embedding=16)


@pytest.fixture(scope="module")
def cluster():
    # Workers find the modules that this process finds.
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("ray") / "translate"
    regard.train("translate", out=place, progress=False, **SMALL)
    return place


@pytest.mark.slow
def test_predictions_over_a_dataset_are_those_of_the_run(cluster, folder):
    import regard.ray

    ray.data.DataContext.get_current().execution_options.preserve_order = True
    words = ["I see a bird", "the old man", "", "three red books"] * 25
    dataset = ray.data.from_items([{"text": text, "number": n} for n, text in enumerate(words)])
    found = regard.ray.predict(dataset, folder, column="text", batch_size=16, concurrency=2, beam=2).to_pandas()
    expected = regard.load(folder, beam=2).predict(words)
    assert sorted(found.columns) == ["number", "prediction", "text"]
    found = found.sort_values("number")
    assert list(found["prediction"]) == [answer.output for answer in expected]


@pytest.mark.slow
def test_a_column_that_is_missing_is_named(cluster, folder):
    import regard.ray

    dataset = ray.data.from_items([{"text": "I see a bird"}])
    with pytest.raises(Exception, match="the dataset has no column 'sentence'"):
        regard.ray.predict(dataset, folder, column="sentence", concurrency=1).take_all()


@pytest.mark.slow
def test_a_comparison_over_options_and_seeds_is_that_of_the_runs(cluster, tmp_path):
    import regard.ray

    found = regard.ray.compare(
        "translate",
        over={"score": ["dot", "additive"]},
        seeds=2,
        part="validation",
        out=tmp_path / "compared",
        bidirectional=False,
        **SMALL,
    )
    assert list(found.table["score"]) == ["dot", "additive"]
    assert len(found.trials) == 4 and sorted(set(found.trials["seed"])) == sorted(found.trials["seed"])[::2]
    for _, trial in found.trials.iterrows():
        run = regard.load(trial["run"])
        assert os.path.commonpath([run.folder, tmp_path]) == str(tmp_path)
        assert run.config["model"]["score"] == trial["score"] and run.config["training"]["seed"] == trial["seed"]
        assert run.evaluate("validation").scores["perplexity"] == pytest.approx(trial["perplexity"], rel=1e-6)
    dots = found.trials[found.trials["score"] == "dot"]["perplexity"]
    row = found.table[found.table["score"] == "dot"].iloc[0]
    assert row["perplexity"] == pytest.approx(dots.mean()) and row["perplexity ±"] == pytest.approx(dots.std())
    assert "additive" in found._repr_html_()


@pytest.mark.slow
def test_a_trial_that_fails_is_told_in_one_sentence(cluster, tmp_path):
    import regard.ray

    # The dot product wants the encoder as wide as the decoder.
    with pytest.raises(RuntimeError, match=r"^1 of 1 trials failed; the first: ValueError: this `model.score`.*$"):
        regard.ray.compare("translate", over={"score": ["dot"]}, seeds=1, out=tmp_path / "compared", **SMALL)


@pytest.mark.slow
def test_what_is_wrong_is_refused_before_anything_is_trained(tmp_path):
    import regard.ray

    with pytest.raises(ValueError, match="the nearest is `model.score`"):
        regard.ray.compare("translate", over={"scor": ["dot"]}, out=tmp_path / "compared")
    with pytest.raises(TypeError, match="wants a list"):
        regard.ray.compare("translate", over={"score": "dot"}, out=tmp_path / "compared")
    with pytest.raises(ValueError, match="one at least"):
        regard.ray.compare("translate", over={"score": ["dot"]}, seeds=0, out=tmp_path / "compared")
    assert not (tmp_path / "compared").exists()
