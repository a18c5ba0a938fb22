"""The number formats against values by hand, and numpy's names and sizes."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from weft.config import Config
from weft.formats import FORMATS, Number


def test_formats_by_hand():
    said = {
        dtype: {name: (n["name"], n["bits"]) for name, n in dataclasses.asdict(held).items()}
        for dtype, held in FORMATS.items()
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


@pytest.mark.parametrize("bits, size", [(8, 1), (16, 2), (32, 4)])
def test_bytes_follow_from_bits(bits, size):
    assert Number("x", bits).bytes == size


@pytest.mark.parametrize("dtype", FORMATS)
def test_names_and_sizes_equal_numpys(dtype):
    for number in vars(FORMATS[dtype]).values():
        of = ml_dtypes.bfloat16 if number.name == "bfloat16" else number.name
        assert (np.dtype(of).name, np.dtype(of).itemsize) == (number.name, number.bytes)


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_config_has_its_format(dtype):
    assert Config(dtype=dtype).format is FORMATS[dtype]
