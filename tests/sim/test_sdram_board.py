"""A simulated board whose program memory is an SDRAM, at the pins of its serial port."""

import contextlib
import queue
import threading
from dataclasses import replace

import numpy as np
import pytest
from digits import CNN, MLP
from graph_runner import run_graph
from network_core_networks import NetworkBuilder
from network_cores import PROGRAM
from network_programs import random_inputs
from products import integers
from rejects import rejects

import weft
from weft.cli import main
from weft.design import PerKind
from weft.designs import design_from_toml
from weft.host import memory_test, network_driver
from weft.host.board import BoardTransport
from weft.host.emulated import ListTransport
from weft.host.network_driver import NetworkDriver
from weft.host.transport import TransportClosed
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.runners import GoldenRunner
from weft.models.target import NetworkTarget
from weft.network_core.cycles import ProgramTiming
from weft.network_core.descriptors import split
from weft.sdram import SDRAM_CHIPS, SdramPhase
from weft.sim import transport
from weft.sim.sdram import (
    PHASE,
    RIGHT_PHASES,
    SDRAM_MHZ,
    simulated_chip,
    simulated_memory,
)
from weft.sim.transport import ACK_TIMEOUT, SimBoardTransport, start, wait_or_kill

pytestmark = pytest.mark.slow

TIMEOUT = 600
CHIP = simulated_chip(PROGRAM)
TARGET = NetworkTarget("board", PROGRAM, memory=simulated_memory(PROGRAM))
DATA = np.random.default_rng(3).bytes(16 << 10)


@pytest.fixture(scope="module")
def driver():
    with contextlib.closing(SimBoardTransport(PROGRAM)) as board:
        yield NetworkDriver(board, PROGRAM, timeout=TIMEOUT)


def at(number):
    return split(number, PROGRAM.banks)


def test_the_chip_of_a_board():
    assert CHIP == SDRAM_CHIPS["IS42S16160G-7"]
    for of in simulated_chip, simulated_memory:
        assert of(replace(PROGRAM, program_words=0)) is None
    with rejects(
        ValueError, "program memory of a simulated board must have at most 67,108,864 bytes, not"
        " 100,663,296"
    ):
        simulated_chip(replace(PROGRAM, program_words=1 << 22, array=replace(
            PROGRAM.array, depth=8
        )))


@pytest.mark.parametrize("file", [CNN, pytest.param(MLP, marks=pytest.mark.long)])
def test_a_network_that_is_larger_than_the_memory_of_the_chip(driver, file):
    pytest.importorskip("tflite")
    program = weft.load(file).compile(TARGET)
    used = program.memory_used + program.program_memory_used
    assert used > PROGRAM.memory_bytes and len(program.segments) == 1
    assert program.lists_on_chip and program.streamed > 0
    x = random_inputs(program, 2)
    with program.open(GoldenRunner(PROGRAM)) as session:
        wanted = session(x)
    session = program.open(driver, timeout=TIMEOUT)
    assert np.array_equal(session(x), wanted)
    assert session.cycles == pytest.approx(program.cycles, rel=0.01)
    before = driver.program_sent, driver.program_found
    assert np.array_equal(program.open(driver, timeout=TIMEOUT)(x), wanted)
    assert driver.program_sent == before[0] and driver.program_found > before[1]


def test_many_small_loads(driver):
    """Of depthwise layers, whose words are single vectors: the core takes half a beat a cycle."""
    rng = np.random.default_rng(3)
    builder = NetworkBuilder(rng, (1, 2, 3, 128))
    builder.convolution(builder.convolution(0, 1, groups=128), 1, groups=128)
    graph = builder.graph()
    program = compile_network_core(graph, TARGET)
    assert program.streamed > 20_000
    x = integers(rng, np.int8, 1, 2, 3, 128)
    session = program.open(driver, timeout=TIMEOUT)
    np.testing.assert_array_equal(session(x), run_graph(graph, [x])[graph.outputs[0]])
    assert session.cycles == pytest.approx(program.cycles, rel=0.01)


