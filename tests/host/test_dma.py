"""The transport to cores with DMA, on a model of the registers and on a simulated core."""

import struct

import numpy as np
import pytest
from golden_stream import GoldenStream, decoded
from ml_dtypes import bfloat16
from products import operands

from weft import Accelerator
from weft.commands import Job, JobFlag, Load, LoadFlag, Opcode, Status, result
from weft.config import Config
from weft.descriptors import ElementOrder
from weft.geometry import memories
from weft.host.accelerator import AcceleratorError
from weft.host.dma import DmaTransport, MappedMemory
from weft.host.packing import unpack
from weft.host.transport import TransportClosed, TransportError, TransportTimeout
from weft.ip import Ip
from weft.register_map import registers
from weft.registers import REGISTERS
from weft.sim.mmio import MEMORY_ADDRESS, SimRegisters

CONFIG = Config(
    rows=2, cols=2, lanes=2, requantize="tflite", activation="table", bytes_in=8, bytes_out=8,
    a_words=32, b_words=32,
)
IP = Ip(config=CONFIG, bus="dma", window=True)
ADDRESS = {register.name: register.address for register in registers(IP)}
NAME = {address: name for name, address in ADDRESS.items()}


class DmaModel:
    """What the registers of `docs/dma.md` promise, with the golden core behind them."""

    def __init__(self, memory):
        self.memory = memory
        self.dma_limit = 0xFFFFFFFF
        self.reset()

    def reset(self):
        self.core, self.words = GoldenStream(CONFIG), [0] * 16
        self.jobs_done = self.last_job = self.irq_status = 0
        self.stores, self.read_error = {}, False

    def read(self, address):
        if address < 4 * len(REGISTERS):
            return self.core.read(address // 4, 1, 1)[0]
        return {"status": 0, "desc_free": 32, "jobs_done": self.jobs_done,
                "last_job": self.last_job, "irq_status": self.irq_status}[NAME[address]]

    def write(self, address, value):
        name = NAME[address]
        if name.startswith("descriptor_"):
            self.words[int(name.removeprefix("descriptor_"))] = value
        elif name == "dma_limit":
            self.dma_limit = value
        elif name == "irq_status":
            self.irq_status &= ~value
        elif name == "doorbell":
            self.submit()
        elif name == "control" and value & 1:
            self.reset()
        else:
            self.core.abort(1)
        self.collect()

    def close(self):
        self.memory.close()

    def submit(self):
        header, address = struct.pack("<8I", *self.words[:8]), self.words[8]
        if self.dma_limit < address:
            self.irq_status |= 1 << 7 | 1 << 8
        elif header[0] == Opcode.JOB:
            job = Job.unpack(header)
            self.stores[job.tag] = job, address - MEMORY_ADDRESS, self.words[9]
            self.core.send_words(header)
        else:
            load = Load.unpack(header)
            operand = memories(CONFIG)[load.operand]
            assert self.words[12] == ElementOrder.PACKED
            k = load.words * operand.depth
            size = load.panels * operand.panel_stream_words(k) * operand.stream
            payload = self.memory.read(address - MEMORY_ADDRESS, size)
            self.read_error |= len(payload) < size
            self.core.send_words(header + payload.ljust(size, b"\0"))

    def collect(self):
        while True:
            try:
                packet = self.core.receive(0)
            except TransportTimeout:
                return
            job, offset, stride = self.stores.pop(packet.tag)
            status = packet.status | self.read_error * Status.READ_ERROR
            self.read_error = False
            if not status:
                dtype = result(CONFIG, job.flags).name
                for n, row in enumerate(unpack(packet.data, job.m, job.n, CONFIG, dtype)):
                    self.memory.write(offset + n * stride, row.tobytes())
            self.jobs_done += 1
            self.last_job = packet.tag | status << 16
            self.irq_status |= bool(status) << 1


class Shared:
    """The registers or the memory of the module's core: closing them does not end the core."""

    def __init__(self, part, **attributes):
        self._part = part
        self.closed = 0
        self.writes = []
        vars(self).update(attributes)

    def __getattr__(self, name):
        return getattr(self._part, name)

    def write(self, address, value):
        self.writes.append(address)
        self._part.write(address, value)

    def close(self):
        self.closed += 1


@pytest.fixture(scope="module", params=[
    "model", pytest.param("simulation", marks=pytest.mark.slow),
])
def core(request, tmp_path_factory):
    if request.param == "simulation":
        tested = SimRegisters(IP)
    else:
        path = tmp_path_factory.mktemp("dma") / "memory"
        path.write_bytes(bytes(1 << 20))
        tested = DmaModel(MappedMemory(str(path), MEMORY_ADDRESS, 1 << 20))
    yield tested
    tested.close()


def transport(core, **memory):
    return DmaTransport(Shared(core), Shared(core.memory, **memory))


def waiting_job(tag, page):
    """A product of 1 x 1 x 1 that waits for its operands."""
    flags = JobFlag.FEED_A | JobFlag.FEED_B
    return Job(1, 1, 1, page, 1, 1, page, 1, 1, tag=tag, flags=flags).pack()


def feeds(page):
    """The operands of that job, all zeros."""
    payload = bytes(CONFIG.bytes_in)
    return b"".join(Load(n, page, 1, 1, 1, LoadFlag.FEED).pack() + payload for n in (0, 1))


# K of 200 exceeds the buffers: its jobs keep sums and accumulate them.
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 20, 7), (2, 200, 3)])
def test_products_equal_numpy(core, shape):
    a, b = operands(*shape)
    c, stats = Accelerator(transport(core), CONFIG).matmul(a, b, record=True)
    assert np.array_equal(c, a.astype(int) @ b)
    assert stats.cycles > 0


