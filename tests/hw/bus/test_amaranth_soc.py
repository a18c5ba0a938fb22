"""The peripheral for amaranth-soc, on its own decoder where WEFT_AMARANTH_SOC names a checkout.

Elsewhere a stand-in has the members of its Wishbone signature.
"""

import os
import sys
import types

import pytest
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.amaranth_bench import simulate
from weft.commands import Job
from weft.config import Config
from weft.hw.bus.amaranth_soc import WishbonePeripheral
from weft.register_map import SPACE
from weft.registers import describe

TINY = Config(
    rows=1, cols=1, lanes=1, requantize="none", bytes_in=4, bytes_out=4, a_words=32, b_words=32
)
CHECKOUT = os.environ.get("WEFT_AMARANTH_SOC")
LIMIT = 200  # clocks of an access, at most


class Signature(wiring.Signature):
    """The members of a Wishbone signature of amaranth-soc with the feature ``err``."""

    def __init__(self, *, addr_width, data_width, granularity, features):
        assert set(features) == {"err"}
        super().__init__({
            "adr": Out(addr_width), "dat_w": Out(data_width), "dat_r": In(data_width),
            "sel": Out(data_width // granularity), "cyc": Out(1), "stb": Out(1), "we": Out(1),
            "ack": In(1), "err": In(1),
        })


class MemoryMap:
    """Records its arguments and its resources."""

    def __init__(self, *, addr_width, data_width):
        self.addr_width, self.data_width, self.resources = addr_width, data_width, []

    def add_resource(self, resource, *, name, size):
        self.resources.append((resource, name, size))


@pytest.fixture(autouse=True)
def amaranth_soc(monkeypatch):
    if CHECKOUT:
        monkeypatch.syspath_prepend(CHECKOUT)
        return
    package, memory = types.ModuleType("amaranth_soc"), types.ModuleType("amaranth_soc.memory")
    package.wishbone, memory.MemoryMap = types.SimpleNamespace(Signature=Signature), MemoryMap
    monkeypatch.setitem(sys.modules, "amaranth_soc", package)
    monkeypatch.setitem(sys.modules, "amaranth_soc.memory", memory)


async def access(ctx, bus, address, value=None):
    """One cycle of the bus: the word that is read, and whether it ended with an error."""
    ctx.set(bus.cyc, 1)
    ctx.set(bus.stb, 1)
    ctx.set(bus.we, value is not None)
    ctx.set(bus.adr, address // 4)
    ctx.set(bus.sel, 15)
    ctx.set(bus.dat_w, value or 0)
    for _ in range(LIMIT):
        _, _, ack, err, word = await ctx.tick().sample(bus.ack, bus.err, bus.dat_r)
        if ack or err:
            ctx.set(bus.stb, 0)
            ctx.set(bus.cyc, 0)
            await ctx.tick()
            return word, bool(err)
    raise AssertionError(f"the access to {address:#x} did not end within {LIMIT} clocks")


async def talk(ctx, bus, base=0):
    """Read the description, get an error, and send a job that is rejected."""
    for n, wanted in enumerate(describe(TINY)[:4]):
        assert await access(ctx, bus, base + 4 * n) == (wanted, False)
    assert await access(ctx, bus, base + 0x7FC) == (0, True)
    assert await access(ctx, bus, base + 0x40C, 1) == (0, False)  # IRQ_ENABLE.done
    header = Job(0, 0, 0, 0, 0, 0, 0, 0, 0, tag=0x1234).pack()
    for n in range(0, len(header), 4):
        word = int.from_bytes(header[n : n + 4], "little")
        assert not (await access(ctx, bus, base + 0x800, word))[1]
    for _ in range(100):
        level, _ = await access(ctx, bus, base + 0x41C)
        if level >> 16 & 1:
            break
    assert level >> 24 == 2  # rejected
    assert await access(ctx, bus, base + 0x420) == (0x1234, False)


def test_registers_commands_and_interrupt():
    peripheral = WishbonePeripheral(TINY)

    async def bench(ctx):
        await talk(ctx, peripheral.bus)
        assert ctx.get(peripheral.irq)

    simulate(peripheral, bench, limit=20_000)
    memory_map = peripheral.bus.memory_map
    assert (memory_map.addr_width, memory_map.data_width) == (12, 8)
    if not CHECKOUT:
        assert memory_map.resources == [(peripheral, ("registers",), SPACE)]


@pytest.mark.skipif(not CHECKOUT, reason="WEFT_AMARANTH_SOC names no checkout of amaranth-soc")
def test_on_a_decoder_of_amaranth_soc():
    from amaranth.hdl import Module
    from amaranth_soc import wishbone

    class Soc(wiring.Component):
        """A decoder with the accelerator at 0x4000."""

        def __init__(self):
            signature = wishbone.Signature(
                addr_width=14, data_width=32, granularity=8, features={"err"}
            )
            super().__init__({"bus": In(signature)})
            self.decoder = wishbone.Decoder(
                addr_width=14, data_width=32, granularity=8, features={"err"}
            )
            self.weft = WishbonePeripheral(TINY)
            self.decoder.add(self.weft.bus, name="weft", addr=0x4000)

        def elaborate(self, platform):
            m = Module()
            m.submodules.decoder, m.submodules.weft = self.decoder, self.weft
            wiring.connect(m, wiring.flipped(self.bus), self.decoder.bus)
            return m

    soc = Soc()

    async def bench(ctx):
        await talk(ctx, soc.bus, 0x4000)

    simulate(soc, bench, limit=20_000)
