"""Trains any task by several processes, under ``torchrun``.

    torchrun --nproc-per-node 2 -m regard.torch.train translate --out runs/mine --set epochs=5
    torchrun --nproc-per-node 2 -m regard.torch.train --resume runs/mine

Each process takes its share of every batch, so ``training.batch_size`` is the batch of all of them together.
"""

from __future__ import annotations

import argparse
import os
import sys

import torch.distributed as dist

from ..training import train_settings


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; gives its status.

    >>> from regard.torch.train import main
    >>> main(["no-such-task"])
    1
    """
    parser = argparse.ArgumentParser(prog="regard.torch.train", description="Train a task by several processes.")
    parser.add_argument("task", nargs="?", help="translate, label, classify, …")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one option; may be repeated")
    parser.add_argument("--config", metavar="FILE.toml", help="options from a file")
    parser.add_argument("--out", metavar="FOLDER", help="where the run is kept")
    parser.add_argument("--resume", metavar="FOLDER", help="the run to go on with")
    parser.add_argument("--overwrite", action="store_true", help="replace the run in the folder of --out")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 or auto; cuda is each process's own GPU")
    given = parser.parse_args(arguments)
    if given.device == "cuda":
        given.device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if several and given.device == "auto":
        print("regard: several processes each name their device: --device cpu or --device cuda", file=sys.stderr)
        return 1
    if several:
        dist.init_process_group("gloo")
    try:
        train_settings(
            given.task,
            given.set,
            out=given.out,
            resume=given.resume,
            overwrite=given.overwrite,
            config=given.config,
            device=given.device,
        )
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        print(f"regard: {error}", file=sys.stderr)
        return 1
    finally:
        if several and dist.is_initialized():
            dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