def test_requantized_products_equal_the_golden_model(core):
    a, b = operands(5, 40, 3)
    table = np.random.default_rng(2).integers(-128, 128, 256).astype(np.int8)
    arguments = {"bias": np.arange(3), "scale": 0.004, "zero_point": 1}
    acc = Accelerator(transport(core), CONFIG)
    with Accelerator(GoldenStream(CONFIG)) as golden:
        for extra in ({}, {"activation": table}):
            wanted = golden.matmul(a, b, **arguments, **extra)
            assert np.array_equal(acc.matmul(a, b, **arguments, **extra), wanted)


def test_batches_and_resident_operands_equal_numpy(core):
    a, b = operands(12, 10, 2)
    batch = a.reshape(4, 3, 10)
    acc = Accelerator(transport(core), CONFIG)
    with acc.load(b) as weights:
        assert np.array_equal(acc.matmul(batch, weights), batch.astype(int) @ b)
        product = acc.prepare((3, 10), weights)
        for part in batch:
            assert np.array_equal(product(part), part.astype(int) @ b)


def test_a_small_memory_is_used_again_and_again(core):
    """12 x 20 by 20 x 12 takes 576 bytes of results alone."""
    a, b = operands(12, 20, 12)
    acc = Accelerator(transport(core, size=400), CONFIG)
    assert np.array_equal(acc.matmul(a, b), a.astype(int) @ b)


def test_rejects_a_job_that_exceeds_the_memory_before_it_is_sent(core):
    tested = transport(core, size=56)
    acc = Accelerator(tested, CONFIG)
    tested._access.writes.clear()
    with pytest.raises(TransportError, match=(
        "memory must hold a job's operands and results, 64 bytes, not 56 bytes"
    )):
        acc.matmul(*operands(2, 40, 2))
    assert ADDRESS["doorbell"] not in tested._access.writes


def test_abort_ends_a_job_that_waits_and_the_next_product_is_correct(core):
    tested = transport(core)
    tested.send(decoded(CONFIG, waiting_job(5, page=0)))
    with pytest.raises(TransportTimeout, match="no job ended for 0.01 s"):
        tested.receive(0.01)
    tested.abort(1)
    packet = tested.receive(10)
    assert (packet.tag, packet.last, packet.status, packet.data) == (5, True, Status.ABORTED, b"")
    a, b = operands(5, 20, 7)
    assert np.array_equal(Accelerator(tested, CONFIG).matmul(a, b), a.astype(int) @ b)


