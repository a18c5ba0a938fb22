"""The driver of a network core, over good and bad connections, with a golden board."""

import dataclasses
import random
import threading
import time

import numpy as np
import pytest
from faulty_pipe import FAULTS, End, Faults, PipedBoard, flip
from golden_board import GoldenBoard
from golden_network_board import CYCLES, PipedNetworkBoard
from network_cores import network_core_config
from rejects import rejects

from weft.config import Config
from weft.frames import FrameType
from weft.host.accelerator import AcceleratorError
from weft.host.board import BoardTransport
from weft.host.network_driver import NetworkDriver
from weft.host.tcp import TcpServer, listen
from weft.host.transport import TransportError, TransportTimeout
from weft.network_core.descriptors import (
    ListEnd,
    ListError,
    ListLoad,
    ListReport,
    LoadTarget,
    NetworkState,
    split,
)

CHIP = network_core_config(2, 4, 4, 2, words=1024, b_words=8, lines=8, read_vectors=2)
BANKS = CHIP.banks
ACK_TIMEOUT = 0.05
GUARD = 600  # seconds after which a test hangs


def linked(board, **options):
    end = End(board)
    transport = BoardTransport(end, end, timeout=ACK_TIMEOUT)
    return NetworkDriver(transport, **{"timeout": GUARD, **options})


def at(number):
    return split(number, BANKS)


LIST = 600  # vector of the list that `loaded` writes
LOG = 900


