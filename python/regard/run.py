"""Runs: trained models and all that is known of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from . import _native
from ._options import device_name, path, settings
from ._progress import Listener
from .change import Change
from .parameters import Parameters
from .question import Question, is_alone, question, rows_of
from .scene import Page, Scene
from .threads import get_num_threads

Part = Literal["training", "validation", "test"]
Method = Literal["gradient-input", "integrated-gradients", "attention", "attention-gradient", "rollout"]


@dataclass(frozen=True)
class Prediction:
    """What a model predicts for one input: the output as text, and more about it (scores, probabilities).

    >>> import regard
    >>> print(regard.Prediction("I see a bird", "我看见一只鸟", {"score": -0.1}))
    我看见一只鸟
    """

    input: str
    output: str
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.output


@dataclass(frozen=True)
class Report:
    """A model's measures on a part of its data; the first decides.

    >>> import regard
    >>> regard.Report({"accuracy": 0.9}, 10).scores["accuracy"]
    0.9
    """

    scores: dict[str, float]
    examples: int
    outputs: list[str] = field(default_factory=list, repr=False)
    samples: list[tuple[str, str, str]] = field(default_factory=list, repr=False)
    confusion: dict[str, Any] | None = field(default=None, repr=False)
    groups: dict[str, Any] | None = field(default=None, repr=False)
    notes: list[str] = field(default_factory=list)
    signature: str | None = None
    places: dict[str, Any] | None = field(default=None, repr=False)
    values_read: dict[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Ablation:
    """What a model's measure on a part changes by without each of its heads: ``heads`` and ``layers`` are rows with
    ``site``, ``layer``, ``head`` (from 0), and the change where the output is ``zero`` or its ``mean``.

    >>> import regard
    >>> rows = [{"site": "encoder", "layer": 0, "head": 1, "zero": -0.5, "mean": -0.25}]
    >>> regard.Ablation("accuracy", "higher", 0.9, 100, rows, []).map("encoder").tolist()
    [[nan, -0.25]]
    """

    measure: str
    better: Literal["higher", "lower"]
    whole: float
    examples: int
    heads: list[dict[str, Any]] = field(repr=False)
    layers: list[dict[str, Any]] = field(repr=False)

    def map(self, site: str, by: Literal["mean", "zero"] = "mean") -> np.ndarray[Any, Any]:
        """Layers × heads of one attention, NaN where there is no head."""
        rows = [row for row in self.heads if row["site"] == site]
        if not rows:
            there = sorted({row["site"] for row in self.heads})
            raise ValueError(f"there is no attention {site!r}; there are {there}")
        shape = max(row["layer"] for row in rows) + 1, max(row["head"] for row in rows) + 1
        found = np.full(shape, np.nan)
        for row in rows:
            found[row["layer"], row["head"]] = _number(row[by])
        return found


@dataclass(frozen=True)
class Saliency:
    """How much each part of an input matters for what is predicted, by one method: a value for each of ``names``.

    ``difference`` is what integrated gradients add up to: what is explained, less what it is where all parts are
    zero. ``faithfulness`` says what becomes of it while parts are set to zero: ``removed``, the shares that are gone,
    and the curves ``most``, ``least`` and ``random``, each with its ``scores`` and its ``area``, the mean fall.

    >>> import numpy as np, regard
    >>> found = regard.Saliency("the log-probability of good", ["a", "good", "film"], np.array([0.1, 2.0, -0.3]))
    >>> found.ranked()[0]
    ('good', 2.0)
    """

    of: str
    names: list[str]
    values: np.ndarray[Any, Any]
    method: Method = "gradient-input"
    grid: tuple[int, int] | None = None
    difference: float | None = None
    faithfulness: dict[str, Any] | None = field(default=None, repr=False)

    def ranked(self) -> list[tuple[str, float]]:
        """Names and values, those that matter most first."""
        order = np.argsort(-self.values, kind="stable")
        return [(self.names[at], float(self.values[at])) for at in order]


def _number(value: float | None) -> float:
    """JSON has no NaN; the native half writes null."""
    return float("nan") if value is None else float(value)


def row(text: str) -> dict[str, Any]:
    """A validated epoch as a flat dictionary.

    >>> from regard.run import row
    >>> row('{"epoch": 1, "training_loss": 0.5, "validation": [["accuracy", null]]}')
    {'epoch': 1, 'training_loss': 0.5, 'accuracy': nan}
    """
    found: dict[str, Any] = json.loads(text)
    measures = found.pop("validation")
    found["training_loss"] = _number(found["training_loss"])
    return {**found, **{name: _number(value) for name, value in measures}}


class Run:
    """A trained run, opened by ``regard.load`` or given by ``regard.train``: its model has the parameters of the
    best epoch.

    >>> import regard, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = regard.train("regress", epochs=2, out=folder, progress=False)
    ...     run.task, run.predict(0.5).input
    ('regress', '0.5')
    """

    def __init__(
        self, folder: str | os.PathLike[str], options: dict[str, Any] | None = None, device: object = "cpu"
    ) -> None:
        place = path("the run's folder", folder)
        if place is None:
            raise TypeError("the run's folder is None; it wants a path")
        self.folder: str = place
        self._settings = settings(options or {})
        self._device = device_name(device)
        self._opened: _native.Run | None = None
        self._changed: set[str] = set()

    @property
    def _run(self) -> _native.Run:
        if self._opened is None:
            self._opened = _native.Run(get_num_threads(), self.folder, self._settings, self._device)
        return self._opened

    @property
    def task(self) -> str:
        """The name of its task."""
        return self._run.task

    @property
    def config(self) -> dict[str, Any]:
        """All options, by section."""
        found: dict[str, Any] = json.loads(self._run.config)
        return found

    @property
    def notes(self) -> list[str]:
        """What should be known before it is measured, in sentences."""
        return self._run.notes

    @property
    def metrics(self) -> Any:
        """What every validated epoch gave: a DataFrame of pandas where that is installed, else a list of
        dictionaries."""
        rows = [row(text) for text in self._run.metrics()]
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows)

    @property
    def parameters(self) -> Parameters:
        """The model's parameters, as NumPy arrays by name; they can be set."""
        return Parameters(self._run, self._changed)

    @overload
    def predict(
        self,
        inputs: str | os.PathLike[str] | float | tuple[float, ...] | tuple[np.ndarray[Any, Any], int],
        *,
        changes: Sequence[Change] = (),
    ) -> Prediction: ...
    @overload
    def predict(self, inputs: Iterable[Any], *, changes: Sequence[Change] = ()) -> list[Prediction]: ...
    def predict(self, inputs: Any, *, changes: Sequence[Change] = ()) -> Any:
        """What the model makes of an input, or of each of several.

        An input is what ``regard predict`` takes: a text, the path of a picture or a recording, a node's number, a
        number (or a tuple of them) to regress at, ``"test:17"`` for an example of the data. Or it lies in memory: a
        picture of Pillow's or an array of ``uint8``, ``[height, width]`` or ``[height, width, 3]``; a sound ``(samples,
        rate)``; a set of vectors ``[N, width]``; a point ``[width]``. An array or a list is several inputs, one beside
        the other: points are ``[n, width]``, one picture alone is ``[picture]``. A blank text gives a blank output, so
        that rows stay side by side.

        ``changes`` change the model's attention meanwhile, all of them together; see ``regard.change``:
        ``run.predict(x, changes=[regard.change.off("encoder", 0, 1), regard.change.temperature(2)])``.

        >>> import numpy as np, regard, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     x = np.random.default_rng(0).normal(size=(50, 2))
        ...     run = regard.train("regress", (x, x.sum(1)), epochs=1, out=f"{folder}/run", progress=False)
        ...     len(run.predict(x[:3])), run.predict((0.5, 0.25)).input
        (3, '0.5,0.25')
        """
        changed = _changes(changes)
        alone = is_alone(inputs)
        asked = self._questions([inputs] if alone else inputs)
        answers = iter(self._answers([one for one in asked if not _is_blank(one)], changed))
        found = [Prediction(str(one), "") if _is_blank(one) else next(answers) for one in asked]
        return found[0] if alone else found

    def _questions(self, inputs: Iterable[Any]) -> list[Question]:
        form = self._run.form
        return [question(one, form) for one in rows_of(inputs, form, self._columns if form == "point" else ())]

    @property
    def _columns(self) -> list[str]:
        """What the columns are called that a point has."""
        known = json.loads((Path(self.folder) / "vocabulary.json").read_text(encoding="utf-8"))
        return list(known["names"][:-1])

    def _answers(self, questions: list[Question], changes: str) -> list[Prediction]:
        try:
            return [Prediction(**_known(text)) for text in self._run.predict(get_num_threads(), questions, changes)]
        except ValueError:
            if len(questions) < 2:
                raise
        # One of them is at fault: it is named.
        found = []
        for at, one in enumerate(questions):
            try:
                found += self._run.predict(get_num_threads(), [one], changes)
            except ValueError as error:
                name = one if isinstance(one, str) else one[0]
                raise ValueError(f"input {at} ({name[:60]!r}): {error}") from None
        return [Prediction(**_known(text)) for text in found]

    @property
    def classes(self) -> list[str]:
        """The labels that a run which tells labels apart knows, in the order of ``predict_proba``'s columns."""
        with open(os.path.join(self.folder, "vocabulary.json"), encoding="utf-8") as file:
            labels = json.load(file).get("labels")
        if self.task not in ("classify", "image", "graph") or not isinstance(labels, list):
            raise TypeError(f"a run of {self.task} does not choose one of several labels")
        return [str(label) for label in labels]

    def predict_proba(self, inputs: Iterable[Any], *, changes: Sequence[Change] = ()) -> np.ndarray[Any, Any]:
        """How likely each label is for each input, ``[inputs, labels]``, in the order of ``classes``."""
        classes = self.classes
        if not isinstance(inputs, tuple) and is_alone(inputs):
            raise TypeError(f"inputs is {type(inputs).__name__}, one input; predict_proba wants a list of them")
        answers = self.predict(list(inputs) if isinstance(inputs, tuple) else inputs, changes=changes)
        found = np.empty((len(answers), len(classes)))
        for at, answer in enumerate(answers):
            told = answer.details.get("probabilities")
            if told is None:
                raise ValueError(f"there is no answer to {answer.input[:60]!r}")
            found[at] = [told[one] for one in classes]
        return found

    def attention(self, input: Any, *, changes: Sequence[Change] = ()) -> dict[str, Scene]:
        """What the model attends to for an input: scenes by name, each with its weights as arrays; the most
        telling first. ``changes`` are those of ``predict``."""
        (asked,) = self._questions([input])
        found = self._run.attention(get_num_threads(), asked, _changes(changes))
        return {name: Scene._of(name, data, picture) for name, data, picture in found}

    def saliency(
        self,
        input: Any,
        method: Method = "gradient-input",
        *,
        faithfulness: bool = False,
        changes: Sequence[Change] = (),
    ) -> Saliency:
        """How much each part of an input (word, vector, patch) matters for what is predicted.

        ``method`` is ``"gradient-input"``; ``"integrated-gradients"``, whose values add up to the ``difference`` that
        the whole input makes; ``"attention"``, the mean weight of each part; ``"attention-gradient"``, weights times
        their gradients; or ``"rollout"``, the weights of all layers together. ``faithfulness=True`` tries it: parts are
        set to zero in the order of their values, in reverse and by chance. ``changes`` are those of ``predict``.
        """
        (asked,) = self._questions([input])
        found = json.loads(
            self._run.saliency(get_num_threads(), asked, method, bool(faithfulness), _changes(changes))
        )
        return Saliency(
            found["of"],
            found["names"],
            np.array([_number(value) for value in found["values"]]),
            found["method"],
            tuple(found["grid"]) if found["grid"] else None,
            found["difference"],
            found["faithfulness"],
        )

    def attribution(self, part: Part = "test", *, examples: int = 64, progress: bool = False) -> dict[str, Any]:
        """Which way of telling what matters is right, over examples of a part: for each of ``methods`` how far what is
        predicted falls, on the mean, while what matters ``most`` goes first, and what matters ``least``, or why it is
        ``refused``; beside them ``random``, for any order."""
        with Listener(progress) as listener:
            found: dict[str, Any] = json.loads(self._run.attribution(get_num_threads(), part, examples, listener))
        return found

    def show(self, input: Any, scene: str | None = None) -> Page:
        """A page to look around in, which draws itself in a notebook; of the first scene where none is named."""
        (asked,) = self._questions([input])
        return Page._of(self._run.show(get_num_threads(), asked, scene))

    def evaluate(self, part: Part = "test", *, progress: bool = False) -> Report:
        """The model's measures on a part of its data: ``"test"``, ``"validation"`` or ``"training"``."""
        with Listener(progress) as listener:
            text, outputs = self._run.evaluate(get_num_threads(), part, listener)
        found = json.loads(text)
        scores = {name: _number(value) for name, value in found["scores"]["values"]}
        if not found["examples"]:
            raise ValueError(f"the {part} part holds no examples")
        return Report(
            scores,
            found["examples"],
            outputs,
            [(given, expected, output) for given, expected, output in found["samples"]],
            found["confusion"],
            found["groups"],
            found["notes"],
            found["signature"],
            found.get("places"),
            found.get("values_read"),
        )

    def ablate(self, part: Part = "test", *, progress: bool = False) -> Ablation:
        """What the task's measure on a part changes by without each head and each layer, their output set to zero
        and to its mean. Kept in the run's folder, and not computed again."""
        with Listener(progress) as listener:
            found = json.loads(self._run.ablate(get_num_threads(), part, not self._changed, listener))
        return Ablation(
            found["measure"],
            found["better"],
            _number(found["whole"]),
            found["examples"],
            found["heads"],
            found["layers"],
        )

    def heads(self, part: Part = "test", *, progress: bool = False) -> list[dict[str, Any]]:
        """What each head does over a part, a dictionary each: its ``site``, ``layer`` and ``head`` (from 0), a
        ``sentence``, the shares of its weight (``previous``, ``itself``, ``next``, ``separators``, …), its
        ``strongest`` examples, and ``alike``: the places of heads that do the same."""
        with Listener(progress) as listener:
            found = json.loads(self._run.heads(get_num_threads(), part, listener))
        heads: list[dict[str, Any]] = [{**head, "alike": []} for head in found["heads"]]
        for a, b, _ in found["alike"]:
            heads[a]["alike"].append(b)
            heads[b]["alike"].append(a)
        return heads

    def to_torch(self) -> Any:
        """The model as a ``torch.nn.Module`` of plain PyTorch, with the parameters as they are now: the same outputs
        (logits, or values), and gradients for every parameter. It is checked on some made-up inputs before it is
        given; ``module.example_inputs`` are those, by the names of the arguments of ``forward``.

        It is in eval mode and has no dropout, whatever the run trained with: in ``train()`` it computes the same. What
        ``regard export`` cannot write as PyTorch is refused with its reason. Needs the packages torch and safetensors.

        >>> import regard, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     module = regard.train("regress", epochs=1, out=folder, progress=False).to_torch()
        ...     module(**module.example_inputs).shape
        torch.Size([5, 1])
        """
        from .exported import module

        return module(self._run)

    def save_parameters(self, path: str | os.PathLike[str]) -> None:
        """Writes the parameters as they are now to a safetensors file, whole or not at all: for PyTorch, or for
        ``regard.train(…, init_from=path)``."""
        self._run.save_parameters(os.fspath(path))

    def __repr__(self) -> str:
        return f"Run({self.folder!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens the folder; parameters that were set go along.
        changed = {name: self.parameters[name] for name in sorted(self._changed)}
        return _reopened, (self.folder, self._settings, changed, self._device)


