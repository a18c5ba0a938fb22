"""The accumulator: the starts of its sum, and its carry chain against its twin."""

import pytest
from amaranth.hdl import Module, Mux, signed
from amaranth.lib import wiring
from tiers import quick

from verif.amaranth_bench import play
from verif.primitives import prove_equal
from weft.hw.fabrics import ecp5_primitives
from weft.hw.fabrics.ecp5_primitives import Accumulator
from weft.sim.primitives import ECP5_MODELS

SIZES = pytest.mark.parametrize("term, acc", quick(2, [(18, 32), (5, 7), (16, 32), (4, 4)]))


class TermGated(wiring.Component):
    """A folded `Accumulator` whose term is 0 while it shifts."""

    def __init__(self, **shapes):
        self.accumulator = Accumulator(**shapes, folded=True)
        super().__init__(dict(self.accumulator.signature.members))

    def elaborate(self, platform):
        m = Module()
        m.submodules.accumulator = accumulator = self.accumulator
        m.d.comb += [
            accumulator.term.eq(Mux(self.shift, 0, self.term)), accumulator.shift.eq(self.shift),
            accumulator.above.eq(self.above), self.sum.eq(accumulator.sum),
        ]
        return m


@SIZES
def test_the_chain_equals_its_twin(term, acc):
    prove_equal(Accumulator(term=signed(term), acc=signed(acc)), steps=2)


@SIZES
def test_the_folded_chain_equals_its_twin(term, acc):
    prove_equal(TermGated(term=signed(term), acc=signed(acc)), steps=2)


@pytest.mark.parametrize("name, make", [
    ("ADD_MASKED", lambda: Accumulator(term=signed(3), acc=signed(6))),
    ("ADD_OR_LOAD", lambda: TermGated(term=signed(3), acc=signed(6))),
])
@pytest.mark.parametrize("bit", quick(2, [12, 15, 13, 14]))
def test_a_changed_function_is_detected(name, make, bit, monkeypatch):
    monkeypatch.setattr(ecp5_primitives, name, getattr(ecp5_primitives, name) ^ 1 << bit)
    with pytest.raises(AssertionError, match="proof did fail"):
        prove_equal(make(), steps=2)


def test_a_wrong_first_carry_is_detected():
    """The first carry must not depend on the carry input, which is not connected."""
    models = ECP5_MODELS.read_text(encoding="utf-8").replace("f ? CI : !no_carry && g", "CI | g")
    with pytest.raises(AssertionError, match="proof did fail"):
        prove_equal(Accumulator(term=signed(3), acc=signed(6)), steps=2, models=models)


def test_sums_start_from_0_or_continue():
    script = [{"term": 5}, {"term": -7}, {"term": 3, "clear": 1}, {"term": 0, "clear": 0}]
    (sums,) = play(Accumulator(term=signed(5), acc=signed(32)), script, "sum", tail=1)
    assert sums == [0, 5, -2, 3, 3]


def test_folded_sums_load_above():
    script = [{"term": 5}, {"term": 0, "shift": 1, "above": -9}, {"shift": 0, "term": 1}]
    (sums,) = play(Accumulator(term=signed(5), acc=signed(8), folded=True), script, "sum", tail=1)
    assert sums == [0, 5, -9, -8]
