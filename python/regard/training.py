"""Training in this process: alone, or as one rank of a process group."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import _native
from ._options import device_name, path, settings
from ._progress import Listener, measure
from .memory import _free
from .records import has_parts, is_option
from .run import Run, row
from .threads import get_num_threads
from .written import fields, written

Callback = Callable[[dict[str, Any]], "bool | None"]


class Training(Listener):
    """Shows a training and asks a callback after every epoch."""

    def __init__(self, progress: bool, callback: Callback | None) -> None:
        super().__init__(progress)
        self._callback = callback

    def epoch(self, text: str) -> bool:
        found = row(text)
        shown = ("step", "rate", "seconds", "best", "epoch", "training_loss")
        measures = {name: measure(value) for name, value in found.items() if name not in shown}
        self._measure = "".join(f", {name} {value}" for name, value in list(measures.items())[:1])
        self.line(
            f"epoch {found['epoch']:>3}  training loss {found['training_loss']:.4f}  "
            + "  ".join(f"{name} {value}" for name, value in measures.items())
            + ("  best" if found["best"] else "")
        )
        return self._callback is None or self._callback(found) is not False

    def all_reduce(self, address: int, count: int) -> None:
        raise RuntimeError("one process alone has nothing to add up")

    def broadcast(self, data: bytes) -> bytes:
        raise RuntimeError("one process alone has nobody to tell")


class _Request:
    """What the native half is asked for."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.__dict__.update(given)


