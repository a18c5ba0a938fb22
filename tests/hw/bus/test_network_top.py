"""The top of a network core: its ports, and lists and resets through its bus."""

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import DomainRenamer, Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import connect
from network_cores import small_network_core

from verif.amaranth_bench import simulate, ticks
from weft.hw.bus.network_wrapper import NetworkWrapper
from weft.hw.bus.top import BareWrapper
from weft.hw.network_core.core import NetworkCore
from weft.network_core.descriptors import ListEnd, NetworkState, split
from weft.network_core.ip import NetworkIp
from weft.network_core.register_map import REGISTERS
from weft.register_map import constants, fifo_ports, registers

CHIP = small_network_core(2, 2, 2, words=64)
IP = NetworkIp(config=CHIP, bus="apb")
AT = {item.name: item.address for item in (*registers(IP), *fifo_ports(IP))}
PINS = {
    "axi": ("aclk", "aresetn", "s_axil_"), "wishbone": ("wb_clk_i", "wb_rst_i", "wb_"),
    "apb": ("pclk", "presetn", "p"),
}


@pytest.mark.parametrize("bus", PINS)
def test_ports(bus):
    clock, reset, prefix = PINS[bus]
    top = BareWrapper(NetworkIp(config=CHIP, bus=bus))
    rtlil.convert(top, name="top", emit_src=False)
    *names, irq, core, core_reset = top.signature.members
    assert names[:2] == [clock, reset] and (irq, core, core_reset) == ("irq", "core", "core_reset")
    assert len(names) > 9 and all(name.startswith(prefix) for name in names[2:])


class WrappedNetworkCore(wiring.Component):
    """The wrapper and the core in domain ``sync``, with the pins of the bus APB."""

    def __init__(self):
        super().__init__(NetworkWrapper.pins(IP))

    def elaborate(self, platform):
        m = Module()
        wrapper = NetworkWrapper(IP)
        resets = ResetInserter({"core": wrapper.core_reset})
        m.submodules.wrapper = DomainRenamer({"core": "sync"})(resets(wrapper))
        core = NetworkCore(CHIP)
        m.submodules.core = ResetInserter(wrapper.core_reset)(core)
        connect(m, wrapper.core, core)
        for name in NetworkWrapper.pins(IP):
            pin, inner = getattr(self, name), getattr(wrapper, name)
            is_input = self.signature.members[name].flow == wiring.In
            m.d.comb += inner.eq(pin) if is_input else pin.eq(inner)
        return m


class ApbAccess:
    """Reads and writes registers by name."""

    def __init__(self, dut):
        self.dut = dut

    async def access(self, ctx, name, value=None):
        dut = self.dut
        ctx.set(dut.paddr, AT[name])
        ctx.set(dut.pwrite, value is not None)
        ctx.set(dut.pwdata, value or 0)
        ctx.set(dut.psel, 1)
        await ctx.tick()
        ctx.set(dut.penable, 1)
        data, error = await ctx.tick().sample(dut.prdata, dut.pslverr).until(dut.pready)
        ctx.set(dut.psel, 0)
        ctx.set(dut.penable, 0)
        assert not error, name
        return data

    async def write(self, ctx, number, data):
        await self.access(ctx, "memory_address", split(number, CHIP.banks))
        await self.access(ctx, "memory_write", len(data))
        for word in np.frombuffer(data, "<u4").tolist():
            await self.access(ctx, "write_fifo", word)
        await self.until(ctx, "status", 0)

    async def read(self, ctx, number, count):
        await self.access(ctx, "memory_address", split(number, CHIP.banks))
        await self.access(ctx, "memory_read", count)
        await self.until(ctx, "read_fifo_level", count // 4)
        words = [await self.access(ctx, "read_fifo") for _ in range(count // 4)]
        return np.array(words, "<u4").tobytes()

    async def until(self, ctx, name, value):
        while await self.access(ctx, name) != value:
            pass


@pytest.mark.slow
def test_lists_and_resets_over_the_bus():
    dut = WrappedNetworkCore()
    bus = ApbAccess(dut)
    end = ListEnd(result=split(9, CHIP.banks), result_bytes=6).pack()

    async def bench(ctx):
        await bus.until(ctx, "status", 0)  # the reset after power-on
        for name, value in constants(IP).items():
            if name in ("magic", "kind", "hash", "words", "vectors"):
                assert await bus.access(ctx, name) == value
        await bus.write(ctx, 40, end)
        assert await bus.read(ctx, 40, 12) == end[:12]
        await bus.access(ctx, "control", 4)
        assert await bus.access(ctx, "irq_status") == 1 << 5  # refused: LIMIT is 0
        await bus.access(ctx, "limit", CHIP.words)
        await bus.access(ctx, "list_address", split(40, CHIP.banks))
        await bus.access(ctx, "irq_enable", 1)
        await bus.access(ctx, "control", 4)
        while not ctx.get(dut.irq):
            await ctx.tick()
        assert await bus.access(ctx, "net_status") == NetworkState.DONE
        assert 0 < await bus.access(ctx, "net_cycles") < 200
        assert await bus.access(ctx, "net_result") == split(9, CHIP.banks)
        assert await bus.access(ctx, "net_result_bytes") == 6
        # A reset ends a transfer; the memory, LIMIT and LIST_ADDRESS stay.
        await bus.access(ctx, "memory_write", 400)
        await bus.access(ctx, "control", 1)
        await bus.until(ctx, "status", 0)
        assert await bus.access(ctx, "net_status") == NetworkState.IDLE
        assert await bus.read(ctx, 40, 128) == end
        await bus.access(ctx, "control", 4)
        await bus.until(ctx, "status", 0)
        assert await bus.access(ctx, "net_status") == NetworkState.DONE
        await ticks(ctx, 5)

    assert len(REGISTERS) * 4 < AT["control"]
    simulate(dut, bench, limit=20_000)
