"""Recorded sessions: what the driver sends on each kind of wire, to the byte.

A digest that changes means that the driver sends other bytes to a core. That may be right; then
the new digest needs a reason.
"""

import dataclasses
import hashlib
import random

import numpy as np
import pytest
from faulty_pipe import End, PipedBoard
from golden_board import GoldenBoard
from golden_network_board import PipedNetworkBoard
from ml_dtypes import bfloat16
from network_core_networks import NetworkBuilder
from network_cores import network_core_config
from network_registers import NetworkRegisterModel
from products import check_equal, check_sums, exact, floats, integers
from register_model import RegisterModel

from weft import Accelerator, Config
from weft.frames import FrameType
from weft.golden import matmul_bf16
from weft.host.board import BoardTransport
from weft.host.dma import DmaTransport
from weft.host.emulated import ListTransport
from weft.host.link import FrameDecoder, FramedTransport
from weft.host.mmio import MmioTransport
from weft.host.network_driver import NetworkDriver
from weft.host.opening import NetworkMmioTransport
from weft.host.transport import TransportTimeout
from weft.ip import Ip
from weft.models.network_core.compiler import compile_network_core
from weft.models.target import target_of
from weft.network_core.descriptors import ListEnd, split

GUARD = 600  # seconds after which a test hangs
INT8 = Config(
    rows=3, cols=5, depth=2, lanes=2, a_words=64, b_words=128, requantize="tflite",
    activation="table", b_zero_point="column",
)
BF16 = Config(dtype="bf16", rows=2, cols=3, a_words=64, b_words=64, c_words=64, activation="clamp")
WIDE = Config(rows=3, cols=5, depth=2, bytes_in=64, a_words=64, b_words=64)
CHIP = network_core_config(2, 4, 4, 2, words=1024, b_words=8, lines=8, read_vectors=2)


class Board(PipedBoard, GoldenBoard):
    """A board with a golden core on a pipe."""

    def __init__(self, config):
        PipedBoard.__init__(self)
        GoldenBoard.__init__(self, config)


class Pipe(Board):
    """The other end of a reliable pipe: it keeps all bytes, and acknowledges nothing."""

    def __init__(self, config):
        super().__init__(config)
        self.decoder = FrameDecoder()  # a pipe takes frames of any size
        self.bytes = b""

    def take(self, data):
        self.bytes += data
        super().take(data)

    def act(self, frame):
        self.last = frame.sequence - 1  # a pipe loses no frame
        super().act(frame)

    def say(self, frame):
        if frame.type != FrameType.ACK:
            super().say(frame)


class Shown:
    """Bytes that were sent, as a digest."""

    def __init__(self, *parts):
        self.hash = hashlib.sha256()
        for part in parts:
            self.add(part)

    def add(self, part):
        self.hash.update(part if isinstance(part, bytes) else repr(part).encode())

    @property
    def digest(self):
        return self.hash.hexdigest()[:16]


def on_board(session, config):
    """Session with a board on a serial port, as it begins there: another program used it before."""
    random.seed(1)  # of the first tag and of sequence numbers
    board = Board(config)
    end = End(board)
    with Accelerator(BoardTransport(end, end, timeout=5.0), timeout=GUARD) as accelerator:
        session(accelerator)
    return Shown(board.kept)


def on_pipe(session, config):
    """Session with a core at a pipe that loses nothing, as a simulation is."""
    pipe = Pipe(config)
    end = End(pipe)
    with Accelerator(FramedTransport(end, end), timeout=GUARD) as accelerator:
        session(accelerator)
    return Shown(pipe.bytes)


def on_registers(session, config):
    """Session through the FIFO ports of an IP core."""
    model = RegisterModel(Ip(config=config, bus="axi"))
    sent = []
    model.close = lambda: None
    write, model.write = model.write, lambda address, value: (
        sent.append((address, int(value))), write(address, value)
    )
    with Accelerator(MmioTransport(model), timeout=GUARD) as accelerator:
        session(accelerator)
    return Shown(*sent)


