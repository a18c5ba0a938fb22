"""Benches of an IP core with a DMA engine, connected to cocotbext's AXI4 slave."""

import logging
import struct

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiSlave

from verif.dma_scenario import DmaScenario
from verif.ip.ip_testbench import IpTestbench
from verif.ip.pauses import pauses
from weft.commands import JobFlag, Status, epilogue_flags
from weft.descriptors import DESCRIPTOR_BYTES
from weft.hw.dma.axi import BURST, FIXED
from weft.sim.scenario import A, B

SIZE = 1 << 16  # bytes of the memory
LIMIT = 20_000  # cycles in which a job must end; a register read takes 20 at most
ADDRESS = "addr", "len", *FIXED, "size"
OUTPUTS = {"aw": ADDRESS, "ar": ADDRESS, "w": ("data", "strb", "last")}  # fields by channel


class Ram:
    """The memory behind `AxiSlave`; chosen beats have error responses.

    Attributes
    ----------
    memory : bytearray
    bad_reads, bad_writes : set of int
        Addresses of the beats with error responses.
    """

    def __init__(self, width, size):
        self.width = width
        self.memory = bytearray(size)
        self.bad_reads, self.bad_writes = set(), set()

    async def read(self, address, length):
        if address in self.bad_reads or address + length > len(self.memory):
            raise ValueError("error response to a read")
        return bytes(self.memory[address : address + length])

    async def write(self, address, data):
        if address - address % self.width in self.bad_writes:
            raise ValueError("error response to a write")
        if address + len(data) > len(self.memory):
            raise ValueError("error response to a write")
        self.memory[address : address + len(data)] = data


class Memory:
    """The memory of an IP core, with checks of the AXI4 rules on the outputs of its master.

    Attributes
    ----------
    ram : Ram
    bursts : int
        Number of bursts so far.
    """

    def __init__(self, rig, pause, size):
        self.rig, self.bursts = rig, 0
        self.width = rig.config.bytes_in
        self.ram = Ram(self.width, size)
        bus = AxiBus.from_prefix(rig.dut, "m_axi")
        self.slave = AxiSlave(
            bus, rig.dut.aclk, rig.dut.aresetn, target=self.ram, reset_active_level=False
        )
        logging.getLogger("cocotb.weft").setLevel(logging.ERROR)
        for half, names in ((self.slave.write_if, "aw w b"), (self.slave.read_if, "ar r")):
            half.log.setLevel(logging.ERROR)
            for name in names.split():
                channel = getattr(half, f"{name}_channel")
                seed = rig.rng.getrandbits(32)
                channel.set_pause_generator(pauses(seed, pause) if pause else None)
        cocotb.start_soon(self.watch())

    async def watch(self):
        """Outputs are known and stay until they are taken, and bursts keep the rules."""
        dut, offered = self.rig.dut, {}

        def value(name):
            return getattr(dut, f"m_axi_{name}").value

        while True:
            await RisingEdge(dut.aclk)
            if not int(dut.aresetn.value):
                offered.clear()
                continue
            for channel, payload in OUTPUTS.items():
                valid = value(f"{channel}valid")
                assert valid.is_resolvable, f"{channel}valid must be known"
                if not int(valid):
                    assert channel not in offered, f"{channel}valid must stay until {channel}ready"
                    continue
                values = {name: str(value(channel + name)) for name in payload}
                for name, bits in values.items():
                    assert set(bits) <= {"0", "1"}, f"{channel}{name} must be known, not {bits}"
                unchanged = offered.get(channel, values) == values
                assert unchanged, f"{channel} must not change until {channel}ready"
                offered[channel] = values
                if int(value(f"{channel}ready")):
                    del offered[channel]
                    if channel != "w":
                        self.burst(**{name: int(bits, 2) for name, bits in values.items()})

    def burst(self, addr, len, size, **fixed):
        beats = len + 1
        assert fixed == FIXED and 1 << size == self.width
        assert beats <= BURST and addr % self.width == 0
        last = addr + beats * self.width - 1
        assert addr // 4096 == last // 4096, f"a burst must not cross 4 KiB at 0x{addr:x}"
        self.bursts += 1


