"""The check of a layer's arrays: each wrong type, shape and value is rejected."""

from types import SimpleNamespace

import numpy as np
import pytest
from rejects import rejects

from weft.demo.arrays import require_arrays

TYPES = {"weights": np.int8, "bias": np.float32, "float_weights": np.float32}


def layer(**changes):
    return SimpleNamespace(**{
        "weights": np.zeros((2, 3), np.int8), "bias": np.zeros(2, np.float32),
        "float_weights": np.zeros((2, 3), np.float32),
    } | changes)


def test_accepts_valid_arrays():
    require_arrays(layer(), TYPES)
    require_arrays(layer(bias=None), {"weights": np.int8})  # not in the list of types


@pytest.mark.parametrize("changes, error, message", [
    ({"weights": np.zeros(3, np.int8)}, ValueError, "weights must be of shape [N, K], not (3,)"),
    ({"weights": np.zeros((2, 0), np.int8)}, ValueError,
     "weights must be of shape [N, K], not (2, 0)"),
    ({"weights": np.zeros((2, 3), np.uint8)}, TypeError, "weights must be int8, not uint8"),
    ({"bias": np.zeros(3, np.float32)}, ValueError, "bias must be of shape (2,), not (3,)"),
    ({"float_weights": np.zeros((3, 2), np.float32)}, ValueError,
     "float_weights must be of shape (2, 3), not (3, 2)"),
    ({"bias": np.array([1, np.inf], np.float32)}, ValueError, "bias must be finite, not inf"),
])
def test_rejects_wrong_arrays(changes, error, message):
    with rejects(error, message):
        require_arrays(layer(**changes), TYPES)