def shapes(acc):
    """Products of several shapes: one job, several blocks, chains of K, batches, vectors."""
    rng = np.random.default_rng(1)
    for m, k, n in [(1, 1, 1), (3, 8, 5), (7, 33, 10), (40, 20, 61), (5, 300, 9), (64, 64, 64)]:
        a, b = integers(rng, np.int8, m, k), integers(rng, np.int8, k, n)
        for _ in range(2):
            check_sums(acc.matmul(a, b), exact(a, b))
    a, b = integers(rng, np.int8, 3, 4, 6), integers(rng, np.int8, 3, 6, 5)
    check_sums(acc.matmul(a, b), exact(a, b))
    check_sums(acc.matmul(a, b[0]), exact(a, b[0]))
    check_sums(acc.matmul(a[0], b, record=True)[0], exact(a[0], b))
    check_sums(acc.matmul(a[0, 0], b[0])[None], exact(a[0, :1], b[0]))


def resident(acc):
    """Resident operands of both sides, freed in another order, with products between."""
    rng = np.random.default_rng(2)
    a, b = integers(rng, np.int8, 6, 20), integers(rng, np.int8, 20, 10)
    other = integers(rng, np.int8, 20, 4)
    left, right, more = acc.load(a, "a"), acc.load(b), acc.load(other)
    for _ in range(2):
        check_sums(acc.matmul(left, right), exact(a, b))
        check_sums(acc.matmul(a, more), exact(a, other))
        check_sums(acc.matmul(left, b), exact(a, b))
        right.free()
        right = acc.load(b)
    left.free()
    check_sums(acc.matmul(a, b), exact(a, b))
    prepared = acc.prepare((3, 20), right)
    for part in (a[:3], a[3:]):
        check_sums(prepared(part), exact(part, b))


def scaled(acc):
    """Results of 8 bits: parameters and a table stay in the core; others take their place."""
    rng = np.random.default_rng(3)
    a, b = integers(rng, np.int8, 7, 30), integers(rng, np.int8, 30, 12)
    table = integers(rng, np.int8, 256)
    given = dict(multiplier=3 << 29, shift=-9, zero_point=-3)
    plain = acc.matmul(a, b, **given)
    for _ in range(2):
        assert (acc.matmul(a, b, **given) == plain).all()
        found = acc.matmul(a, b, activation=table, bias=np.arange(12), **given)
        assert found.dtype == np.int8
        acc.matmul(a, b, scale=np.full(12, 0.01), b_zero_point=np.arange(12))
    acc.matmul(a, b, activation=table[::-1], **given)
    batch = np.stack([a, a[::-1]])
    acc.matmul(batch, np.stack([b, b]), activation=np.stack([table, table[::-1]]), **given)
    prepared = acc.prepare((7, 30), b, **given)
    assert (prepared(a) == plain).all()
    assert (acc.matmul(a, b, **given) == plain).all()


def preload(acc):
    """Products of bf16: sums that start from a row or a matrix, limits, rounded results."""
    rng = np.random.default_rng(4)
    a, b = floats(rng, 5, 9), floats(rng, 9, 7)
    check_equal(acc.matmul(a, b), matmul_bf16(a, b))
    c = floats(rng, 5, 7, dtype=np.float32)
    for _ in range(2):
        check_equal(acc.matmul(a, b, c=c), matmul_bf16(a, b, start=c))
        check_equal(acc.matmul(a, b, bias=c[0]), matmul_bf16(a, b, start=c[:1]))
    acc.matmul(a, b, low=0, out_dtype=bfloat16)
    acc.matmul(floats(rng, 30, 40), floats(rng, 40, 20), bias=np.arange(20, dtype=np.float32))
    acc.prepare((5, 9), b, c=c, low=np.float32(0))(a)