def loaded(driver, result=b"result!", loads=3):
    """Write a result to vector 0, and a list of loads that names it."""
    driver.write(at(0), result.ljust(-(-len(result) // 4) * 4, b"?"))
    load = ListLoad(fill=1, fill_value=5, target=LoadTarget.B, words=2)
    end = ListEnd(result=at(0), result_bytes=len(result))
    driver.write(at(LIST), b"".join(d.pack() for d in [*[load] * loads, end]))


def test_runs_a_list():
    board = PipedNetworkBoard(CHIP)
    result = random.Random(1).randbytes(1024)
    with linked(board, config=CHIP) as driver:
        assert driver.status() == (NetworkState.IDLE, ListReport(ListError.NONE, 0, b"", CYCLES))
        for _ in range(2):
            loaded(driver, result)
            report = driver.run(at(LIST), at(LOG))
            assert report == ListReport(ListError.NONE, 0, result, CYCLES)
        assert driver.status()[0] == NetworkState.DONE
        assert driver.config == CHIP
    assert all(len(frame.payload) <= 1012 for frame in board.frames)


def test_the_memory_is_free_beside_a_list():
    found = []

    def beside():
        driver.write(at(700), bytes(range(200)))
        found.append(driver.read(at(700), 200))

    with linked(PipedNetworkBoard(CHIP)) as driver:
        loaded(driver)
        assert driver.run(at(LIST), at(LOG), beside=beside).result == b"result!"
        assert found == [bytes(range(200))]


def test_a_list_follows_its_writes_without_a_wait(monkeypatch):
    board, waits = PipedNetworkBoard(CHIP), []
    data = bytes(range(1, 7))
    with linked(board) as driver:
        loaded(driver)
        flush = driver._transport.flush

        def counted(timeout):
            waits.append(timeout)
            flush(timeout)

        monkeypatch.setattr(driver._transport, "flush", counted)
        writes = [
            dict(address=at(1000), data=data, run=3, pitch=2, pixels=2),
            dict(address=at(1010), data=bytes(3000)),
        ]
        assert driver.run(at(LIST), at(LOG), writes=writes).result == b"result!"
        assert len(waits) == 1
        assert driver.read(at(1000), 16) == b"\1\2\3\0ZZZZ\4\5\6\0ZZZZ"
        assert driver.read(at(1010), 8) == bytes(8)
        before = len(board.frames)
        with rejects(ValueError, "vectors must be in 0..3071, not 3072..3072"):
            driver.run(at(LIST), at(LOG), writes=[*writes, dict(address=at(3072), data=b"1234")])
        assert len(board.frames) == before


def test_an_exception_beside_a_list_aborts_it():
    def beside():
        raise KeyboardInterrupt

    board = PipedNetworkBoard(CHIP)
    with linked(board) as driver:
        loaded(driver)
        with pytest.raises(KeyboardInterrupt):
            driver.run(at(LIST), at(LOG), beside=beside)
        assert FrameType.ABORT in [frame.type for frame in board.frames]
        assert driver.run(at(LIST), at(LOG)).result == b"result!"


def test_reports_the_error_of_a_list():
    with linked(PipedNetworkBoard(CHIP)) as driver:
        driver.write(at(LIST), bytes(128))
        report = driver.run(at(LIST), at(LOG))
        assert report == ListReport(ListError.OPCODE, 0, b"", CYCLES)
        assert driver.status() == (NetworkState.ERROR, report)
        loaded(driver)
        assert driver.run(at(LIST), at(LOG)).result == b"result!"


WRITES = {
    "vectors": (5, 3001, {}),
    "pixels": (3, 3 * 700, dict(run=3, pitch=2, pixels=700)),
    "many rows": (4, 40 * 90, dict(run=5, pitch=3, pixels=8, row_step=at(4))),
    "long rows": (7, 3 * 2002, dict(run=7, pitch=2, pixels=286, row_step=at(30))),
    "upwards": (2500, 12 * 10, dict(run=12, pitch=200, pixels=1, row_step=at(-7))),
}


@pytest.mark.parametrize("case", WRITES)
def test_writes_and_reads(case):
    number, size, layout = WRITES[case]
    data, board = random.Random(case).randbytes(size), PipedNetworkBoard(CHIP)
    expected = board.memory.reshape(-1, 4).copy()
    run = layout.get("run") or size
    step = {"many rows": 7 * 3 + 4, "long rows": 285 * 2 + 30, "upwards": -7}.get(case, 0)
    for n in range(size // run):
        y, x = divmod(n, layout.get("pixels", 1))
        first, pixel = number + y * step + x * layout.get("pitch", 0), data[n * run :][:run]
        pixel = pixel.ljust(-(-run // 4) * 4, b"\0")
        expected[first : first + len(pixel) // 4] = np.frombuffer(pixel, np.uint8).reshape(-1, 4)
    with linked(board) as driver:
        driver.write(at(number), data, **layout)
        assert driver.read(at(0), CHIP.memory_bytes) == expected.tobytes()
        assert driver.read(at(9), 7) == expected[9:].tobytes()[:7]
        driver.write(at(number), b"", **layout)
        assert driver.read(at(9), 0) == b""
    assert board.memory.tobytes() == expected.tobytes()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", ["to_board", "to_host"])
def test_recovers_from_faults(fault, way):
    faults = Faults(FAULTS[fault], chance=0.2, seed=3)
    board = PipedNetworkBoard(CHIP, **{way: faults})
    with linked(board) as driver:
        for n in range(4):
            result = random.Random(n).randbytes(1024)
            loaded(driver, result)
            assert driver.run(at(LIST), at(LOG)) == ListReport(0, 0, result, CYCLES)
            assert driver.read(at(0), 1024) == result
    assert faults.done > 0


@pytest.mark.parametrize("fault", FAULTS)
def test_recovers_when_done_does_not_arrive(fault):
    faults = Faults(FAULTS[fault], chance=1, kinds=[FrameType.DONE])
    board = PipedNetworkBoard(CHIP, to_host=faults)
    with linked(board) as driver:
        loaded(driver)
        assert driver.run(at(LIST), at(LOG)) == ListReport(0, 0, b"result!", CYCLES)
        driver.write(at(LIST), bytes(128))
        assert driver.run(at(LIST), at(LOG)).error == ListError.OPCODE
    assert faults.done == 2
    assert [f.type for f in board.accepted].count(FrameType.START) == 2


def test_ends_a_list_that_takes_too_long():
    board = PipedNetworkBoard(CHIP)
    with linked(board) as driver:
        loaded(driver)
        board.busy = True
        with rejects(TransportTimeout, "the list did not end within 0.1 s"):
            driver.run(at(LIST), at(LOG), timeout=0.1)
        assert board.state == NetworkState.ABORTED and board.aborts == 2
        board.busy = False
        assert driver.run(at(LIST), at(LOG)).result == b"result!"


def test_an_interrupt_aborts_the_list(monkeypatch):
    board = PipedNetworkBoard(CHIP)
    with linked(board) as driver:
        loaded(driver)
        board.busy = True

        def interrupted(number):
            assert board.running
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(driver._transport, "receive_list", interrupted)
            with pytest.raises(KeyboardInterrupt):
                driver.run(at(LIST), at(LOG))
        assert board.state == NetworkState.ABORTED and not board.running
        board.busy = False
        assert driver.run(at(LIST), at(LOG)).result == b"result!"
        assert driver.read(at(0), 7) == b"result!"


def test_threads_take_turns():
    board = PipedNetworkBoard(CHIP)
    found = []
    with linked(board) as driver:
        loaded(driver)
        threads = [
            threading.Thread(target=lambda: found.append(driver.run(at(LIST), at(LOG)).result))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(GUARD)
    assert found == [b"result!"] * 4


def test_aborts_the_list_of_another_client():
    board = PipedNetworkBoard(CHIP)
    with linked(board) as driver:
        loaded(driver)
        board.busy = True
        driver._transport.start_list(at(LIST), 0)
        driver._transport.flush(GUARD)
    board.busy = False
    with linked(board) as driver:
        assert driver.run(at(LIST), at(LOG)).result == b"result!"
    assert board.aborts == 2


def test_reports_a_reset_during_a_list():
    board = PipedNetworkBoard(CHIP)
    with linked(board) as driver:
        loaded(driver)
        board.busy = True
        start = board.take_ordered
        board.take_ordered = lambda frame: (start(frame), board.reset())
        with rejects(TransportError, "the core was reset while a list ran"):
            driver.run(at(LIST), at(LOG))
        board.take_ordered, board.busy = start, False
        assert driver.run(at(LIST), at(LOG)).result == b"result!"


def test_reports_a_core_that_does_not_accept_frames():
    board = PipedNetworkBoard(CHIP)
    with linked(board) as driver:
        loaded(driver)
        board.to_board = Faults(flip, chance=1.0, kinds=[FrameType.WRITE])
        with rejects(TransportError, (
            "no acknowledgement after 20 retransmissions; is the board still connected?"
        )):
            driver.write(at(0), bytes(4))
        board.to_board.on = False
        driver.write(at(0), b"word")
        assert driver.read(at(0), 4) == b"word"


@pytest.mark.parametrize("arguments, text", [
    ((at(3072), b"1234", {}), "vectors must be in 0..3071, not 3072..3072"),
    ((at(3070), bytes(9), {}), "vectors must be in 0..3071, not 3070..3072"),
    ((at(3060), bytes(12), dict(run=1, pitch=2, pixels=12)),
     "vectors must be in 0..3071, not 3060..3082"),
    ((at(9), bytes(12), dict(run=1, pitch=2, pixels=1, row_step=at(-1))),
     "vectors must be in 0..3071, not -2..-2"),
    ((at(0), bytes(12), dict(run=5, pitch=1, pixels=1)),
     "run, pitch and pixels must be in 1..255, 2..255 and 1..65535, not 5, 1 and 1"),
    ((at(0), bytes(7), dict(run=3, pitch=1, pixels=2)),
     "data must be whole rows of 6 bytes, not 7 bytes"),
])
def test_rejects_a_write_before_it_is_sent(arguments, text):
    address, data, layout = arguments
    board = PipedNetworkBoard(CHIP)
    with linked(board) as driver:
        with rejects(ValueError, text):
            driver.write(address, data, **layout)
        with rejects(ValueError, "vectors must be in 0..3071, not 3071..3072"):
            driver.read(at(3071), 5)
        assert board.accepted == []
        loaded(driver)
        assert driver.run(at(LIST), at(LOG)).result == b"result!"


@pytest.mark.parametrize("target", [0, 1, 2])
def test_writes_a_core_without_loads(target):
    """The vectors of each memory, and none behind it."""
    config = dataclasses.replace(
        CHIP, array=dataclasses.replace(CHIP.array, rows=1), read_vectors=1, resident=True
    )
    board = PipedNetworkBoard(config)
    first, vectors = config.loaded_vector(target, 0), config.regions[1 + target]
    with linked(board) as driver:
        driver.write(split(first + vectors - 1, 1), b"1234")
        with rejects(ValueError, f"vectors must be in 0..1023, not {first}..{first + vectors}"):
            driver.write(split(first, 1), bytes(4 * vectors + 4))


def test_rejects_another_core():
    other = dataclasses.replace(CHIP, lines=16)
    with rejects(AcceleratorError, (
        f"the network core must be {CHIP.array.name} with hash {CHIP.hash:08x}, not"
        f" {CHIP.array.name} with hash {other.hash:08x}\nthe core's lines must be 8, not 16"
    )):
        linked(PipedNetworkBoard(other), config=CHIP)


def test_rejects_a_core_for_matrix_products():
    class Matrices(PipedBoard, GoldenBoard):
        def __init__(self):
            PipedBoard.__init__(self)
            GoldenBoard.__init__(self, Config(rows=2, cols=2))

    end = End(Matrices())
    with rejects(AcceleratorError, (
        "the core's registers do not describe a network core:"
        " the core must be a network core, not a product core"
    )):
        NetworkDriver(BoardTransport(end, end, timeout=ACK_TIMEOUT), timeout=GUARD)


def test_a_shared_board():
    """Over TCP, through a server that another client used before."""
    end = End(PipedNetworkBoard(CHIP))
    server = TcpServer(end, end, listen(), timeout=GUARD)
    thread = threading.Thread(target=server.serve)
    thread.start()
    for _ in range(2):
        with NetworkDriver(f"tcp://localhost:{server.port}", CHIP, timeout=GUARD) as driver:
            loaded(driver, bytes(range(250)) * 4)
            assert driver.run(at(LIST), at(LOG)).result == bytes(range(250)) * 4
        while server._owner is not None:  # until the server has noticed that the client left
            time.sleep(0.001)
    server.close()
    thread.join(GUARD)


def test_rejects_other_transports():
    with rejects(ValueError, (
        "a network core must be at a serial port, usb, tcp://host:port, uio:/dev/uio0 or"
        " mem:0x43c00000, not golden"
    )):
        NetworkDriver("golden")
