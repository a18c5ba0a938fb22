"""The C driver packs panels as the Python driver does, for any shape, address and stride."""

import ctypes
import itertools

import numpy as np
import pytest
from tiers import tiers

from weft.config import Config
from weft.geometry import operands
from weft.host.packing import pack
from weft.ip import Ip
from weft.kit.files.weft_driver import Driver

SMALL = dict(a_words=64, b_words=64)
# The words of each Config are divided into pieces of four bytes in a different way.
CONFIGS = {
    "four lines a piece": dict(rows=4, cols=8),
    "two words a piece, four words a piece": dict(rows=2, cols=1),
    "one piece a line": dict(rows=2, cols=3, depth=4, bytes_in=8, bytes_out=8),
    "many pieces a line": dict(rows=1, cols=2, depth=8),
    "two lines a piece": dict(rows=4, cols=2, depth=2),
    "two words a piece": dict(rows=1, cols=2, depth=2),
    "words larger than a stream word": dict(rows=12, cols=5, bytes_in=8, bytes_out=8),
    "irregular pieces": dict(rows=3, cols=6, depth=1),
    "three values": dict(rows=2, cols=4, depth=3),
    "a byte at a time": dict(rows=4, cols=3, depth=2, bytes_in=1, bytes_out=1, lanes=1),
    "two bytes at a time": dict(rows=4, cols=1, bytes_in=2, bytes_out=2, lanes=2),
    "floats": dict(dtype="bf16", rows=4, cols=1, c_words=32),
    "floats, two lines": dict(dtype="bf16", rows=2, cols=3, c_words=32),
}


class Memory:
    """A device with memory and without registers."""

    def __init__(self, bytes):
        self.memory = np.zeros(bytes, np.uint8)

    def read(self, address):
        raise AssertionError("packing must not read a register")

    write = exchange = read


# As with a compiler that has no word type that may alias bytes.
BYTEWISE = ("weft_stream_io.h", "#if defined(__GNUC__)\n", "#if 0\n")


@pytest.fixture(params=tiers(
    {name: name for name in (*CONFIGS, "no words of memory")}, "four lines a piece",
    "one piece a line", "irregular pieces", "a byte at a time", "floats, two lines",
    "no words of memory",
))
def packer(request, libraries):
    """``(driver, Config)`` with bus stream, which packs commands into memory."""
    config = Config(**CONFIGS.get(request.param, CONFIGS["four lines a piece"]), **SMALL)
    changes = () if request.param in CONFIGS else (BYTEWISE,)
    driver = Driver(libraries(Ip(config=config, bus="stream"), changes), Memory(1 << 17))
    driver.lib.weft_put_lines.argtypes = [
        ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t,
        ctypes.c_uint32, ctypes.c_uint32,
    ]
    return driver, config


def packed(driver, side, lines, size):
    """The ``size`` bytes into which the driver packs an operand [lines, k]."""
    end = driver.used
    buffer = driver.alloc((size + 64,), np.uint8)
    buffer[:] = 0x5A
    results = driver.alloc((64,), np.uint8)
    ctypes.memset(driver.core, 0, len(driver.core))
    driver.lib.weft_test_buffers(
        driver.core, buffer.ctypes.data, size, results.ctypes.data, 64, driver._callbacks[2]
    )
    # The bytes around the operand are not zero, so a read outside it changes the panels.
    driver.call("weft_put_lines", side, lines.ctypes.data, *lines.strides, *lines.shape)
    assert (buffer[size:] == 0x5A).all()
    driver.used = end
    return buffer[:size].tobytes()


def test_packs_as_the_python_driver(packer):
    driver, config = packer
    kind = config.data_type.a
    rng = np.random.default_rng(23)
    driver.device.memory[:] = rng.integers(1, 256, len(driver.device.memory))
    step, start = kind.bytes, driver.used
    for side, operand in enumerate(operands(config)):
        edge, depth = operand.edge, operand.depth
        sizes = sorted({1, edge - 1, edge, edge + 1, 2 * edge} - {0})
        depths = sorted({1, 2, 3, 4, depth, depth + 1, 4 * depth, 21, 32})
        for count, (lines, k) in enumerate(itertools.product(sizes, depths)):
            # Row-major and column-major operands, and slices of a matrix, at every alignment.
            for gap, skew, order in (
                (0, 0, "C"), (0, 0, "F"), (count % 5, step * (count % 4), "CF"[count % 2]),
            ):
                driver.used = start
                shape = (lines, k + gap) if order == "C" else (k, lines + gap)
                matrix = driver.alloc(shape, f"u{step}", skew=skew)
                array = matrix[:, :k] if order == "C" else matrix[:, :lines].T
                if order == "C" and count % 3 == 0:
                    array = array[::-1]
                want = pack(array, operand)
                assert packed(driver, side, array, len(want)) == want, (lines, k, gap, skew, order)


def test_writes_nothing_after_a_buffer_that_is_too_small(packer):
    driver, config = packer
    operand = operands(config)[0]
    array = driver.put(np.ones((operand.edge, 4 * operand.depth), f"u{operand.size}"))
    size = len(pack(array, operand))
    for less in range(min(4, config.bytes_in), min(size, 24), min(4, config.bytes_in)):
        packed(driver, 0, array, size - less)  # checks the bytes after the buffer