def test_the_status_of_a_rejected_job_is_exact(core):
    tested = transport(core)
    rejected = Job(0, 0, 0, 0, 0, 0, 0, 0, 0, tag=2).pack()
    products = [waiting_job(tag, page) + feeds(page) for tag, page in ((1, 0), (3, 1))]
    tested.send(decoded(CONFIG, products[0] + rejected + products[1]))
    for _ in range(100):  # the clock runs during accesses only
        tested.read(0, 1, 1)
    packets = [tested.receive(10) for _ in range(3)]
    assert [(p.tag, p.status) for p in packets] == [(1, 0), (2, Status.REJECTED), (3, 0)]


def test_restart_discards_a_job_that_waits(core):
    tested = transport(core)
    tested.send(decoded(CONFIG, waiting_job(1, page=0) + feeds(page=0)[:8]))
    tested.restart(10)
    tested.send(decoded(CONFIG, waiting_job(2, page=0) + feeds(page=0)))
    assert tested.receive(10).tag == 2


def test_jobs_before_a_failed_one_are_reported_as_failed(core):
    """Both jobs end before the first poll. The second one has no operands and is aborted."""
    tested = transport(core)
    tested.send(decoded(CONFIG, waiting_job(1, page=0) + feeds(page=0) + waiting_job(2, page=1)))
    for _ in range(100):  # the clock runs during accesses only
        tested.read(0, 1, 1)
    tested.abort(1)
    for _ in range(100):
        tested.read(0, 1, 1)
    packets = [tested.receive(1) for _ in range(2)]
    assert [(p.tag, p.status) for p in packets] == [(1, Status.ABORTED), (2, Status.ABORTED)]


def test_bus_errors_fail_the_product_and_the_next_one_is_correct(core):
    a, b = operands(5, 20, 7)
    memory = Shared(core.memory, address=MEMORY_ADDRESS + core.memory.size)
    acc = Accelerator(DmaTransport(Shared(core), memory), CONFIG)
    with pytest.raises(AcceleratorError, match="ended with status .*READ_ERROR"):
        acc.matmul(a, b)
    memory.address = MEMORY_ADDRESS
    assert np.array_equal(acc.matmul(a, b), a.astype(int) @ b)


def test_dropped_descriptors_are_errors(core):
    a, b = operands(5, 20, 7)
    acc = Accelerator(transport(core), CONFIG)
    core.write(ADDRESS["dma_limit"], MEMORY_ADDRESS - 1)
    with pytest.raises(TransportError, match=(
        "the core dropped a descriptor; does its window contain 0x40000000 to 0x400fffff?"
    )):
        acc.matmul(a, b)
    core.write(ADDRESS["dma_limit"], 0xFFFFFFFF)
    assert np.array_equal(acc.matmul(a, b), a.astype(int) @ b)


@pytest.mark.parametrize("memory, message", [
    ({"address": 0x40000004}, "address of memory must be a multiple of 8, not 0x40000004"),
    ({"address": 0xFFFFFFF0}, "memory must lie below 0x100000000, not 0x100000 bytes from .*"),
])
def test_rejects_memory_that_the_core_cannot_use(core, memory, message):
    with pytest.raises(ValueError, match=message):
        transport(core, **memory)


def test_close_releases_registers_and_memory(core):
    tested = transport(core)
    tested.close()
    assert (tested._access.closed, tested._memory.closed) == (1, 1)
    with pytest.raises(TransportClosed):
        tested.receive(1)


@pytest.mark.long
def test_bf16_products_from_a_bias_and_from_c_equal_the_golden_model():
    config = Config(
        rows=2, cols=2, lanes=2, dtype="bf16", activation="clamp", c_words=32, bytes_in=8,
        bytes_out=8, a_words=64, b_words=64,
    )
    registers = SimRegisters(Ip(config=config, bus="dma"))
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=shape).astype(bfloat16) for shape in ((5, 30), (30, 7)))
    c = rng.normal(size=(5, 7)).astype(np.float32)
    with (
        Accelerator(GoldenStream(config)) as golden,
        Accelerator(DmaTransport(registers, registers.memory), config) as acc,
    ):
        for arguments in ({"bias": c[0]}, {"c": c}, {"c": c, "low": 0, "out_dtype": bfloat16}):
            assert np.array_equal(acc.matmul(a, b, **arguments), golden.matmul(a, b, **arguments))
