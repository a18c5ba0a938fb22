"""The components of the iCE40 MAC cells: primitives and twins are proven equal in all cycles."""

import pytest
from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, Mux, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from tiers import quick

from verif.primitives import cosimulate, prove_equal
from weft.hw.arith.ice40 import (
    CarryChainAccumulator,
    DspAccumulator,
    DspMultiplier,
    HalvesMultiplier,
    LoadableCounter,
    PairMultiplier,
    QuadProduct,
)
from weft.sim.primitives import ICE40_MODELS

MODELS = ICE40_MODELS.read_text(encoding="utf-8")


class WithoutReset(wiring.Component):
    """A DSP block without its reset, which is asynchronous in the device and not in the twin."""

    def __init__(self, block):
        self.block = block
        super().__init__({"clock": In(1), **block.signature.members})

    def elaborate(self, platform):
        m = Module()
        m.domains.no_reset = ClockDomain(reset_less=True, local=True)
        m.submodules.block = DomainRenamer("no_reset")(self.block)
        m.d.comb += ClockSignal("no_reset").eq(self.clock)
        for name, member in self.block.signature.members.items():
            outer, inner = getattr(self, name), getattr(self.block, name)
            m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        return m


@pytest.mark.parametrize("bits", quick(1, [8, 9]))
def test_multiplier_in_logic(bits):
    prove_equal(HalvesMultiplier(a=signed(bits), b=signed(bits)), steps=3, models=MODELS)


@pytest.mark.parametrize("down", [False, True])
def test_counter(down):
    prove_equal(LoadableCounter(5, down=down), steps=3, models=MODELS)


@pytest.mark.long
def test_pair_in_a_block():
    prove_equal(WithoutReset(PairMultiplier()), steps=4, models=MODELS)


class Edges(wiring.Component):
    """A `QuadProduct`; in half of all cycles, its operands are -128 and 127."""

    is_edge: In(1)
    a: In(QuadProduct().signature.members["a"].shape)
    b: In(QuadProduct().signature.members["b"].shape)
    sum: Out(signed(18))

    def elaborate(self, platform):
        m = Module()
        m.submodules.product = product = QuadProduct()
        for inner, outer in zip([*product.a, *product.b], [*self.a, *self.b], strict=True):
            m.d.comb += inner.eq(Mux(self.is_edge, Mux(outer[0], -128, 127), outer))
        m.d.comb += self.sum.eq(product.sum)
        return m


CYCLES = 6_000  # in one of 1,024, all four products are 2^14


def test_four_products_in_two_blocks():
    assert cosimulate(Edges(), cycles=CYCLES, models=MODELS) == "PASS"


@pytest.mark.parametrize("correct, wrong", [
    ("OUTPUT_SELECT == 2 ? byte_product", "OUTPUT_SELECT == 2 ? sum"),
    ("low_carry_in, d, low_term, g,", "low_carry_in, d, low_term, f,"),
])
def test_wrong_sums_of_four_products_are_detected(correct, wrong):
    assert correct in MODELS
    models = MODELS.replace(correct, wrong)
    assert cosimulate(Edges(), cycles=100, models=models).startswith("FAIL")


@pytest.mark.parametrize("folded", [False, True])
def test_sum_in_logic(folded):
    prove_equal(CarryChainAccumulator(term=signed(18), folded=folded), steps=2, models=MODELS)


@pytest.mark.parametrize("folded", quick(1, [True, False]))
def test_sum_in_a_block(folded):
    """With narrow factors, for speed: the width does not change how and when it sums."""
    block = DspAccumulator(a=signed(3), b=signed(3), folded=folded)
    prove_equal(WithoutReset(block), steps=5, models=MODELS)


class Products(wiring.Component):
    """Products of 16 x 16 bits with each pair of signs; some factors are the least or largest."""

    is_edge: In(1)
    a: In(16)
    b: In(16)
    products: Out(96)

    def elaborate(self, platform):
        m, products = Module(), []
        for shapes in ((16, 16), (signed(16), 16), (signed(16), signed(16))):
            m.submodules += (block := DspMultiplier(a=shapes[0], b=shapes[1]))
            for inner, outer in ((block.a, self.a), (block.b, self.b)):
                edge = Mux(outer[0], 0x8000, 0xFFFF)
                m.d.comb += inner.eq(Mux(self.is_edge, edge, outer))
            products.append(block.product.as_unsigned())
        m.d.comb += self.products.eq(Cat(products))
        return m


def test_products_of_both_signs_in_a_block():
    assert cosimulate(Products(), cycles=2_000, models=MODELS) == "PASS"


@pytest.mark.parametrize("correct, wrong", [
    ("A_SIGNED & a[15]}}, a}", "a[15]}}, a}"),
    ("B_SIGNED & b[15]}}, b[15:8]}, lower", "1'b0}}, b[15:8]}, lower"),
])
def test_wrong_signs_of_a_block_are_detected(correct, wrong):
    assert correct in MODELS
    models = MODELS.replace(correct, wrong)
    assert cosimulate(Products(), cycles=200, models=models).startswith("FAIL")


@pytest.mark.parametrize("make, correct, wrong", quick(3, [
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
    (lambda: WithoutReset(PairMultiplier()), "? f_reg", "? f_product"),
]), ids=["multiplier", "chain", "block", "pair", "pair-late"])
def test_wrong_models_are_detected(make, correct, wrong):
    assert correct in MODELS
    with pytest.raises(AssertionError, match="not proven equal to their twin"):
        prove_equal(make(), steps=5, models=MODELS.replace(correct, wrong))
