"""A simulated board with a network core, at the pins of its serial port, with the driver."""

import contextlib

import numpy as np
import pytest
from digits import MLP
from network_cores import MICRO
from network_programs import check_network
from rejects import rejects

import weft
from weft.frames import WRITE_FIELDS, FrameType
from weft.host.emulated import ListTransport
from weft.host.link import Frame
from weft.host.network_driver import NetworkDriver
from weft.host.transport import TransportTimeout
from weft.network_core.descriptors import (
    ListEnd,
    ListError,
    ListLoad,
    ListLoop,
    NetworkState,
    split,
)
from weft.sim.transport import DIVISOR, SimBoardTransport

TIMEOUT = 600


@pytest.fixture(scope="module")
def driver():
    with contextlib.closing(SimBoardTransport(MICRO)) as board:
        yield NetworkDriver(board, MICRO, timeout=TIMEOUT)


def at(number):
    return split(number, MICRO.banks)


@pytest.mark.slow
def test_memory_and_lists_over_the_wires(driver):
    rng, depth = np.random.default_rng(4), MICRO.array.depth
    data = rng.bytes(1100)
    driver.write(at(3), data)
    assert driver.read(at(3), 1100) == data
    driver.write(at(500), data[:60], run=3, pitch=2, pixels=10, row_step=at(5))
    first = b"".join(data[n : n + 3].ljust(2 * depth, b"\0")[:depth] for n in (27, 30))
    assert driver.read(at(518), depth) + driver.read(at(523), depth) == first
    driver.write(at(700), ListEnd(result=at(3), result_bytes=1000).pack())
    report = driver.run(at(700), at(800), timeout=TIMEOUT)
    assert (report.error, report.jobs, report.result) == (ListError.NONE, 0, data[:1000])


def test_the_bytes_on_the_wires_are_recorded(tmp_path):
    events = tmp_path / "events"
    with NetworkDriver(SimBoardTransport(MICRO, events=events), MICRO) as driver:
        driver.status()  # the first call restarts the connection
        before = len(events.read_text().splitlines())
        data = np.random.default_rng(5).bytes(40)
        driver.write(at(3), data)
        assert driver.read(at(3), 40) == data
        lines = events.read_text().splitlines()[before:]
    found = {way: [int(line[2:]) for line in lines if line[0] == way] for way in "><"}
    # WRITE and READ_MEMORY with their fields; ACK and DATA.
    frame = len(Frame(FrameType.ACK, 0).encode())
    assert len(found[">"]) == frame + WRITE_FIELDS + 40 + frame + 8
    assert len(found["<"]) == frame + frame + 40
    for cycles in found.values():
        assert np.all(np.diff(cycles) >= 10 * DIVISOR)
    assert found["<"][0] > found[">"][0]


@pytest.mark.slow
def test_errors_and_aborts_over_the_wires(driver):
    driver.write(at(0), bytes(128))
    report = driver.run(at(0), at(800), timeout=TIMEOUT)
    assert (report.error, report.jobs, report.result) == (ListError.OPCODE, 0, b"")
    load = ListLoad(fill=1, words=MICRO.b_words)
    endless = load, ListLoop(times=65_535, body=1, body_loads=1), ListEnd(result_bytes=4)
    driver.write(at(0), b"".join(descriptor.pack() for descriptor in endless))
    with rejects(TransportTimeout, "the list did not end within 0.1 s"):
        driver.run(at(0), at(800), timeout=0.1)
    assert driver.status()[0] == NetworkState.ABORTED
    driver.write(at(128 // MICRO.array.depth), ListEnd(result_bytes=4).pack())
    assert driver.run(at(0), at(800), timeout=TIMEOUT).result == load.pack()[:4]


def test_a_network_over_the_wires(driver):
    pytest.importorskip("tflite")
    program = weft.load(MLP).compile(MICRO)
    check_network(program, driver)


@pytest.mark.slow
def test_a_matrix_product_over_the_wires(driver):
    rng = np.random.default_rng(2)
    a, b = rng.integers(-128, 128, (4, 6), np.int8), rng.integers(-128, 128, (6, 5), np.int8)
    y = weft.Accelerator(ListTransport(driver, timeout=TIMEOUT)).matmul(a, b)
    assert np.array_equal(y, a.astype(int) @ b.astype(int))
