"""The program memory of a core behind a link: writes that go on, comparisons, tests that name it.
"""

import numpy as np
import pytest
from faulty_pipe import FAULTS, End, Faults
from golden_network_board import PipedNetworkBoard
from network_cores import PROGRAM
from rejects import rejects

from weft.frames import PROGRAM_BIT, WRITE_FIELDS, FrameType
from weft.host import memory_test, network_driver
from weft.host.board import BoardTransport
from weft.host.memory_test import full_test
from weft.host.network_driver import NetworkDriver
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportClosed
from weft.network_core.descriptors import split

PIECE = 2048  # bytes that are compared at once
SIZE = 16 << 10
DATA = np.random.default_rng(1).bytes(SIZE)
FIRST = 64  # vector
DEPTH = PROGRAM.array.depth


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(network_driver, "MAX_CHECK", PIECE)
    monkeypatch.setattr(memory_test, "_REST", 0)


def linked(board):
    end = End(board)
    return NetworkDriver(BoardTransport(end, end, timeout=0.05), PROGRAM, timeout=600)


def at(number):
    return split(number, PROGRAM.banks)


def content(board):
    first = FIRST * DEPTH
    return board.program[first : first + SIZE].tobytes()


def sent(board, size=40):
    """Bytes of a program that WRITE frames had; those of a test are short."""
    sizes = [len(frame.payload) - WRITE_FIELDS for frame in board.frames
             if frame.type == FrameType.WRITE and frame.payload[PROGRAM_BIT // 8:][:1] >= b"\x80"]
    return sum(count for count in sizes if count > size)


class Breaking(PipedNetworkBoard):
    """Its connection ends before it takes a frame with a number."""

    left = None

    def act(self, frame):
        if self.left == 0:
            self.end.pipe.put(b"")
            return
        if self.left is not None:
            self.left -= 1
        super().act(frame)


def test_a_program_is_sent_once():
    board = PipedNetworkBoard(PROGRAM)
    parts = []
    for times in range(2):
        with linked(board) as driver:
            assert driver.program_bytes == PROGRAM.program_bytes
            driver.watch = parts.append
            driver.write_program(at(FIRST), DATA)
            assert (driver.program_sent, driver.program_found) == (SIZE * (not times), SIZE * times)
            assert driver.read_program(at(FIRST), SIZE) == DATA
            assert driver.program_has(at(FIRST), DATA[:PIECE])
            assert not driver.program_has(at(FIRST), DATA[1 : PIECE + 1])
        assert content(board) == DATA
    assert sent(board) == SIZE
    assert parts == [(n + 1) * PIECE / SIZE for n in range(SIZE // PIECE)] * 2
    assert set(board.program[: FIRST * DEPTH]) == {0x5A}  # the test has left what was there


def test_only_pieces_that_differ_are_sent():
    board = PipedNetworkBoard(PROGRAM)
    with linked(board) as driver:
        driver.write_program(at(FIRST), DATA)
        changed = DATA[:5000] + bytes([DATA[5000] ^ 1]) + DATA[5001:]
        driver.write_program(at(FIRST), changed)
        assert content(board) == changed
    assert sent(board) == SIZE + PIECE


@pytest.mark.slow
def test_a_broken_upload_goes_on_at_every_frame(monkeypatch):
    monkeypatch.setattr(memory_test, "_SAMPLE", 1)
    monkeypatch.setattr(memory_test, "_PATTERNS", ())
    whole = PipedNetworkBoard(PROGRAM)
    with linked(whole) as driver:
        driver.write_program(at(FIRST), DATA)
    frames = len(whole.frames)
    broken = 0
    for number in range(frames):
        board = Breaking(PROGRAM)
        driver = linked(board)
        board.left = number
        try:
            driver.write_program(at(FIRST), DATA)
        except TransportClosed:
            broken += 1
        else:
            assert number >= frames - 5  # the numbers of a restart are random
        driver.close()
        board.left, before = None, content(board)
        there = sum(
            before[n : n + PIECE] == DATA[n : n + PIECE] for n in range(0, SIZE, PIECE)
        )
        with linked(board) as driver:
            driver.write_program(at(FIRST), DATA)
            assert driver.program_found == there * PIECE
        assert content(board) == DATA
    assert broken >= frames - 5


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_connection(fault):
    faults = [Faults(FAULTS[fault], chance=0.04, seed=seed) for seed in (1, 2)]
    board = PipedNetworkBoard(PROGRAM, to_board=faults[0], to_host=faults[1])
    with linked(board) as driver:
        driver.write_program(at(FIRST), DATA)
        for each in faults:
            each.on = False
        assert driver.read_program(at(FIRST), SIZE) == DATA
    assert faults[0].done and faults[1].done


def stuck(line):
    """Vectors without this line of their number."""
    return {"place": lambda numbers: numbers & ~(1 << line)}


def spoilt(mask):
    """Each vector keeps the bits of a mask only."""
    mask = np.frombuffer(mask, np.uint8)
    return {"kept": lambda numbers, vectors: vectors & mask}


def half(numbers, vectors):
    """Of every second vector in the upper half, the last two bytes are lost."""
    lost = (numbers >= PROGRAM.program_bytes // DEPTH // 2)[:, None] & (np.arange(DEPTH) >= 2)
    return np.where(lost, 0xFF, vectors).astype(np.uint8)


BROKEN = {
    "stuck line": (stuck(7), "address lines: byte addresses that differ by 0x200 are the same place"
                   ),
    "small": (
        {"place": lambda numbers: numbers % 2048},
        "address lines: the memory has 8,192 bytes, and must have 24,576",
    ),
    "no memory": (
        spoilt(bytes(4)),
        "data lines: wrong bits of a beat of 64: 0..63; always 0: 0..63",
    ),
    "a bit": (
        spoilt(b"\xff\xff\xff\xef"),
        "data lines: wrong bits of a beat of 64: 28, 60; always 0: 28, 60",
    ),
    "half": ({"kept": half}, "are wrong, the first one at byte 0x4000; only bytes 2, 3 of 4"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_memory_is_named_before_a_program_is_sent(fault):
    board, (attributes, text) = PipedNetworkBoard(PROGRAM), BROKEN[fault]
    for name, value in attributes.items():
        setattr(board, name, value)
    with linked(board) as driver:
        with pytest.raises(AcceleratorError) as raised:
            driver.write_program(at(FIRST), DATA)
        assert str(raised.value).startswith("the program memory fails its test: ")
        assert text in str(raised.value)
    assert not sent(board)


def test_a_memory_that_loses_bits_later():
    board = PipedNetworkBoard(PROGRAM)

    def kept(numbers, vectors):
        return vectors if len(vectors) < 50 else vectors & 0xFE

    board.kept = kept
    with linked(board) as driver, rejects(
        AcceleratorError, "the program memory does not keep what is written: bytes 256..2,303 are"
        " wrong; weft selftest tests the memory"
    ):
        driver.write_program(at(FIRST), DATA)


def test_the_full_test():
    board = PipedNetworkBoard(PROGRAM)
    with linked(board) as driver:
        found = {name: check() for name, check in full_test(driver)}
        assert [failure for _, failure in found.values()] == [None] * 6
        assert found["address lines"][0] == "13 lines, 24,576 bytes"
        board.kept = lambda numbers, vectors: np.where(
            (numbers == 5000)[:, None], vectors & 0x7F, vectors
        ).astype(np.uint8)
        board.program[:] = 0
        found = {name: check()[1] for name, check in full_test(driver)}
        assert found.pop("refresh") == "2 of 24,576 bytes are wrong after 0 s"
        assert found.pop("patterns") == "4 of 49,152 bytes are wrong"
        assert set(found.values()) == {None}


def test_byte_enables_that_do_not_work():
    board = PipedNetworkBoard(PROGRAM)
    write = board.write_program

    def whole_beats(address, data):
        write(address & ~1, data * 2 if len(data) == DEPTH else data)

    board.write_program = whole_beats
    with linked(board) as driver:
        checks = dict(full_test(driver))
        assert "vectors are wrong" in checks["byte enables"]()[1]


def test_an_access_beyond_the_memory_is_refused():
    board = PipedNetworkBoard(PROGRAM)
    with linked(board) as driver:
        before = len(board.frames)
        with rejects(
            ValueError, "bytes of the program memory must be in 0..24575, not 20480..36863"
        ):
            driver.write_program(at(20480 // DEPTH), DATA)
        assert len(board.frames) == before
