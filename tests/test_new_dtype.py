"""A data type that only this file knows, through Config, hardware, models and driver."""

import numpy as np
import pytest
from amaranth.hdl import unsigned
from core_replay import replayed_matmul
from rejects import rejects

from weft.commands import JobFlag, Number
from weft.config import Config, ConfigError
from weft.dtypes import DTYPES, DType
from weft.geometry import memories
from weft.golden import matmul
from weft.host import Accelerator
from weft.host.golden_core import GoldenCore
from weft.host.product import Product, Side
from weft.hw.arith.mac import PlainMac
from weft.hw.dtypes import DTypeHardware
from weft.mac_cells import MAC_CELLS, MacCell
from weft.registers import decode, describe

SMALL = dict(rows=2, cols=3, lanes=1, bytes_in=4, bytes_out=4, a_words=64, b_words=64)


class Uint8(DType):
    """uint8 x uint8 -> int32, without an epilogue."""

    name = "uint8"
    a = b = narrow = Number("uint8", 8)
    acc = Number("int32", 32)
    max_k = 33_025  # times 255 * 255 fits int32

    def mac_cell(self, config):
        return "uint8"

    def arithmetic(self, config):
        return "sums of uint8 products, exact in 32 bits"


class UnsignedMac(PlainMac):
    """``dot(a, b)`` of unsigned bytes."""

    A = B = unsigned(8)


class UnsignedCore(GoldenCore):
    """The golden core: exact sums."""

    OPERAND = np.uint8

    def sums(self, job, a, b, kept):
        return matmul(a, b.T, start=kept)


class UnsignedProduct(Product):
    """Raw sums of uint8 operands."""

    ARGUMENTS = frozenset()
    flags, dtype = JobFlag(0), np.dtype(np.int32)

    def __init__(self, a, b, owner):
        super().__init__(*(
            Side(name, given, owner, lambda name, array: self.to_core_type(name, array)[0])
            for name, given in (("a", a), ("b", b))
        ))
        self.arrange()

    @staticmethod
    def to_core_type(name, array):
        array = np.asarray(array)
        if array.dtype != np.uint8:
            raise TypeError(f"{name} must be uint8, not {array.dtype}")
        return array, array.dtype

    @staticmethod
    def sums(lines):
        return None

    def empty_result(self):
        return np.zeros(self.raw_shape, self.dtype)


@pytest.fixture(autouse=True)
def uint8():
    cell = MacCell(name="uint8", multiplier="plain", latency=UnsignedMac.LATENCY)
    MAC_CELLS.register(cell, hardware=UnsignedMac)
    DTYPES.register(
        Uint8(), hardware=DTypeHardware, golden=UnsignedCore, driver=UnsignedProduct
    )
    yield
    DTYPES.remove("uint8")
    MAC_CELLS.remove("uint8")


def operands(*shapes):
    rng = np.random.default_rng(1)
    return [rng.integers(0, 256, shape).astype(np.uint8) for shape in shapes]


def expected(a, b):
    return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)


@pytest.mark.parametrize("fields", [{}, {"depth": 3, "drain": "folded", "lanes": 2}])
def test_products_on_the_hardware(fields):
    config = Config(dtype="uint8", **{**SMALL, **fields})
    a, b = operands((5, 7), (7, 4))
    np.testing.assert_array_equal(replayed_matmul(config, a, b), expected(a, b))


def test_extremes_on_the_hardware():
    a, b = np.full((2, 40), 255, np.uint8), np.full((40, 3), 255, np.uint8)
    result = replayed_matmul(Config(dtype="uint8", **SMALL), a, b)
    assert np.all(result == 40 * 255 * 255)


def test_resident_operands_and_k_in_several_jobs():
    a, b = operands((5, 200), (200, 4))
    with Accelerator("golden", Config(dtype="uint8", **SMALL)) as accelerator:
        np.testing.assert_array_equal(accelerator.matmul(a, b), expected(a, b))
        with accelerator.load(b[:20]) as weights:
            np.testing.assert_array_equal(
                accelerator.matmul(a[:, :20], weights), expected(a[:, :20], b[:20])
            )


def test_a_config_of_the_data_type():
    config = Config(dtype="uint8")
    assert (config.rows, config.requantize, config.activation) == (4, "none", "none")
    assert (config.mac_cell, config.name) == ("uint8", "4x4x1_uint8")
    assert len(memories(config)) == 2
    assert decode(describe(config)) == config


def test_rules_of_the_data_type():
    with rejects(ConfigError, (
        "requantize must be none with dtype 'uint8', not 'tflite'\n"
        "b_zero_point must be none with dtype 'uint8', not 'column'"
    )):
        Config(dtype="uint8", requantize="tflite", b_zero_point="column")


def test_rejects_operands_of_another_type():
    a, b = operands((2, 2), (2, 2))
    with Accelerator("golden", Config(dtype="uint8", **SMALL)) as accelerator:
        with rejects(TypeError, "a must be uint8, not int8"):
            accelerator.matmul(a.view(np.int8), b)
        with rejects(TypeError, "bias must be absent where Config.dtype is uint8, not given"):
            accelerator.matmul(a, b, bias=0)


@pytest.mark.slow
def test_products_on_verilator(transports):
    config = Config(dtype="uint8", **SMALL)
    a, b = operands((9, 33), (33, 7))
    with Accelerator(transports(config)) as accelerator:
        np.testing.assert_array_equal(accelerator.matmul(a, b), expected(a, b))
