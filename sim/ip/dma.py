"""The DMA engine in its IP core: products whose operands lie in a third party's memory."""

import logging
import struct

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiSlave

from weft.commands import JobFlag, Status, epilogue_flags
from weft.descriptors import DESCRIPTOR_BYTES, ElementOrder
from weft.hw.dma.axi import BURST, FIXED
from weft.sim.dma_scenario import DmaScenario
from weft.sim.ip.ip_testbench import IpTestbench
from weft.sim.ip.masters import pauses

SIZE = 1 << 16  # of the memory
LIMIT = 20_000  # cycles in which a job must end
ADDRESS = "addr", "len", *FIXED, "size"
OFFERS = {"aw": ADDRESS, "ar": ADDRESS, "w": ("data", "strb", "last")}  # what the master offers


class Ram:
    """What `AxiSlave` reads and writes: a memory, of which some places answer with an error.

    Attributes
    ----------
    memory : bytearray
    bad_reads, bad_writes : set of int
        Addresses of beats.
    """

    def __init__(self, width, size):
        self.width = width
        self.memory = bytearray(size)
        self.bad_reads, self.bad_writes = set(), set()

    async def read(self, address, length):
        if address in self.bad_reads or address + length > len(self.memory):
            raise ValueError("a read of nothing")
        return bytes(self.memory[address : address + length])

    async def write(self, address, data):
        if address - address % self.width in self.bad_writes:
            raise ValueError("a write to nothing")
        if address + len(data) > len(self.memory):
            raise ValueError("a write to nothing")
        self.memory[address : address + len(data)] = data


