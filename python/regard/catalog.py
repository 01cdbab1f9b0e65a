"""What can be trained, and what can be set."""

from __future__ import annotations

import json
from typing import Any

from . import _native
from ._options import settings


def tasks() -> dict[str, str]:
    """The tasks that ``train`` knows, each with what it does.

    >>> import regard
    >>> regard.tasks()["regress"]
    'a number from numbers'
    """
    return dict(_native.task_names())


def options(task: str, **given: Any) -> dict[str, dict[str, Any]]:
    """The options of a task, by section, with their defaults, or with what is given in their place. Those that have no
    default, such as the paths of your own files, are not among them.

    >>> import regard
    >>> regard.options("regress", epochs=3)["training"]["epochs"]
    3
    """
    found: dict[str, dict[str, Any]] = json.loads(_native.task_options(task, settings(given)))
    return found