def failures(acc):
    """A job that nothing feeds, results that are lost, and the recovery after each."""
    rng = np.random.default_rng(5)
    a, b = integers(rng, np.int8, 4, 6), integers(rng, np.int8, 6, 5)
    core = acc._core
    operand = acc.load(b)
    for kind in (KeyboardInterrupt, TransportTimeout):
        receive = core._transport.receive

        def broken(timeout, kind=kind):
            raise kind("lost")

        core._transport.receive = broken
        with pytest.raises(kind):
            acc.matmul(a, operand)
        core._transport.receive = receive
        operand.free()
        operand = acc.load(b)
        check_sums(acc.matmul(a, operand), exact(a, b))
    assert acc.counters()["finished"] > 0


SESSIONS = {
    "shapes": (shapes, INT8), "wide words": (shapes, WIDE), "resident": (resident, INT8),
    "scaled": (scaled, INT8), "preload": (preload, BF16), "failures": (failures, INT8),
}
WIRES = {"board": on_board, "pipe": on_pipe, "registers": on_registers}
DIGESTS = {
    ("board", "failures"): "1f683e9eebd262b6",
    ("board", "preload"): "127c67865b45235e",
    ("board", "resident"): "c96301e68386fd64",
    ("board", "scaled"): "64d90350336feb3f",
    ("board", "shapes"): "dc77d850b6001f17",
    ("board", "wide words"): "73df29750a121b9b",
    ("dma", "resident"): "c9c35ae8e4ef0d89",
    ("dma", "scaled"): "38da9561a4ae5047",
    ("dma", "shapes"): "f6be4c4790479ee9",
    ("network board", "memory"): "2408210bcdb9daa6",
    ("network board", "products"): "ab090359ae0c25b0",
    ("network registers", "memory"): "3442a775ae4323f3",
    ("network registers", "products"): "34b838bf99f2f410",
    ("network registers", "program"): "db908418e28fa981",
    ("pipe", "failures"): "86f95db23151ebc0",
    ("pipe", "preload"): "3d89ed69c39f6035",
    ("pipe", "resident"): "38a70391404544dd",
    ("pipe", "scaled"): "b394855ffdae15ea",
    ("pipe", "shapes"): "d3e263096846ab7b",
    ("pipe", "wide words"): "e51d77178016db1b",
    ("registers", "preload"): "f591566b8440d194",
    ("registers", "resident"): "837d52659b86d69c",
    ("registers", "scaled"): "8e4e4bfb01eea63b",
    ("registers", "shapes"): "25c608cac05fb713",
    ("registers", "wide words"): "99128ac9c73355dc",
    ("network board", "network"): "9510d0d4b35b6003",
    ("network registers", "network"): "45fb1b719b476ca3",
}


@pytest.mark.parametrize(("wire", "session"), [
    # The model of the registers has no abort.
    (wire, name) for wire in WIRES for name in SESSIONS if (wire, name) != ("registers", "failures")
])
def test_products_send_the_recorded_bytes(wire, session):
    assert WIRES[wire](*SESSIONS[session]).digest == DIGESTS[wire, session]


