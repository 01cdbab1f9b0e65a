import importlib
import os

import numpy as np
import pytest

# Nothing is fetched while testing.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


#: What CI installs so that these tests are run there: one that is missing is an error, and no reason to skip.
PEERS = (
    "torch", "transformers", "torch_geometric", "entmax", "ml_dtypes", "polars", "datasets", "sklearn", "mypy", "pyright",
    "onnx", "onnxscript", "accelerate", "lightning", "tensorboard", "mlflow", "wandb",
)  # fmt: skip

if os.environ.get("REGARD_CI") == "1":
    importorskip = pytest.importorskip

    def wanted(name, *more, **options):
        """As `pytest.importorskip`, which in CI skips nothing that CI installs."""
        if name.partition(".")[0] in PEERS:
            return importlib.import_module(name)
        return importorskip(name, *more, **options)

    pytest.importorskip = wanted


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(autouse=True)
def fresh_compiler(request):
    """Tests that compile do not wear out each other's limits."""
    if "compile" in request.node.name:
        import torch

        torch._dynamo.reset()
