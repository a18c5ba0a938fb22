"""The parts of the iCE40 leaves of which primitives and twin differ: proven equal in all cycles."""

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from weft.hw.arith.ice40_accumulator import CarryChainAccumulator, DspAccumulator
from weft.hw.arith.ice40_multiplier import HalvesMultiplier
from weft.hw.arith.ice40_pair import PairMultiplier
from weft.sim.primitives import ICE40_MODELS, prove_equal

MODELS = ICE40_MODELS.read_text(encoding="utf-8")


class WithoutReset(wiring.Component):
    """A block without its reset, which for that of the device takes effect between two edges."""

    def __init__(self, block):
        self.block = block
        super().__init__({"clock": In(1), **block.signature.members})

    def elaborate(self, platform):
        m = Module()
        m.domains.still = ClockDomain(reset_less=True, local=True)
        m.submodules.block = DomainRenamer("still")(self.block)
        m.d.comb += ClockSignal("still").eq(self.clock)
        for name, member in self.block.signature.members.items():
            here, there = getattr(self, name), getattr(self.block, name)
            m.d.comb += there.eq(here) if member.flow == In else here.eq(there)
        return m


@pytest.mark.parametrize("bits", [8, 9])
def test_multiplier_in_logic(bits):
    prove_equal(HalvesMultiplier(a=signed(bits), b=signed(bits)), steps=3, models=MODELS)


@pytest.mark.slow
def test_pair_in_a_block():
    prove_equal(WithoutReset(PairMultiplier()), steps=4, models=MODELS)


@pytest.mark.parametrize("folded", [False, True])
def test_sum_in_logic(folded):
    prove_equal(CarryChainAccumulator(term=signed(18), folded=folded), steps=2, models=MODELS)


@pytest.mark.parametrize("folded", [False, True])
def test_sum_in_a_block(folded):
    """Of small factors, for the sake of time: all else is in how it sums, and when."""
    block = DspAccumulator(a=signed(3), b=signed(3), folded=folded)
    prove_equal(WithoutReset(block), steps=5, models=MODELS)


@pytest.mark.parametrize("part, right, wrong", [
    (lambda: HalvesMultiplier(a=signed(9), b=signed(9)), "I0 & I1 |", "I0 & I1 &"),
    (
        lambda: CarryChainAccumulator(term=signed(18), folded=True),
        "LUT_INIT[{I3, I2, I1, I0}]", "I1 ^ I2 ^ I3",
    ),
    (
        lambda: WithoutReset(DspAccumulator(a=signed(3), b=signed(3), folded=True)),
        "LOAD ?", "HOLD ?",
    ),
    (lambda: WithoutReset(PairMultiplier()), "A_SIGNED & a[7]", "A_SIGNED & a[6]"),
    (lambda: WithoutReset(PairMultiplier()), "? f_held", "? f_now"),
], ids=["multiplier", "chain", "block", "pair", "pair-late"])
def test_refutes_what_is_not_so(part, right, wrong):
    assert right in MODELS
    with pytest.raises(AssertionError, match="must equal their twin"):
        prove_equal(part(), steps=5, models=MODELS.replace(right, wrong))
