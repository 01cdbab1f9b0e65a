"""Runs on a cluster of Ray: predictions over a dataset, comparisons over options and seeds."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray import tune

from . import _native
from ._options import settings
from .run import Part, Report, load
from .threads import set_num_threads
from .training import train

# What a run's model is rebuilt from.
_FILES = ("run.json", "config.toml", "vocabulary.json", "metrics.jsonl", "best.safetensors")


class _Predictor:
    """A run's model in a worker, which may be a machine that has not got the run's folder."""

    def __init__(self, files: Any, columns: tuple[str, str], options: dict[str, Any], threads: int) -> None:
        set_num_threads(threads)
        self._folder = tempfile.TemporaryDirectory()
        sent: Any = ray.get(files)
        for name, data in sent.items():
            Path(self._folder.name, name).write_bytes(data)
        self._run = load(self._folder.name, **options)
        self._columns = columns

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        column, output = self._columns
        if column not in batch:
            raise KeyError(f"the dataset has no column {column!r}; it has {', '.join(sorted(batch))}")
        answers = self._run.predict(list(batch[column]))
        return {**batch, output: np.array([answer.output for answer in answers], dtype=object)}


def predict(
    dataset: Any,
    run: str | os.PathLike[str],
    *,
    column: str,
    output: str = "prediction",
    batch_size: int = 256,
    concurrency: int | tuple[int, int] | None = None,
    num_cpus: int = 1,
    **options: Any,
) -> Any:
    """A dataset of Ray with what a run's model predicts for a column, in a column of its own.

    The run's files travel to the workers, ``concurrency`` of them (as many as fit, where it is not given) with
    ``num_cpus`` threads each. Options are those of ``regard.load``. Rows stay in their order where Ray's context
    preserves it (``ray.data.DataContext.get_current().execution_options.preserve_order = True``).

    >>> import regard.ray
    >>> regard.ray.predict(None, "no such run", column="text")
    Traceback (most recent call last):
    FileNotFoundError: no such run/run.json: No such file or directory (os error 2); a run's folder has one
    """
    folder = Path(load(run, **options).folder)
    files = {name: (folder / name).read_bytes() for name in _FILES if (folder / name).exists()}
    if not ray.is_initialized():
        ray.init()
    if concurrency is None:
        concurrency = (1, max(1, int(ray.cluster_resources().get("CPU", 1)) // num_cpus))
    return dataset.map_batches(
        _Predictor,
        fn_constructor_args=(ray.put(files), (column, output), options, num_cpus),
        batch_format="numpy",
        batch_size=batch_size,
        num_cpus=num_cpus,
        concurrency=concurrency,
    )


@dataclass(frozen=True)
class Comparison:
    """What came of a comparison: ``table`` has a row for each variant, with the mean and the standard deviation of
    every measure over the seeds; ``trials`` one for each variant and seed, with the folder of its run.

    >>> import pandas, regard.ray
    >>> trials = pandas.DataFrame({"score": ["dot", "dot"], "seed": [1, 2], "accuracy": [0.5, 0.7]})
    >>> comparison = regard.ray.Comparison.of(trials, ["score"], ["accuracy"])
    >>> comparison.table["accuracy"].round(2).tolist(), comparison.table["accuracy ±"].round(2).tolist()
    ([0.6], [0.14])
    """

    table: Any
    trials: Any

    @classmethod
    def of(cls, trials: Any, over: Sequence[str], measures: Sequence[str]) -> Comparison:
        """From a DataFrame with a row for each variant and seed."""
        groups = trials.groupby(list(over), sort=False, dropna=False)
        table = groups[list(measures)].mean()
        for measure in measures:
            table.insert(table.columns.get_loc(measure) + 1, f"{measure} ±", groups[measure].std().fillna(0.0))
        return cls(table.reset_index(), trials)

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False))


def _name(chosen: Mapping[str, Any], seed: int) -> str:
    """What the folder of a trial's run is called, as `regard compare` calls it."""
    plain = ", ".join(str(value) for value in chosen.values())
    return "".join(c if c.isalnum() or c == "_" else "-" for c in plain)[:100] + f"-seed{seed}"


