"""Products on simulated IP cores, through the registers of their bus."""

import numpy as np
import pytest
from digits import CNN
from memory_area import MemoryArea
from network_cores import PROGRAM, SIMULATED
from network_programs import check_network, random_inputs
from tiers import tiers

import weft
from weft import Accelerator
from weft.config import Config
from weft.host import GoldenTransport
from weft.host.mmio import MmioTransport
from weft.host.network_driver import NetworkDriver
from weft.host.opening import NetworkMmioTransport
from weft.ip import Ip
from weft.network_core.ip import NetworkIp
from weft.sim.mmio import MEMORY_ADDRESS, BusError, SimRegisters

CONFIG = Config(
    rows=2, cols=2, lanes=2, requantize="tflite", bytes_in=4, bytes_out=8, a_words=32, b_words=32
)


@pytest.fixture(scope="module", params=tiers(
    {bus: bus for bus in ("axi", "wishbone", "apb")}, long={"apb", "wishbone"}
))
def core(request):
    registers = SimRegisters(Ip(config=CONFIG, bus=request.param))
    yield registers
    registers.close()


def test_products_equal_numpy(core):
    rng = np.random.default_rng(1)
    acc = Accelerator(MmioTransport(core), CONFIG)
    for m, k, n in ((1, 1, 1), (5, 20, 7), (2, 40, 3)):
        a = rng.integers(-128, 128, (m, k), dtype=np.int8)
        b = rng.integers(-128, 128, (k, n), dtype=np.int8)
        c, stats = acc.matmul(a, b, record=True)
        assert np.array_equal(c, a.astype(int) @ b)
        assert stats.cycles > 0
    with Accelerator(GoldenTransport(CONFIG)) as golden:
        wanted = golden.matmul(a, b, scale=0.004, zero_point=1)
    assert np.array_equal(acc.matmul(a, b, scale=0.004, zero_point=1), wanted)


def test_errors_of_the_bus_are_raised(core):
    with pytest.raises(BusError, match="access to 0x7fc was answered with an error"):
        core.read(0x7FC)
    with pytest.raises(BusError, match="access to 0x0 was answered with an error"):
        core.write(0, 1)


@pytest.mark.long
@pytest.mark.parametrize("bus", [
    pytest.param("axi", marks=pytest.mark.slow),
    *(pytest.param(bus, marks=pytest.mark.long) for bus in ("wishbone", "apb")),
])
def test_a_network(bus, monkeypatch):
    """A network runs; then the same core multiplies."""
    pytest.importorskip("tflite")
    program = weft.load(CNN).compile(SIMULATED)
    registers = SimRegisters(NetworkIp(config=SIMULATED, bus=bus))
    monkeypatch.setattr(registers, "close", lambda: None)  # it is opened twice
    with NetworkDriver(NetworkMmioTransport(registers), SIMULATED) as driver:
        data = np.random.default_rng(2).bytes(1100)
        driver.write(500, data)
        assert driver.read(500, 1100) == data
        check_network(program, driver)
    monkeypatch.setattr("weft.host.opening.MappedRegisters", lambda *given: registers)
    a, b = np.full((3, 5), -128, np.int8), np.arange(35, dtype=np.int8).reshape(5, 7)
    with Accelerator("uio:/dev/uio3") as accelerator:
        assert np.array_equal(accelerator.matmul(a, b), a.astype(int) @ b)
    monkeypatch.undo()
    registers.close()


@pytest.mark.long
def test_two_networks_in_one_program_memory():
    """Each has its own area; an error of the bus and a soft reset between them change nothing."""
    pytest.importorskip("tflite")
    program = weft.load(CNN).compile(PROGRAM)
    x = random_inputs(program, 1)
    with program.open("golden") as session:
        wanted = session(x)
    registers = SimRegisters(NetworkIp(config=PROGRAM, bus="axi"))
    memory, size = registers.memory, 1 << 16
    areas = [MemoryArea(memory, offset, size) for offset in (0x1008, 0x20000)]
    before = memory.read(0, memory.size)
    for area in (*areas, areas[0]):
        area.address = MEMORY_ADDRESS + area.offset
        transport = NetworkMmioTransport(registers, program=area)
        driver = NetworkDriver(transport, PROGRAM)
        assert np.array_equal(program.open(driver)(x), wanted)
        driver.abort()
        area.address += memory.size  # the bus answers with an error
        transport.restart_lists(10)
        assert driver.run(0, 0).error.name == "BUS"
    found = np.frombuffer(memory.read(0, memory.size), np.uint8)
    changed = np.flatnonzero(found != np.frombuffer(before, np.uint8))
    inside = [(area.offset <= changed) & (changed < area.offset + size) for area in areas]
    assert (inside[0] | inside[1]).all() and inside[0].any() and inside[1].any()
    registers.close()


def test_rejects_cores_with_streams():
    with pytest.raises(ValueError, match="ip must have FIFO ports or DMA, .* not weft_stream"):
        SimRegisters(Ip(config=CONFIG, bus="stream"))