class Memory:
    """The memory of a `RegisterModel`, for the transport."""

    address = 0

    def __init__(self, model):
        self._bytes, self.size = model.memory, len(model.memory)

    def write(self, offset, data):
        self._bytes[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

    def read(self, offset, size):
        return self._bytes[offset : offset + size].tobytes()

    def close(self):
        pass


@pytest.mark.parametrize("session", ["shapes", "resident", "scaled"])
def test_a_core_with_dma_gets_the_recorded_descriptors(session):
    """The writes of registers, and the memory after each descriptor."""
    run, config = SESSIONS[session][0], dataclasses.replace(INT8, cols=4)
    model = RegisterModel(Ip(config=config, bus="dma"), memory=1 << 14)
    shown, write = Shown(), model.write

    def note(address, value):
        shown.add((address, int(value)))
        if model.names[address] == "doorbell":
            shown.add(model.memory.tobytes())
        write(address, value)

    model.write, model.close = note, lambda: None
    with Accelerator(DmaTransport(model, Memory(model)), timeout=GUARD) as accelerator:
        run(accelerator)
    assert shown.digest == DIGESTS["dma", session]


class Area:
    """The program memory of a `NetworkRegisterModel`, for the transport."""

    address = 0

    def __init__(self, model, config):
        self._bytes, self.size = model.bus_memory, config.program_bytes

    write, read, close = Memory.write, Memory.read, Memory.close


def products_on_network_core(driver):
    """Products of sums and of scaled results, divided and whole; equal ones again."""
    acc = Accelerator(ListTransport(driver, timeout=GUARD), timeout=GUARD)
    rng = np.random.default_rng(7)
    for m, k, n in [(1, 1, 1), (5, 8, 9), (9, 70, 7), (17, 40, 33)]:
        a, b = integers(rng, np.int8, m, k), integers(rng, np.int8, k, n)
        for _ in range(2):
            check_sums(acc.matmul(a, b), exact(a, b))
            acc.matmul(a, b, multiplier=3 << 29, shift=-9, zero_point=-3, bias=np.arange(n))
    operand = acc.load(b)
    for part in (a, a[:3], a):
        check_sums(acc.matmul(part, operand), exact(part, b))


def memory_of_network_core(driver):
    """Writes of all layouts, reads, lists, an error, an abort."""

    def at(number):
        return split(number, CHIP.banks)

    data = random.Random(1).randbytes(4000)
    driver.write(at(5), data[:3001])
    driver.write(at(3), data[:2100], run=3, pitch=2, pixels=700)
    driver.write(at(4), data[:3600], run=5, pitch=3, pixels=8, row_step=at(4))
    driver.write(at(0), b"result!?")
    driver.write(at(600), ListEnd(result=at(0), result_bytes=7).pack())
    assert driver.run(at(600), at(900), timeout=GUARD).result == b"result!"
    assert driver.read(at(0), CHIP.memory_bytes)[:7] == b"result!"
    driver.write(at(600), bytes(64))
    assert driver.run(at(600), at(900), timeout=GUARD).error
    driver.abort()


def network(driver):
    """Inferences of a network, with its lists and weights in the memory of the core."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 5, 5, 3))
    builder.dense(builder.convolution(0, 8), 6)
    program = compile_network_core(builder.graph(), target_of(driver.config))
    rng = np.random.default_rng(8)
    with program.open(driver) as session:
        for _ in range(2):
            session(integers(rng, np.int8, 1, 5, 5, 3))


NETWORK = network_core_config(3, 4, 4, 2, words=1024, b_words=64, lines=24, read_vectors=2)
PROGRAM = dataclasses.replace(NETWORK, program_words=2048)
NETWORK_SESSIONS = {
    "products": (products_on_network_core, CHIP), "memory": (memory_of_network_core, CHIP),
    "network": (network, NETWORK),
}


@pytest.mark.parametrize("name", NETWORK_SESSIONS)
def test_a_network_core_on_a_board_gets_the_recorded_frames(name):
    session, config = NETWORK_SESSIONS[name]
    board = PipedNetworkBoard(config)
    end = End(board)
    with NetworkDriver(BoardTransport(end, end, timeout=5.0), timeout=GUARD) as driver:
        session(driver)
    reads = [frame.payload for frame in board.frames if frame.type == FrameType.READ_MEMORY]
    shown = Shown(*(bytes([frame.type]) + frame.payload for frame in board.accepted), *reads)
    assert shown.digest == DIGESTS["network board", name]


@pytest.mark.parametrize("name", [*NETWORK_SESSIONS, "program"])
def test_a_network_core_at_a_bus_gets_the_recorded_accesses(name):
    session, config = (NETWORK_SESSIONS | {"program": (network, PROGRAM)})[name]
    model = NetworkRegisterModel(config)
    sent, write = [], model.write
    model.write = lambda address, value: (sent.append((address, int(value))), write(address, value))
    area = Area(model, config) if config.program_words else None
    transport = NetworkMmioTransport(model, timeout=GUARD, program=area)
    with NetworkDriver(transport, timeout=GUARD) as driver:
        session(driver)
    if area is not None:  # the lists and weights
        sent.append(model.bus_memory.tobytes())
    assert Shown(*sent).digest == DIGESTS["network registers", name]
