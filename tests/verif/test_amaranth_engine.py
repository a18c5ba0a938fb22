"""The engine of the benches has Amaranth's own results, and its values are those of layouts."""

import random

import pytest
from amaranth.hdl import Cat, DriverConflict, Module, Mux, Signal, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from verif.amaranth_engine import Engine, pack, unpack

PAIR = data.StructLayout({"x": signed(5), "y": 3})
LAYOUTS = [
    PAIR,
    data.ArrayLayout(signed(8), 5),
    data.ArrayLayout(PAIR, 3),
    data.StructLayout(
        {"flag": 1, "pairs": data.ArrayLayout(PAIR, 2), "empty": 0, "level": range(6)}
    ),
    data.FlexibleLayout(16, {"low": data.Field(4, 2), "high": data.Field(signed(6), 9)}),
]


class Block(wiring.Component):
    """A memory, a signed sum, a switch, a record, and logic in two modules, one after the other."""

    address: In(3)
    en: In(1)
    pair: In(PAIR)
    bias: In(signed(6))
    biased: Out(signed(8))
    total: Out(signed(9))
    word: Out(8)
    other: Out(PAIR)
    parity: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.doubler = doubler = Module()
        doubled = Signal(signed(7))
        doubler.d.comb += doubled.eq(self.bias << 1)
        m.submodules.memory = rows = memory.Memory(shape=8, depth=8, init=range(8))
        read, write = rows.read_port(), rows.write_port()
        m.d.comb += [
            read.addr.eq(self.address), write.addr.eq(self.address + 1), write.en.eq(self.en),
            write.data.eq(Cat(self.pair.y, self.total)), self.word.eq(read.data),
            self.parity.eq(self.total.xor()), self.biased.eq(doubled + self.pair.x),
        ]
        with m.If(self.en):
            m.d.sync += self.total.eq(self.total - self.pair.x)
        with m.Switch(self.pair.y):
            with m.Case(1, 3):
                m.d.sync += [self.other.x.eq(-self.pair.x), self.other.y[1:].eq(self.address)]
            with m.Default():
                m.d.sync += self.other.y.eq(Mux(self.total < 0, self.word, 1))
        return m


def trace(seed, **options):
    """Random inputs, and all outputs in each cycle and between two sets."""
    dut, rng, found = Block(), random.Random(seed), []
    outputs = dut.total, dut.word, dut.other, dut.parity, dut.bias, dut.biased

    async def bench(ctx):
        for _ in range(60):
            ctx.set(dut.address, rng.randrange(8))
            ctx.set(dut.en, rng.randrange(2))
            ctx.set(dut.bias, rng.randrange(-32, 32))
            if rng.randrange(2):
                ctx.set(dut.pair, {"x": rng.randrange(-16, 16), "y": rng.randrange(8)})
            else:
                ctx.set(dut.pair.x, rng.randrange(-16, 16))
            found.append([ctx.get(each) for each in outputs])
            found.append(await ctx.tick().sample(*outputs, dut.pair.x + dut.total))

    simulator = Simulator(dut, **options)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


@pytest.mark.parametrize("seed", range(3))
def test_a_bench_sees_what_it_sees_on_amaranths_engine(seed):
    found = trace(seed, engine=Engine)
    assert found == trace(seed)
    assert len({str(row) for row in found}) > 60


def test_a_trace_has_every_change(tmp_path):
    texts = []
    for options in ({}, {"engine": Engine}):
        simulator = Simulator(Block(), **options)
        simulator.add_clock(1e-6)
        with simulator.write_vcd(str(tmp_path / "a.vcd")):
            simulator.run_until(20e-6)
        texts.append((tmp_path / "a.vcd").read_text(encoding="utf-8"))
    changes = [text[text.index("$enddefinitions"):] for text in texts]
    assert changes[0] == changes[1]


def test_a_bench_cannot_set_what_the_design_drives():
    dut = Block()

    async def bench(ctx):
        ctx.set(dut.parity, 1)

    simulator = Simulator(dut, engine=Engine)
    simulator.add_testbench(bench)
    with pytest.raises(DriverConflict):
        simulator.run()


def members(value):
    """The members of Amaranth's own constant."""
    if not isinstance(value, data.Const):
        return int(value)
    layout = value.shape()
    if isinstance(layout, data.ArrayLayout):
        return [members(value[n]) for n in range(layout.length)]
    return {key: members(value[key]) for key, _ in layout}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_values_of_a_layout_are_amaranths(layout):
    rng = random.Random(1)
    for _ in range(20):
        value = members(layout.from_bits(rng.getrandbits(layout.size)))
        bits = layout.const(value).as_bits()
        assert pack(layout, value) == bits
        assert unpack(layout, bits) == value


def test_members_that_are_not_set_are_zero():
    assert pack(LAYOUTS[3], {"level": 2}) == LAYOUTS[3].const({"level": 2}).as_bits() > 0
    assert pack(LAYOUTS[1], [-1]) == 0xFF


@pytest.mark.parametrize("shape, value, error, words", [
    (3, 8, ValueError, "a value of 3 bits must be in 0..7, not 8"),
    (signed(4), -9, ValueError, r"a value of 4 bits must be in -8..7, not -9"),
    (PAIR, {"x": 16}, ValueError, r"a value of 5 bits must be in -16..15, not 16"),
    (PAIR, {"z": 0}, KeyError, "z"),
    (LAYOUTS[1], [0] * 6, ValueError, "an array of 5 elements cannot be set to 6"),
    (3, 1.0, TypeError, "float"),
])
def test_a_value_that_does_not_fit_is_an_error(shape, value, error, words):
    with pytest.raises(error, match=words):
        pack(shape, value)
