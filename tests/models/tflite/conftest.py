"""The random numbers of the tests of TFLite files."""

import numpy as np
import pytest


@pytest.fixture
def rng(request):
    """A generator whose seed is the name of the test."""
    return np.random.default_rng(list(request.node.name.encode()))