async def start(dut, pause=0.0, size=SIZE):
    """The testbench and its memory. The slave's outputs are low until the memory drives them."""
    for name in ("awready", "wready", "bvalid", "arready", "rvalid"):
        getattr(dut, f"m_axi_{name}").value = 0
    rig = await IpTestbench.start(dut, pause)
    return rig, Memory(rig, pause, size)


async def submit(rig, descriptors):
    """Submit descriptors, while the queue has space."""
    for descriptor in descriptors:
        while not await rig.read("desc_free"):
            pass
        await rig.master.master.write(rig.addresses["descriptor_0"], descriptor)
        await rig.write("doorbell", submit=1)


async def ended(rig, count):
    """Wait until ``count`` jobs have ended in all."""
    for _ in range(LIMIT // 20):
        if await rig.read("jobs_done") == count:
            return
    raise TimeoutError(f"{await rig.read('jobs_done')} of {count} jobs ended in {LIMIT} cycles")


async def take_irqs(rig):
    """Read and clear IRQ_STATUS; returns the names of the bits that were set."""
    value = await rig.read("irq_status")
    await rig.master.write(rig.addresses["irq_status"], value)
    return {name for name, f in rig.fields["irq_status"].items() if value >> f.low & 1}


def products(rig, jobs, *, seed, epilogue=True):
    """A scenario with ``jobs`` products of random shapes, each run twice."""
    config, scenario = rig.config, DmaScenario(rig.config, size=SIZE, seed=seed)
    narrow = [*epilogue_flags(config)[:1]] if epilogue else []
    for tag in range(jobs):
        k = rig.rng.choice([1, 2, 5, 17, 33])
        m = rig.rng.randrange(1, 2 * config.rows + 2)
        n = rig.rng.randrange(1, 2 * config.cols + 2)
        a, b = scenario.operands(m, n, k)
        flags, columns = JobFlag(0), None
        if narrow and tag % 2:
            flags = narrow[0]
        if JobFlag.REQUANTIZE in flags:
            columns = [(tag - j, (1 << 30) + j, -3, 0, 3, -128, 127) for j in range(len(b))]
        feed = ((), (0, 1), (1,))[tag % 3]
        placed = scenario.multiply(a, b, parameters=columns, feed=feed, flags=flags, tag=tag)
        scenario.job(*placed, flags=flags, tag=100 + tag)
    return scenario


async def check_products(rig, memory, before=0, jobs=2, seed=7):
    """Run products and check the memory; returns the number of jobs that have ended."""
    scenario = products(rig, jobs, seed=seed)
    memory.ram.memory[:] = scenario.memory
    await submit(rig, scenario.descriptors)
    await ended(rig, before + len(scenario.ends))
    assert memory.ram.memory == scenario.expected, "memory differs from the expected contents"
    last = await rig.read("last_job")
    assert (last & 0xFFFF, last >> 16) == (scenario.ends[-1][0], 0)
    return before + len(scenario.ends)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.4])
