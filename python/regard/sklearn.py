"""Runs behind scikit-learn's estimators: ``fit``, ``predict``, ``score``, in pipelines and in searches over parameters.

``RegardClassifier`` learns labels of texts, of sets of vectors, and of rows of numbers; ``RegardRegressor`` numbers from
rows of numbers. What is fitted is a run, ``estimator.run_``, which shows what it attends to.

>>> from regard.sklearn import RegardClassifier
>>> films = ["a fine film", "a dull film"] * 20
>>> classifier = RegardClassifier(epochs=5, random_state=0).fit(films, ["good", "bad"] * 20)
>>> classifier.predict(["a fine film"]).tolist()
['good']
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from .run import Run, load
from .training import train

# The vectors of a row of numbers grow with the square of this.
_MOST_FEATURES = 128


class _Estimator(BaseEstimator):
    """What both have in common: a run in a folder that lasts as long as the estimator, and goes along in a pickle."""

    run_: Run

    def _train(self, task: str, rows: list[Any], targets: Any, usual: Mapping[str, Any]) -> None:
        given: Any = self
        seed = int(check_random_state(given.random_state).randint(2**31 - 1))
        options = {"epochs": given.epochs, "learning_rate": given.learning_rate, "seed": seed}
        options |= {"validate_every": given.epochs, **usual, **(given.options or {})}
        self._folder = tempfile.TemporaryDirectory(prefix="regard-")
        data = {"train": (rows, targets), "validation": (rows, targets)}
        place = Path(self._folder.name, "run")
        self.run_ = train(task, data, out=place, progress=False, device=given.device, **options)

    def save(self, folder: Any) -> None:
        """Writes the run into a folder of its own, for ``regard.load`` and the program."""
        check_is_fitted(self, "run_")
        shutil.copytree(self.run_.folder, folder)

    def __getstate__(self) -> dict[str, Any]:
        kept: Any = super().__getstate__()
        state: dict[str, Any] = dict(kept)
        run: Run | None = state.pop("run_", None)
        state.pop("_folder", None)
        if run is not None:
            files = sorted(path for path in Path(run.folder).iterdir() if path.is_file())
            state["_files"] = {path.name: path.read_bytes() for path in files}
            state["_changed"] = {name: run.parameters[name] for name in sorted(run._changed)}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        files, changed = state.pop("_files", None), state.pop("_changed", {})
        super().__setstate__(state)
        if files is None:
            return
        self._folder = tempfile.TemporaryDirectory(prefix="regard-")
        place = Path(self._folder.name, "run")
        place.mkdir()
        for name, content in files.items():
            (place / name).write_bytes(content)
        self.run_ = load(place, device=self.__dict__["device"])
        if changed:
            self.run_.parameters.update(changed)


def _is_texts(X: Any) -> bool:
    shape = getattr(X, "shape", None)
    if isinstance(X, str) or (shape is not None and len(shape) != 1) or not hasattr(X, "__len__") or not len(X):
        return False
    return all(isinstance(one, str) for one in X)


def _is_sets(X: Any) -> bool:
    if getattr(X, "ndim", 1) == 3:
        return True
    return isinstance(X, (list, tuple)) and bool(X) and all(isinstance(one, np.ndarray) and one.ndim == 2 for one in X)


class RegardClassifier(ClassifierMixin, _Estimator):
    """A classifier that attends: samples are texts, sets of vectors (a list of arrays ``[N, width]``, or an array ``[n, N,
    width]``), or rows of numbers ``[n, features]``, each feature of which is a vector that attention weighs.

    ``options`` are further options of the task classify, by name or by section: ``options={"encoder": "transformer"}``.
    All samples are learned; none is held out. ``run_`` is the run: ``classifier.run_.show("a fine film")``.

    >>> import numpy as np
    >>> from regard.sklearn import RegardClassifier
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> classifier = RegardClassifier(random_state=0).fit(X, X[:, 1] > 0)
    >>> classifier.score(X, X[:, 1] > 0) > 0.9
    True
    """

    def __init__(
        self,
        *,
        epochs: int = 40,
        learning_rate: float = 0.01,
        options: Mapping[str, Any] | None = None,
        device: Any = "cpu",
        random_state: Any = None,
    ) -> None:
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.options = options
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> RegardClassifier:
        """Learns the labels ``y`` of the samples ``X``."""
        usual: dict[str, Any] = {}
        if _is_texts(X) or _is_sets(X):
            self._reads = "texts" if _is_texts(X) else "sets"
            check_consistent_length(X, y)
            y = column_or_1d(y, warn=True)
            rows = list(X)
        else:
            self._reads = "rows"
            X, y = validate_data(self, X, y, dtype=np.float64)
            if X.shape[1] > _MOST_FEATURES:
                raise ValueError(f"X has {X.shape[1]} features; rows of numbers have {_MOST_FEATURES} at most")
            self._mean, deviation = X.mean(0), X.std(0)
            self._scale = np.where(deviation > 0, deviation, 1.0)
            rows = self._vectors(X)
            usual = {"head_hidden": 32, "dropout": 0.0}
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_.tolist()[0]!r}; a classifier needs two or more")
        self._train("classify", rows, codes.tolist(), usual)
        return self

    def _vectors(self, X: np.ndarray[Any, Any]) -> list[Any]:
        """A set of vectors for each row: feature j says in which place it stands, and there what it is."""
        scaled = (X - self._mean) / self._scale
        places = np.eye(X.shape[1])
        return [np.hstack([places * row, places]) for row in scaled]

    def _samples(self, X: Any) -> list[Any]:
        if self._reads == "rows":
            checked: Any = validate_data(self, X, reset=False, dtype=np.float64)
            return self._vectors(checked)
        is_such = _is_texts(X) if self._reads == "texts" else _is_sets(X)
        if not is_such:
            raise ValueError(f"X is {type(X).__name__}; it was fitted to {self._reads}, and wants them")
        return list(X)

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """How likely each label is for each sample, ``[n, classes]``, in the order of ``classes_``."""
        check_is_fitted(self, "run_")
        found = self.run_.predict_proba(self._samples(X))
        known = self.run_.classes
        ordered: np.ndarray[Any, Any] = found[:, [known.index(str(code)) for code in range(len(self.classes_))]]
        return ordered

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The most likely label of each sample, in the type of those that were learned."""
        check_is_fitted(self, "run_")
        found: np.ndarray[Any, Any] = self.classes_[self.predict_proba(X).argmax(1)]
        return found


class RegardRegressor(RegressorMixin, _Estimator):
    """Numbers from rows of numbers ``[n, features]``, by attention over all rows that were learned: near ones weigh more
    (Nadaraya and Watson), how near is learned for each feature, by predicting each from the others.

    ``options`` are further options of the task regress: ``options={"nearest": 5}``.

    >>> import numpy as np
    >>> from regard.sklearn import RegardRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> RegardRegressor(random_state=0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.9
    True
    """

    def __init__(
        self,
        *,
        epochs: int = 100,
        learning_rate: float = 0.1,
        options: Mapping[str, Any] | None = None,
        device: Any = "cpu",
        random_state: Any = None,
    ) -> None:
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.options = options
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> RegardRegressor:
        """Learns the numbers ``y`` of the rows ``X``."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        self._train("regress", list(X), np.asarray(y, np.float64), {"per_column": True})
        return self

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The number of each row."""
        check_is_fitted(self, "run_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.array([float(answer.output) for answer in self.run_.predict(X)])
