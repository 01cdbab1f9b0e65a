"""The estimators are scikit-learn's own kind: its checks pass, and what they answer is what their runs answer."""

import os
import pickle

import numpy as np
import pytest

import regard

if not os.environ.get("REGARD_CI"):
    pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.neighbors import KNeighborsRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

random = np.random.default_rng(0)
X = random.normal(size=(80, 3))
FILMS = ["a fine film", "a dull film"] * 20
PRAISE = ["good", "bad"] * 20


# Of its checks none is expected to fail.
EXPECTED_TO_FAIL = {}


@pytest.mark.parametrize("name", ["RegardClassifier", "RegardRegressor"])
def test_scikit_learns_own_checks_pass(name):
    threads = regard.get_num_threads()
    regard.set_num_threads(1)  # the fits are small
    try:
        estimator = getattr(regard, name)(epochs=10 if name == "RegardRegressor" else 20)
        found = check_estimator(estimator, on_fail=None, on_skip=None, expected_failed_checks=EXPECTED_TO_FAIL)
    finally:
        regard.set_num_threads(threads)
    failed = {one["check_name"]: str(one["exception"]) for one in found if one["status"] == "failed"}
    assert not failed
    assert sum(one["status"] == "passed" for one in found) > 45


def test_texts_are_classified_and_labels_keep_their_type():
    classifier = regard.RegardClassifier(epochs=5, random_state=0).fit(FILMS, PRAISE)
    assert classifier.classes_.tolist() == ["bad", "good"]
    assert classifier.predict(FILMS[:2]).tolist() == PRAISE[:2] and classifier.score(FILMS, PRAISE) == 1
    probabilities = classifier.predict_proba(FILMS[:2])
    answer = classifier.run_.predict(FILMS[0])
    assert probabilities[0].max() == max(answer.details["probabilities"].values())
    for labels in ([3, 7] * 20, [True, False] * 20, np.array([0.0, 1.0] * 20)):
        found = regard.RegardClassifier(epochs=5, random_state=0).fit(np.array(FILMS), labels)
        assert found.predict(FILMS).tolist() == list(labels)
        assert found.classes_.dtype == np.asarray(labels).dtype
    with pytest.raises(ValueError, match="fitted to texts, and wants them"):
        classifier.predict(X)


def test_sets_of_vectors_are_classified():
    labels = np.arange(40) % 2
    sets = [random.normal(size=(random.integers(1, 5), 3)) + 3 * label for label in labels]
    assert regard.RegardClassifier(random_state=0).fit(sets, labels).score(sets, labels) > 0.9
    cube = random.normal(size=(40, 4, 3)) + 3 * labels[:, None, None]
    assert regard.RegardClassifier(random_state=0).fit(cube, labels).score(cube, labels) > 0.9


def test_a_feature_that_decides_is_the_one_that_is_learned():
    # Only the place of a feature tells it from the others.
    labels = X[:, 1] > 0
    classifier = regard.RegardClassifier(random_state=0).fit(X * [1, 1000, 1] + [0, 5000, 0], labels)
    assert classifier.score(X * [1, 1000, 1] + [0, 5000, 0], labels) > 0.9


def test_a_regression_is_as_near_as_the_nearest_neighbors_are():
    y = np.sin(2 * X[:, 0])
    fresh = random.normal(size=(40, 3))
    expected = np.sin(2 * fresh[:, 0])
    found = regard.RegardRegressor(random_state=0).fit(X, y)
    assert found.score(fresh, expected) > KNeighborsRegressor(5).fit(X, y).score(fresh, expected)
    assert found.predict(fresh[:1])[0] == float(found.run_.predict(fresh[:1])[0].output)


def test_what_is_pickled_answers_the_same_without_the_first(tmp_path):
    classifier = regard.RegardClassifier(epochs=3, random_state=0).fit(X, X[:, 0] > 0)
    expected = classifier.predict_proba(X)
    text = pickle.dumps(classifier)
    classifier.save(tmp_path / "kept")
    folder = classifier.run_.folder
    del classifier
    assert not os.path.exists(folder)
    again = pickle.loads(text)
    assert np.array_equal(again.predict_proba(X), expected)
    assert regard.load(tmp_path / "kept").task == "classify"


def test_a_search_over_parameters_and_a_pipeline_take_it():
    regressor = make_pipeline(StandardScaler(), regard.RegardRegressor(epochs=3, random_state=0))
    found = GridSearchCV(regressor, {"regardregressor__options": [None, {"nearest": 3}]}, cv=2).fit(X, X[:, 0])
    assert found.best_params_["regardregressor__options"] in (None, {"nearest": 3})
    copied = clone(found.best_estimator_[-1])
    assert copied.get_params()["epochs"] == 3 and not hasattr(copied, "run_")
    same = [regard.RegardRegressor(epochs=3, random_state=4).fit(X, X[:, 0]).predict(X) for _ in range(2)]
    assert np.array_equal(*same)


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(ValueError, match="features; rows of numbers have 128 at most"):
        regard.RegardClassifier().fit(np.ones((4, 129)), [0, 1] * 2)
    with pytest.raises(ValueError, match="y has one class, 'good'"):
        regard.RegardClassifier().fit(FILMS, ["good"] * 40)
    with pytest.raises(ValueError, match="the nearest is `model.hidden`"):
        regard.RegardClassifier(options={"hiden": 3}).fit(FILMS, PRAISE)
