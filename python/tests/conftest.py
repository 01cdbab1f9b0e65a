import os

import numpy as np
import pytest

# Nothing is fetched while testing.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(autouse=True)
def fresh_compiler(request):
    """Tests that compile do not wear out each other's limits."""
    if "compile" in request.node.name:
        import torch

        torch._dynamo.reset()