def _trial(given: dict[str, Any]) -> None:
    """One variant with one seed, in a worker."""
    plan = given["plan"]
    # Paths among the options are the caller's.
    if os.path.isdir(plan["folder"]):
        os.chdir(plan["folder"])
    set_num_threads(plan["threads"])
    chosen = {name: given[name] for name in plan["over"]}
    folder = os.path.join(plan["place"], _name(chosen, given["seed"]))

    def report(row: dict[str, Any]) -> None:
        measures = {name: value for name, value in row.items() if name not in ("best", "step")}
        tune.report({f"validation {name}": value for name, value in measures.items()})

    options = {**plan["options"], **chosen, "training.seed": given["seed"]}
    run = train(plan["task"], out=folder, callback=report, progress=False, overwrite=True, **options)
    found: Report = run.evaluate(plan["part"])
    seconds = float(list(_column(run.metrics, "seconds"))[-1])
    tune.report({**found.scores, "seconds": seconds, "run": folder, "measures": list(found.scores)})


def _column(metrics: Any, name: str) -> Any:
    return metrics[name] if hasattr(metrics, "columns") else [row[name] for row in metrics]


def compare(
    task: str,
    *,
    over: Mapping[str, Sequence[Any]],
    seeds: int = 3,
    part: Part = "test",
    out: str | os.PathLike[str] | None = None,
    num_cpus: int = 1,
    **options: Any,
) -> Comparison:
    """Trains every combination of options with several seeds, by Ray Tune on all of a cluster, and compares them.

    ``over`` names the options that vary and their values: ``over={"score": ["dot", "additive"], "layers": [1, 2]}``
    makes four variants. The others are as ``options`` say, for all of them; ``out`` is where Tune keeps what it knows of
    the trials (default ``runs/compare-TASK``), on a file system that all workers have, and the trials' runs are in its
    folder ``runs``; runs of an earlier comparison there are replaced. A wrong option is refused before anything is
    trained.

    >>> import regard.ray
    >>> regard.ray.compare("translate", over={"scor": ["dot", "additive"]})
    Traceback (most recent call last):
    ValueError: there is no option `scor`; the nearest is `model.score`
    """
    if not isinstance(over, Mapping) or not over:
        raise TypeError('over is to name options and their values, as {"score": ["dot", "additive"]}')
    for name, values in over.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
            raise TypeError(f"over[{name!r}] is {values!r}; it wants a list of values")
        for value in values:
            _native.task_options(task, [*settings(options), *settings({name: value})])
    if seeds < 1:
        raise ValueError(f"{seeds} seeds; it wants one at least")
    if part not in ("training", "validation", "test"):
        raise ValueError(f"there is no part {part!r}; there are 'training', 'validation' and 'test'")
    first = json.loads(_native.task_options(task, settings(options)))["training"]["seed"]
    place = Path(os.path.abspath(os.path.join("runs", f"compare-{task}") if out is None else out))
    plan = {
        "task": task,
        "options": options,
        "over": list(over),
        "part": part,
        "threads": num_cpus,
        "folder": os.getcwd(),
        "place": str(place / "runs"),
    }
    space = {name: tune.grid_search(list(values)) for name, values in over.items()}
    tuner = tune.Tuner(
        tune.with_resources(_trial, {"cpu": num_cpus}),
        param_space={**space, "seed": tune.grid_search(list(range(first, first + seeds))), "plan": plan},
        run_config=tune.RunConfig(
            name=place.name,
            storage_path=str(place.parent),
            failure_config=tune.FailureConfig(fail_fast=True),
            verbose=0,
        ),
    )
    found = tuner.fit()
    if found.errors:
        reason = str(found.errors[0]).strip().splitlines()[-1]
        raise RuntimeError(f"{len(found.errors)} of {len(found)} trials failed; the first: {reason}")
    return _compared(found, list(over))


def _compared(found: Any, over: list[str]) -> Comparison:
    import pandas

    measures: list[str] = found[0].metrics["measures"]
    rows = []
    for result in found:
        chosen = {name: result.config[name] for name in over}
        measured = {name: result.metrics[name] for name in (*measures, "seconds", "run")}
        rows.append({**chosen, "seed": result.config["seed"], **measured})
    return Comparison.of(pandas.DataFrame(rows), over, [*measures, "seconds"])