def _listener(progress: bool, callback: Callback | None) -> tuple[Training, int, int]:
    """Who is told, which rank this is, and how many there are."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        if torch.distributed.get_world_size() > 1:
            from .torch.ranks import Rank

            found = Rank(progress, callback)
            return found, found.rank, found.size
    elif "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise RuntimeError(
            "torchrun has started several processes that have no process group; "
            'torch.distributed.init_process_group("gloo") makes one'
        )
    return Training(progress, callback), 0, 1


def _from_memory(
    task: str, parts: dict[str, Any], columns: Mapping[str, str] | None, out: str | None, given: list[str]
) -> list[str]:
    """Writes data from memory beside the runs, and gives the options that name them."""
    beside = Path(out).parent if out is not None else Path("runs")
    found = written(task, parts, columns, beside / "data")
    taken = {setting.split("=", 1)[0].removeprefix("data.") for setting in given}
    for key in found:
        if key.removeprefix("data.") in taken and key != "data.color":
            raise TypeError(f"data are given, and the option {key} too, which they set")
    return settings({key: value for key, value in found.items() if key.removeprefix("data.") not in taken})


def train(
    task: str | None = None,
    data: Any = None,
    *,
    validation: Any = None,
    test: Any = None,
    columns: Mapping[str, str] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    config: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
    progress: bool = True,
    device: object = "cpu",
    **options: Any,
) -> Run:
    """Trains a model on a task in this process, and gives the run.

    Tasks are those of ``regard train``: translate, summarize, transcribe, caption, draw, answer, label, classify,
    image, graph, regress. Options are the task's, by keyword (``epochs=5``), by section (``model={"hidden": 64}``) or from
    a file (``config``); without data of your own the embedded data are learned. The run is kept in the folder
    ``out``, else in ``runs/TASK`` or the next free name; ``overwrite`` replaces a run that is there.

    ``data`` is your own from memory, ``validation`` and ``test`` the same where they are not to be held out of
    ``data``: rows or columns, a data frame of pandas or Polars, a dataset of Hugging Face, or any iterable of tuples
    or dictionaries; a dictionary of ``"train"``, ``"validation"`` and ``"test"`` has the parts together. A row has text
    and label (classify; in place of a text also vectors ``[N, width]``, or ``(samples, rate)`` of a sound), source and
    target (translate), text and summary (summarize), words and labels (label), context, question and answers (answer),
    image and label (image), image and sentence (caption, draw), audio and text (transcribe), features and target
    (regress; of a frame, all columns and the last); ``graph`` takes PyG's ``Data``. ``columns`` says what a field is
    called where that is another name: ``columns={"text": "review"}``. They are checked as files are, and kept beside
    the run in ``runs/data``, where a run that is resumed or evaluated finds them again.

    ``callback`` is called after every validated epoch with what it gave, as a row of ``Run.metrics``; where it
    returns ``False`` the training stops there. Ctrl-C, or an interrupt of the notebook, stops with a checkpoint and
    raises ``KeyboardInterrupt``; so does an exception of the callback. ``regard.train(resume=folder)`` goes on with
    the same bits as if nothing had happened, and ``regard.train(resume=folder, epochs=20)`` trains further.

    ``device`` says where: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, a ``torch.device``, or ``"auto"``, which takes a GPU where
    there is one and the model gains from it. A run remembers nothing of it.

    Where ``torch.distributed`` has a process group of several ranks, all of them call this alike and train one
    model, each on its share of every batch; rank 0 writes.

    >>> import regard, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stop = lambda row: row["epoch"] < 10
    ...     run = regard.train("regress", epochs=20, validate_every=5, out=folder, callback=stop, progress=False)
    ...     len(run.metrics)
    ...     run = regard.train(resume=folder, progress=False)
    ...     len(run.metrics)
    2
    4
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     films = [("a fine film", "good"), ("a dull film", "bad")] * 20
    ...     run = regard.train("classify", films, epochs=3, out=f"{folder}/films", progress=False)
    ...     run.predict("a fine film").output in run.classes
    True
    """
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is {type(callback).__name__}; it wants a function")
    if task is not None and not isinstance(task, str):
        raise TypeError(f"task is {type(task).__name__}; it wants a name, as 'translate'")
    if task is None and resume is None:
        raise TypeError("no task is named, and no run to resume")
    if resume is not None and (out is not None or overwrite or config is not None):
        raise TypeError("a run that is resumed has its folder and its options; only resume= and keywords go together")
    parts: dict[str, Any] = {"train": data, "validation": validation, "test": test}
    if task is not None and data is not None and is_option(data, fields(task), columns):
        options["data"] = parts.pop("train")
    elif has_parts(data):
        if validation is not None or test is not None:
            raise TypeError("data has parts, and validation or test is given as well")
        whole: Any = data
        parts = dict(whole)
    parts = {part: one for part, one in parts.items() if one is not None}
    given = settings(options)
    if parts and (task is None or resume is not None):
        raise TypeError("a run that is resumed has its data")
    if parts and "train" not in parts:
        raise TypeError("validation or test is given, and no data to learn")
    if columns is not None and not parts:
        raise TypeError("columns says what the fields of data are called, and no data are given")
    if task is not None and parts:
        given += _from_memory(task, parts, columns, path("out", out), given)
    return train_settings(
        task,
        given,
        out=path("out", out),
        resume=path("resume", resume),
        overwrite=overwrite,
        config=path("config", config),
        callback=callback,
        progress=progress,
        device=device,
    )


def train_settings(
    task: str | None,
    settings: list[str],
    *,
    out: str | None = None,
    resume: str | None = None,
    overwrite: bool = False,
    config: str | None = None,
    callback: Callback | None = None,
    progress: bool = True,
    device: object = "cpu",
) -> Run:
    """As ``train``, with options as the program takes them: ``key=value``, the value in TOML.

    >>> import tempfile
    >>> from regard.training import train_settings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_settings("regress", ["epochs=2"], out=folder, progress=False).config["training"]["epochs"]
    2
    """
    listener, rank, ranks = _listener(progress, callback)
    request = _Request(
        {
            "task": task,
            "out": out,
            "resume": resume,
            "overwrite": bool(overwrite),
            "config": config,
            "settings": settings,
            "threads": get_num_threads(),
            "device": device_name(device),
            "memory": _free(),
            "rank": rank,
            "ranks": ranks,
        }
    )
    with listener:
        try:
            folder, ended = _native.train_run(request, listener)
        except KeyboardInterrupt:
            if listener.folder is not None:
                listener.line(f"stopped; regard.train(resume={listener.folder!r}) goes on")
            raise
        if ended == "early":
            listener.line("stopped early: no better for so long as `patience` allows")
    run = Run(folder, device=device)
    if rank == 0:
        run._run  # The others may be on machines that have not got the folder.
    return run
