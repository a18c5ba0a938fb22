"""Tests of the quick engine: it computes what Amaranth's own engine computes, cycle by cycle."""

import random

import pytest
from amaranth.hdl import Array, Cat, ClockDomain, Elaboratable, Module, Mux, Signal, signed
from amaranth.lib import data, memory
from amaranth.sim import Simulator

from verif.quick_engine import QuickEngine

PAIR = data.StructLayout({"low": 3, "high": signed(5)})


class Mixed(Elaboratable):
    """All kinds of processes: split drivers, signed values, memories, chains, a falling edge."""

    def __init__(self, transparent):
        self.x, self.y, self.reset = Signal(8), Signal(signed(6)), Signal()
        self.pair, self.shared = Signal(PAIR), Signal(9)
        self.outputs = [Signal(signed(12), name=f"output{n}") for n in range(5)]
        self.transparent = transparent

    def elaborate(self, platform):
        m = Module()
        fall = ClockDomain("fall", clk_edge="neg", reset_less=True, local=True)
        m.domains += fall
        m.d.comb += fall.clk.eq(self.x[0])
        m.submodules.memory = ram = memory.Memory(shape=8, depth=5, init=[1, 2, 3])
        write = ram.write_port(granularity=4)
        read = ram.read_port(transparent_for=[write] if self.transparent else [])
        now = ram.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(self.x), write.data.eq(self.x ^ self.y), write.en.eq(self.y),
            read.addr.eq(self.x >> 1), now.addr.eq(self.y), read.en.eq(self.x[2]),
            self.shared[:4].eq(now.data), self.outputs[0].eq(self.y * 3 - self.x),
            self.pair.low.eq(self.outputs[0]), self.pair.high.eq(self.y),
        ]
        with m.Switch(self.x):
            with m.Case("1--0----"):
                m.d.sync += self.outputs[1].eq(self.outputs[1] + self.y)
            with m.Case(1, 2, 3):
                m.d.sync += self.outputs[1].bit_select(self.x, 2).eq(self.y)
        m.d.sync += self.shared[4:].eq(Cat(read.data[:3], self.y[5], self.shared[0]))
        m.d.fall += self.outputs[2].eq(self.outputs[2] ^ Cat(self.y, self.x))
        some = Array([self.x, self.y, self.shared])
        m.d.sync += self.outputs[3].eq(Mux(self.reset, 0, some[self.x[:2]]))
        m.submodules.inner = inner = Module()
        inner.d.sync += self.outputs[4].eq(self.outputs[4] + self.outputs[0])
        return m


def trace(dut, engine, seed, runs=2):
    """Samples of each cycle, and values between the edges, in runs that each start with a reset."""
    ports = [dut.pair, dut.shared, *dut.outputs]
    found, rng = [], random.Random(seed)

    async def bench(ctx):
        for cycle in range(300):
            ctx.set(dut.x, rng.getrandbits(8) if cycle % 7 else 0)
            ctx.set(dut.y, rng.randrange(-32, 32) if cycle % 3 else 0)
            ctx.set(dut.reset, int(rng.random() < 0.1))
            found.append([ctx.get(port) for port in ports])
            found.append(await ctx.tick().sample(*ports, dut.shared[2:7], dut.x + dut.y))

    async def edges(ctx):
        waits = aiter(ctx.posedge(dut.reset).sample(dut.outputs[1]))
        for _ in range(10):
            found.append(await anext(waits))
        await waits.aclose()

    async def changes(ctx):
        for _ in range(50):  # not `async for`: glitches would break it
            found.append(await ctx.changed(dut.shared))

    async def delayed(ctx):
        for _ in range(20):
            await ctx.delay(3.3e-6)
            found.append(ctx.get(dut.outputs[3]))

    simulator = Simulator(dut, engine=engine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    for process in (edges, changes, delayed):
        simulator.add_testbench(process, background=True)
    for number in range(runs):
        if number:
            simulator.reset()
        simulator.run()
    return found


@pytest.mark.parametrize("transparent", [False, True])
def test_is_equal_to_the_engine_of_amaranth(transparent):
    dut = Mixed(transparent)
    for seed in range(3):
        expected = trace(dut, "pysim", seed)
        assert len(expected) > 1200
        assert trace(dut, QuickEngine, seed) == expected


def test_refuses_waveforms():
    simulator = Simulator(Mixed(False), engine=QuickEngine)
    with pytest.raises(NotImplementedError, match="own engine"), simulator.write_vcd("out.vcd"):
        pass
