"""Experiment trackers through the callback of `regard.train`: TensorBoard, MLflow, Weights & Biases without a network.

`python track.py tensorboard` (or mlflow, wandb) trains a classifier on the embedded data and keeps its measures.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import regard

Row = dict[str, Any]


def measures(row: Row) -> dict[str, float]:
    """What an epoch gave, without what is no measure."""
    return {name: float(value) for name, value in row.items() if isinstance(value, (int, float)) and name != "epoch"}


def tensorboard(folder: Path) -> tuple[Callable[[Row], None], Callable[[], None]]:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))

    def note(row: Row) -> None:
        for name, value in measures(row).items():
            writer.add_scalar(name.replace(" ", "_"), value, row["epoch"])

    return note, writer.close


def mlflow(folder: Path) -> tuple[Callable[[Row], None], Callable[[], None]]:
    # Plain files, which MLflow wants to be asked for.
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow

    mlflow.set_tracking_uri(folder.absolute().as_uri())
    mlflow.start_run()

    def note(row: Row) -> None:
        mlflow.log_metrics({name.replace(" ", "_"): value for name, value in measures(row).items()}, step=row["epoch"])

    return note, mlflow.end_run


def wandb(folder: Path) -> tuple[Callable[[Row], None], Callable[[], None]]:
    import wandb

    folder.mkdir(parents=True, exist_ok=True)
    run = wandb.init(project="regard", dir=folder, mode="offline")
    return lambda row: run.log(measures(row), step=row["epoch"]), run.finish


TRACKERS = {"tensorboard": tensorboard, "mlflow": mlflow, "wandb": wandb}


def main(tracker: str, folder: Path, epochs: int = 2) -> int:
    """Gives how many epochs were noted."""
    note, close = TRACKERS[tracker](folder / tracker)
    noted = []

    def callback(row: Row) -> None:
        note(row)
        noted.append(row)

    regard.train("classify", data={"size": 60}, epochs=epochs, callback=callback, out=folder / "run", progress=False)
    close()
    return len(noted)


if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "tensorboard"
    print(f"{name}: {main(name, Path('tracked'))} epochs noted")