class Memory:
    """The IP core's memory, and an eye on what its master offers.

    Attributes
    ----------
    ram : Ram
    bursts : int
        That were asked for.
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
        """What is on offer is known, stays until it is taken, and keeps the rules of bursts."""
        dut, held = self.rig.dut, {}

        def value(name):
            return getattr(dut, f"m_axi_{name}").value

        while True:
            await RisingEdge(dut.aclk)
            if not int(dut.aresetn.value):
                held.clear()
                continue
            for channel, payload in OFFERS.items():
                valid = value(f"{channel}valid")
                assert valid.is_resolvable, f"{channel}valid must be known"
                if not int(valid):
                    assert channel not in held, f"{channel} must stay until it is taken"
                    continue
                values = {name: str(value(channel + name)) for name in payload}
                for name, bits in values.items():
                    assert set(bits) <= {"0", "1"}, f"{channel}{name} must be known, not {bits}"
                assert held.get(channel, values) == values, f"{channel} must stay as it is"
                held[channel] = values
                if int(value(f"{channel}ready")):
                    del held[channel]
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
    """A rig, and its memory, which is silent while there is no model of it."""
    for name in ("awready", "wready", "bvalid", "arready", "rvalid"):
        getattr(dut, f"m_axi_{name}").value = 0
    rig = await IpTestbench.start(dut, pause)
    return rig, Memory(rig, pause, size)


async def submit(rig, descriptors):
    """File descriptors, as there is room."""
    for descriptor in descriptors:
        while not await rig.read("desc_free"):
            pass
        await rig.master.master.write(rig.addresses["descriptor_0"], descriptor)
        await rig.write("doorbell", submit=1)


async def ended(rig, count):
    """Wait until so many jobs have ended in all."""
    for _ in range(LIMIT // 20):
        if await rig.read("jobs_done") == count:
            return
    raise TimeoutError(f"{count} jobs must have ended, not {await rig.read('jobs_done')}")


async def flags(rig):
    """The names of what IRQ_STATUS has, which is cleared."""
    value = await rig.read("irq_status")
    await rig.master.write(rig.addresses["irq_status"], value)
    return {name for name, f in rig.fields["irq_status"].items() if value >> f.low & 1}


def products(rig, jobs, *, seed, orders=(ElementOrder.K_MAJOR, ElementOrder.K_MINOR), finish=True):
    """Products of all shapes that fit."""
    config, found = rig.config, DmaScenario(rig.config, size=SIZE, seed=seed, orders=orders)
    narrow = [*epilogue_flags(config)[:1]] if finish else []
    for tag in range(jobs):
        k = rig.rng.choice([1, 2, 5, 17, 33])
        m = rig.rng.randrange(1, 2 * config.rows + 2)
        n = rig.rng.randrange(1, 2 * config.cols + 2)
        a, b = rig.operands(m, n, k)
        flag = JobFlag(0)
        if narrow and tag % 2:
            flag = narrow[0]
        if flag and config.dtype == "int8":
            columns = [(tag - j, (1 << 30) + j, -3, 0, 3, -128, 127) for j in range(n)]
            found.load_parameters(columns, 0, -(-k // (16 * config.depth)))
        fed = ((), (0, 1), (1,))[tag % 3]
        found.multiply(a, b, feed=fed, flags=flag, tag=tag)
        found.job(a, b, flags=flag, tag=100 + tag)
    found.end()
    return found


async def right(rig, memory, before=0, jobs=2, seed=7):
    """What is done next is right."""
    found = products(rig, jobs, seed=seed)
    memory.ram.memory[:] = found.memory
    await submit(rig, found.descriptors)
    await ended(rig, before + len(found.ends))
    assert memory.ram.memory == found.expected, "memory must be as it is expected"
    last = await rig.read("last_job")
    assert (last & 0xFFFF, last >> 16) == (found.ends[-1][0], 0)
    return before + len(found.ends)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.4])
async def shapes(dut, pause):
    """Products of all shapes, anyhow in memory: what is expected, and not a byte beside it."""
    rig, memory = await start(dut, pause)
    await right(rig, memory, jobs=6)
    assert await flags(rig) == {"done"}
    assert await rig.read("status") == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def errors(dut):
    """Beats that are read with an error, bursts that are written with one: the next is right."""
    rig, memory = await start(dut)
    count = 0
    for kind in ("dma_read_error", "dma_write_error"):
        found = products(rig, 1, seed=3, finish=False)
        memory.ram.memory[:] = found.memory
        bad = memory.ram.bad_reads if kind == "dma_read_error" else memory.ram.bad_writes
        bad.update(range(0, SIZE, memory.width))
        await submit(rig, found.descriptors)
        count += len(found.ends)
        await ended(rig, count)
        assert await flags(rig) == {"done", "failed", kind}
        mark = Status.WRITE_ERROR if kind == "dma_write_error" else 0  # operands of the job before
        assert await rig.read("last_job") == found.ends[-1][0] | mark << 16
        bad.clear()
        count = await right(rig, memory, count)
        assert await flags(rig) == {"done"}


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def bad_descriptors(dut):
    """What is no descriptor is dropped and said; what is around it is done."""
    rig, memory = await start(dut)
    count = 0
    wrong = [
        bytes(DESCRIPTOR_BYTES),
        b"\xff" * DESCRIPTOR_BYTES,
        b"\x01\x03" + bytes(DESCRIPTOR_BYTES - 2),  # of another version
        b"\x02\x02\x07" + bytes(DESCRIPTOR_BYTES - 3),  # of no operand
    ]
    for descriptor in wrong:
        await submit(rig, [descriptor])
        while await rig.read("status", "dma_busy"):
            pass
        assert await flags(rig) == {"bad_descriptor"}
        count = await right(rig, memory, count)
        await flags(rig)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def bad_addresses(dut):
    """What leads beyond the last address, or out of a window, is dropped before any access."""
    rig, memory = await start(dut)
    found = products(rig, 1, seed=3, finish=False)
    top = (1 << 32) - memory.width
    load = next(d for d in found.descriptors if d[0] == 2)
    beyond = struct.pack("<III", top, 16, 40)  # address, stride, lines
    await submit(rig, [load[:32] + beyond + load[44:]])
    while await rig.read("status", "dma_busy"):
        pass
    assert await flags(rig) == {"bad_descriptor", "bad_address"} and memory.bursts == 0
    count = await right(rig, memory)
    assert await flags(rig) == {"done"}
    if not rig.ip.window:
        return
    await rig.master.write(rig.addresses["dma_base"], SIZE)
    before = memory.bursts
    await submit(rig, [load])
    while await rig.read("status", "dma_busy"):
        pass
    assert await flags(rig) == {"bad_descriptor", "bad_address"} and memory.bursts == before
    await rig.master.write(rig.addresses["dma_base"], 0)
    await rig.master.write(rig.addresses["dma_limit"], SIZE - 1)
    await right(rig, memory, count)
    assert await flags(rig) == {"done"}


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.5])
async def stops(dut, pause):
    """A soft reset wherever it strikes: bursts are finished, and what is done next is right."""
    rig, memory = await start(dut, pause)
    for round_ in range(12):
        found = products(rig, 2, seed=round_)
        memory.ram.memory[:] = found.memory
        await submit(rig, found.descriptors[: 2 + round_ % 8])
        await ClockCycles(rig.clock, rig.rng.randrange(200))
        await rig.write("control", reset=1)
        await rig.restarted()
        assert await rig.read("jobs_done") == 0 and await rig.read("status") == 0
        if round_ % 4 == 3:
            await right(rig, memory)
            await rig.write("control", reset=1)
            await rig.restarted()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def aborts(dut):
    """A job that waits for its operands for ever is ended, and nothing is written for it."""
    rig, memory = await start(dut)
    count = 0
    for tag in (1, 2):
        found = DmaScenario(rig.config, size=SIZE, seed=tag)
        a, b = rig.operands(2, 2, 3)
        found.job(a, b, flags=JobFlag.FEED_A | JobFlag.FEED_B, tag=tag)
        found.end()
        memory.ram.memory[:] = found.memory
        await submit(rig, found.descriptors)
        while not await rig.read("status", "busy"):
            pass
        await ClockCycles(rig.clock, 60)
        await rig.write("control", abort=1)
        count += 1
        await ended(rig, count)
        assert await rig.read("last_job") == tag | Status.ABORTED << 16
        assert await flags(rig) == {"done", "failed"}
        assert memory.ram.memory == found.memory
        count = await right(rig, memory, count)
        await flags(rig)

