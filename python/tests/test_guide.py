"""The guide's Python runs as it stands there, on the run that the page before it trains."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", CHECKOUT / "target"))
# Whichever was built; the guide's commands want it.
PROGRAMS = [TARGET / profile / "regard" for profile in ("release", "debug")]
PAGES = [
    page.name
    for page in sorted((CHECKOUT / "docs/guide/en").glob("[0-9]*.md"))
    if "```python\n" in page.read_text(encoding="utf-8")
]


def test_there_is_a_page_with_python():
    assert PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_and_prints_what_it_quotes(page):
    program = next((path for path in PROGRAMS if path.exists()), None)
    if program is None:
        pytest.skip(f"no program `regard` was built into {TARGET}")
    number = str(int(page[:2]))
    command = [sys.executable, CHECKOUT / "docs/guide/check.py", program, number, "--python", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not run" not in done.stdout, done.stdout