async def shapes(dut, pause):
    """Products of random shapes and strides: the whole memory is as expected."""
    rig, memory = await start(dut, pause)
    await check_products(rig, memory, jobs=6)
    assert await take_irqs(rig) == {"done"}
    assert await rig.read("status") == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def errors(dut):
    """Error responses to reads and to writes are reported; the next products are correct."""
    rig, memory = await start(dut)
    count = 0
    for kind in ("dma_read_error", "dma_write_error"):
        scenario = products(rig, 1, seed=3, epilogue=False)
        memory.ram.memory[:] = scenario.memory
        bad = memory.ram.bad_reads if kind == "dma_read_error" else memory.ram.bad_writes
        bad.update(range(0, SIZE, memory.width))
        await submit(rig, scenario.descriptors)
        count += len(scenario.ends)
        await ended(rig, count)
        assert await take_irqs(rig) == {"done", "failed", kind}
        # The read errors belong to operands of the job before.
        status = Status.WRITE_ERROR if kind == "dma_write_error" else 0
        assert await rig.read("last_job") == scenario.ends[-1][0] | status << 16
        bad.clear()
        count = await check_products(rig, memory, count)
        assert await take_irqs(rig) == {"done"}


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def bad_descriptors(dut):
    """Bad descriptors are dropped and reported; the products after them are correct."""
    rig, memory = await start(dut)
    count = 0
    bad = [
        bytes(DESCRIPTOR_BYTES),
        b"\xff" * DESCRIPTOR_BYTES,
        b"\x01\x03" + bytes(DESCRIPTOR_BYTES - 2),  # another version
        b"\x02\x02\x07" + bytes(DESCRIPTOR_BYTES - 3),  # no such operand
    ]
    for descriptor in bad:
        await submit(rig, [descriptor])
        while await rig.read("status", "dma_busy"):
            pass
        assert await take_irqs(rig) == {"bad_descriptor"}
        count = await check_products(rig, memory, count)
        await take_irqs(rig)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def bad_addresses(dut):
    """A descriptor that leaves the address space, or the window, is dropped before any access."""
    rig, memory = await start(dut)
    scenario = products(rig, 1, seed=3, epilogue=False)
    top = (1 << 32) - memory.width
    load = next(d for d in scenario.descriptors if d[0] == 2)
    outside = struct.pack("<III", top, 16, 40)  # address, stride, lines
    await submit(rig, [load[:32] + outside + load[44:]])
    while await rig.read("status", "dma_busy"):
        pass
    assert await take_irqs(rig) == {"bad_descriptor", "bad_address"} and memory.bursts == 0
    count = await check_products(rig, memory)
    assert await take_irqs(rig) == {"done"}
    if not rig.ip.window:
        return
    await rig.master.write(rig.addresses["dma_base"], SIZE)
    before = memory.bursts
    await submit(rig, [load])
    while await rig.read("status", "dma_busy"):
        pass
    assert await take_irqs(rig) == {"bad_descriptor", "bad_address"} and memory.bursts == before
    await rig.master.write(rig.addresses["dma_base"], 0)
    await rig.master.write(rig.addresses["dma_limit"], SIZE - 1)
    await check_products(rig, memory, count)
    assert await take_irqs(rig) == {"done"}


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.5])
async def stops(dut, pause):
    """A soft reset at any time: bursts are finished, and the next products are correct."""
    rig, memory = await start(dut, pause)
    for n in range(12):
        scenario = products(rig, 2, seed=n)
        memory.ram.memory[:] = scenario.memory
        await submit(rig, scenario.descriptors[: 2 + n % 8])
        await ClockCycles(rig.clock, rig.rng.randrange(200))
        await rig.write("control", reset=1)
        await rig.wait_reset()
        assert await rig.read("jobs_done") == 0 and await rig.read("status") == 0
        if n % 4 == 3:
            await check_products(rig, memory)
            await rig.write("control", reset=1)
            await rig.wait_reset()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def aborts(dut):
    """An abort ends a job that waits for operands, and nothing is written."""
    rig, memory = await start(dut)
    count = 0
    for tag in (1, 2):
        scenario = DmaScenario(rig.config, size=SIZE, seed=tag)
        placed = map(scenario.place, (A, B), scenario.operands(2, 2, 3))
        scenario.job(*placed, feed=(A, B), tag=tag)
        memory.ram.memory[:] = scenario.memory
        await submit(rig, scenario.descriptors)
        while not await rig.read("status", "busy"):
            pass
        await ClockCycles(rig.clock, 60)
        await rig.write("control", abort=1)
        count += 1
        await ended(rig, count)
        assert await rig.read("last_job") == tag | Status.ABORTED << 16
        assert await take_irqs(rig) == {"done", "failed"}
        assert memory.ram.memory == scenario.memory
        count = await check_products(rig, memory, count)
        await take_irqs(rig)

