"""The examples in docstrings and in the README run, and every public thing has one."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import regard
import regard.torch

MODULES = sorted(
    {"regard", "regard.torch"}
    | {m.name for m in pkgutil.walk_packages(regard.__path__, "regard.") if not m.name.split(".")[-1].startswith("_")}
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    if name.split(".")[-1] in ("transformers", "ray", "sklearn"):
        pytest.importorskip(name.split(".")[-1])
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("where", [regard, regard.torch])
def test_everything_public_is_documented_and_what_is_called_has_an_example(where):
    for name in where.__all__:
        thing = getattr(where, name)
        assert thing.__doc__, name
        if name not in ("Aux", "instruction_set", "deactivate", "is_active"):
            assert ">>>" in thing.__doc__, name


README = re.findall(r"```python\n(.*?)```", (Path(__file__).parent.parent / "README.md").read_text(), re.DOTALL)


def test_the_readme_has_all_its_examples():
    assert len(README) == 6


@pytest.mark.parametrize("block", README, ids=["numpy", "torch", "transformers", "runs", "memory", "ray"])
def test_the_examples_of_the_readme_run(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for package in ("transformers", "ray"):
        if f"import regard.{package}" in block:
            pytest.importorskip(package)
    exec(compile(block, "README.md", "exec"), {})
