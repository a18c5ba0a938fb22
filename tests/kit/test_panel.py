"""The driver's panels against those of the host driver: any shape, place and stride."""

import ctypes
import itertools

import numpy as np
import pytest

from weft.config import Config
from weft.geometry import operands
from weft.host.packing import pack
from weft.ip import Ip
from weft.kit.files.weft_driver import Driver

SMALL = dict(a_words=64, b_words=64)
# Each cuts words of its operands in another way; the last ones in no regular way.
CONFIGS = {
    "four lines a piece": dict(rows=4, cols=8),
    "two words a piece, four words a piece": dict(rows=2, cols=1),
    "pieces of a line": dict(rows=2, cols=3, depth=4, bytes_in=8, bytes_out=8),
    "many pieces of a line": dict(rows=1, cols=2, depth=8),
    "two lines a piece": dict(rows=4, cols=2, depth=2),
    "two words of a line": dict(rows=1, cols=2, depth=2),
    "words larger than those of the stream": dict(rows=12, cols=5, bytes_in=8, bytes_out=8),
    "no piece is like another": dict(rows=3, cols=6, depth=1),
    "three values": dict(rows=2, cols=4, depth=3),
    "a byte at a time": dict(rows=4, cols=3, depth=2, bytes_in=1, bytes_out=1, lanes=1),
    "two bytes at a time": dict(rows=4, cols=1, bytes_in=2, bytes_out=2, lanes=2),
    "floats": dict(dtype="bf16", rows=4, cols=1, c_words=32),
    "floats, two lines": dict(dtype="bf16", rows=2, cols=3, c_words=32),
}


class Memory:
    """Memory, and no registers."""

    def __init__(self, bytes):
        self.memory = np.zeros(bytes, np.uint8)

    def read(self, address):
        raise AssertionError("packing must not read a register")

    write = exchange = read


# As for a compiler that has no word which may alias bytes.
BYTEWISE = ("weft_words.h", "#if defined(__GNUC__)\n", "#if 0\n")


@pytest.fixture(params=[*CONFIGS, "no words of memory"])
def packer(request, libraries):
    """``(driver, Config)``: of a stream, whose commands are packed into memory."""
    config = Config(**CONFIGS.get(request.param, CONFIGS["four lines a piece"]), **SMALL)
    changes = () if request.param in CONFIGS else (BYTEWISE,)
    driver = Driver(libraries(Ip(config=config, bus="stream"), changes), Memory(1 << 17))
    driver.lib.weft_put_lines.argtypes = [
        ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t,
        ctypes.c_uint32, ctypes.c_uint32,
    ]
    return driver, config


def packed(driver, side, lines, size):
    """The bytes that the driver makes of an operand's lines [lines, k]."""
    end = driver.taken
    room = driver.room((size + 64,), np.uint8)
    room[:] = 0x5A
    results = driver.room((64,), np.uint8)
    ctypes.memset(driver.core, 0, len(driver.core))
    driver.lib.weft_test_buffer(
        driver.core, room.ctypes.data, size, results.ctypes.data, 64, driver._kept[2]
    )
    # Nothing that is not the operand's may show: bytes around it are not zero.
    driver.call("weft_put_lines", side, lines.ctypes.data, *lines.strides, *lines.shape)
    assert (room[size:] == 0x5A).all()
    driver.taken = end
    return room[:size].tobytes()


def test_packs_as_the_host_does(packer):
    driver, config = packer
    kind = config.format.a
    rng = np.random.default_rng(23)
    driver.space.memory[:] = rng.integers(1, 256, len(driver.space.memory))
    step, start = kind.bytes, driver.taken
    for side, operand in enumerate(operands(config)):
        edge, depth = operand.edge, operand.depth
        sizes = sorted({1, edge - 1, edge, edge + 1, 2 * edge} - {0})
        depths = sorted({1, 2, 3, 4, depth, depth + 1, 4 * depth, 21, 32})
        for count, (lines, k) in enumerate(itertools.product(sizes, depths)):
            # Rows of k, columns of lines, and parts of a matrix; from every address.
            for gap, skew, order in (
                (0, 0, "C"), (0, 0, "F"), (count % 5, step * (count % 4), "CF"[count % 2]),
            ):
                driver.taken = start
                shape = (lines, k + gap) if order == "C" else (k, lines + gap)
                whole = driver.room(shape, f"u{step}", skew=skew)
                array = whole[:, :k] if order == "C" else whole[:, :lines].T
                if order == "C" and count % 3 == 0:
                    array = array[::-1]
                want = pack(array, operand)
                assert packed(driver, side, array, len(want)) == want, (lines, k, gap, skew, order)


def test_writes_nothing_behind_a_buffer_that_is_too_small(packer):
    driver, config = packer
    operand = operands(config)[0]
    array = driver.put(np.ones((operand.edge, 4 * operand.depth), f"u{operand.size}"))
    size = len(pack(array, operand))
    for less in range(min(4, config.bytes_in), min(size, 24), min(4, config.bytes_in)):
        packed(driver, 0, array, size - less)  # looks there
