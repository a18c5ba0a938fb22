"""The number formats of the data types by hand, and numpy's names and sizes."""

import ml_dtypes
import numpy as np
import pytest

from weft.config import Config
from weft.dtypes import DTYPES

NUMBERS = "a", "b", "acc", "narrow"


def test_formats_by_hand():
    said = {
        dtype: {name: (getattr(held, name).name, getattr(held, name).bits) for name in NUMBERS}
        for dtype, held in DTYPES.items()
    }
    assert said == {
        "int8": {
            "a": ("int8", 8), "b": ("int8", 8), "acc": ("int32", 32), "narrow": ("int8", 8),
        },
        "bf16": {
            "a": ("bfloat16", 16), "b": ("bfloat16", 16), "acc": ("float32", 32),
            "narrow": ("bfloat16", 16),
        },
    }


@pytest.mark.parametrize("dtype", DTYPES)
def test_names_and_sizes_equal_numpys(dtype):
    for name in NUMBERS:
        number = getattr(DTYPES[dtype], name)
        of = ml_dtypes.bfloat16 if number.name == "bfloat16" else number.name
        assert (np.dtype(of).name, np.dtype(of).itemsize) == (number.name, number.bytes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_config_has_its_data_type(dtype):
    assert Config(dtype=dtype).data_type is DTYPES[dtype]


@pytest.mark.parametrize("dtype, limit", [("int8", 131071), ("bf16", None)])
def test_the_largest_k(dtype, limit):
    assert DTYPES[dtype].max_k == limit
