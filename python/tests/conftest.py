import os

import numpy as np
import pytest

# Nothing is fetched while testing.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture
def rng():
    return np.random.default_rng(7)
