"""The peripheral for amaranth-soc, on its decoder if WEFT_AMARANTH_SOC is a path of a checkout.

Otherwise a stand-in has the members of its Wishbone signature.
"""

import pytest
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth_soc_stand_in import CHECKOUT, install

from verif.amaranth_bench import simulate
from weft.commands import Job
from weft.config import Config
from weft.hw.bus.amaranth_soc import WishbonePeripheral
from weft.registers import SPACE, describe

TINY = Config(
    rows=1, cols=1, lanes=1, requantize="none", bytes_in=4, bytes_out=4, a_words=32, b_words=32
)
LIMIT = 200  # clocks of an access, at most


@pytest.fixture(autouse=True)
def amaranth_soc(monkeypatch):
    install(monkeypatch)


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
