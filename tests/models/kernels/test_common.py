"""The kernels that all runtimes share, and the table of kernels."""

import numpy as np
import pytest

from weft.models import ModelError
from weft.models.kernels import run


def test_reshape_and_transpose():
    x = np.arange(6, dtype=np.int8)
    [y] = run("reshape", [x], {"shape": (2, 3)})
    [z] = run("transpose", [y], {"axes": (1, 0)})
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert z.tolist() == [[0, 3], [1, 4], [2, 5]] and z.flags["C_CONTIGUOUS"]


def test_table_is_indexed_by_the_byte():
    table = np.arange(256).astype(np.int16)
    [y] = run("table", [np.array([[0, 127], [-128, -1]], np.int8)], {"table": table})
    assert y.tolist() == [[0, 127], [128, 255]]
    assert run("table", [np.array(-1, np.int8)], {"table": table})[0].shape == ()


def test_rejects_an_unknown_kernel():
    with pytest.raises(ModelError, match="kernel must be one of .*, not 'none'"):
        run("none", [], {})