def _is_blank(one: Question) -> bool:
    return isinstance(one, str) and not one.strip()


def _changes(changes: Sequence[Change]) -> str:
    if isinstance(changes, (str, dict)):
        raise TypeError(f"changes is {type(changes).__name__}; it wants a list of changes")
    return json.dumps(list(changes)) if changes else ""


def _known(text: str) -> dict[str, Any]:
    found = json.loads(text)
    return {"input": found["input"], "output": found["output"], "details": found["details"] or {}}


def _reopened(folder: str, given: list[str], changed: dict[str, Any], device: str = "cpu") -> Run:
    run = Run(folder, device=device)
    run._settings = given
    if changed:
        run.parameters.update(changed)
    return run


def load(folder: str | os.PathLike[str], *, device: object = "cpu", **options: Any) -> Run:
    """Opens a trained run, with the parameters of its best epoch.

    ``device`` says where its model computes: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, a ``torch.device``, or ``"auto"``,
    which takes a GPU where there is one and the model gains from it; wherever it was trained.

    Options of its data and of its search may be other than in training: ``regard.load("runs/mine", beam=1)``, or
    by section: ``regard.load("runs/mine", data={"test": "other.tsv"})``. Raises ``FileNotFoundError`` where there
    is no run or none that has been validated yet, ``ValueError`` where an option is not known or belongs to
    training.

    >>> import regard, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     regard.train("regress", epochs=2, out=folder, progress=False).folder == folder
    ...     regard.load(folder).config["training"]["epochs"]
    True
    2
    >>> regard.load("no such folder")
    Traceback (most recent call last):
    FileNotFoundError: no such folder/run.json: No such file or directory (os error 2); a run's folder has one
    """
    run = Run(folder, options, device)
    run._run
    return run