@pytest.mark.parametrize("masks", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_chip_of_32_bits(masks, monkeypatch):
    """That of a Tang Nano 20K, or of a Colorlight: a beat of the core has two of its words."""
    pytest.importorskip("tflite")
    chip = replace(SDRAM_CHIPS["EM638325-7"], masks=masks)
    monkeypatch.setattr(transport, "_MEMORY", PerKind(product=None, network=lambda _: chip))
    memory = ProgramTiming.of_sdram(chip, SDRAM_MHZ, PROGRAM.beat_bytes)
    program = weft.load(CNN).compile(NetworkTarget("board", PROGRAM, memory=memory))
    x = random_inputs(program, 2)
    with program.open(GoldenRunner(PROGRAM)) as session:
        wanted = session(x)
    with contextlib.closing(SimBoardTransport(PROGRAM)) as board:
        session = program.open(NetworkDriver(board, PROGRAM, timeout=TIMEOUT), timeout=TIMEOUT)
        assert np.array_equal(session(x), wanted)
        assert program.streamed > 0
        assert session.cycles == pytest.approx(program.cycles, rel=0.01)


def test_matrix_products(driver):
    rng = np.random.default_rng(2)
    a, b = rng.integers(-128, 128, (4, 6), np.int8), rng.integers(-128, 128, (6, 5), np.int8)
    y = weft.Accelerator(ListTransport(driver, timeout=TIMEOUT)).matmul(a, b)
    assert np.array_equal(y, a.astype(int) @ b.astype(int))


DESIGN = """\
rows = 2
cols = 2
depth = 4
lanes = 2
multiplier = "fip"
requantize = "tflite"
activation = "none"

[network_core]
words = 512
b_words = 128
lines = 64
read_vectors = 2
program_words = 2048
"""


def test_the_self_test_of_a_board(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(memory_test, "_REST", 0)
    file = tmp_path / "board.toml"
    file.write_text(DESIGN)
    assert design_from_toml(file) == PROGRAM
    assert main(["selftest", "board", "--config", str(file)]) == 0
    said = capsys.readouterr().out
    for check in (
        "phase of its clock", "data lines", "address lines", "sample", "byte enables", "refresh",
        "patterns",
    ):
        assert f"program memory, {check}: passed" in said
    first, last = (SdramPhase(RIGHT_PHASES[n], PHASE.steps).degrees for n in (0, -1))
    assert f"{first:g} to {last:g} degrees pass" in said


class Wire:
    """A connection to a process: reader and writer of a transport, until a number of frames."""

    def __init__(self, process, frames):
        self._process, self._frames = process, frames
        self.received = queue.SimpleQueue()

    def read1(self, count):
        return self.received.get()

    read = read1

    def write(self, data):
        if self._frames == 0:
            self.close()
            raise OSError("broken")
        self._frames -= 1
        self._process.stdin.write(data)
        self._process.stdin.flush()
        return len(data)

    def flush(self):
        pass

    def close(self):
        self.received.put(b"")  # the end


def test_a_broken_upload_goes_on(monkeypatch):
    monkeypatch.setattr(network_driver, "MAX_CHECK", 2048)
    monkeypatch.setattr(memory_test, "_SAMPLE", 1)
    monkeypatch.setattr(memory_test, "_PATTERNS", ())
    process, wires, found = start(PROGRAM), [], []

    def pump():
        while data := process.stdout.read1(1 << 16):
            wires[-1].received.put(data)

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        for frames in (20, 75, 90, 90, 10_000):
            wires.append(Wire(process, frames))
            board = BoardTransport(wires[-1], wires[-1], timeout=ACK_TIMEOUT)
            with contextlib.closing(board), contextlib.suppress(TransportClosed):
                driver = NetworkDriver(board, PROGRAM, timeout=20)
                try:
                    driver.write_program(at(100), DATA)
                    assert driver.read_program(at(100), len(DATA)) == DATA
                    found.append("whole")
                finally:
                    found.append(driver.program_found)
    finally:
        process.stdin.close()
        wait_or_kill(process)
        thread.join()
        process.stdout.close()
    *others, whole, last = found
    assert whole == "whole" and others == sorted(others)
    assert 0 < last < len(DATA)
