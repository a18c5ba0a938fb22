"""The accumulator: what its sum starts from, and its carry chain against its twin."""

import pytest
from amaranth.hdl import Module, Mux, signed
from amaranth.lib import wiring

from weft.hw.arith import accumulator
from weft.hw.arith.accumulator import Accumulator
from weft.sim.amaranth_bench import play
from weft.sim.primitives import ECP5_MODELS, prove_equal

SIZES = pytest.mark.parametrize("term, acc", [(18, 32), (16, 32), (5, 7), (4, 4)])


class Still(wiring.Component):
    """A folded `Accumulator` to which nothing is added while its sums move."""

    def __init__(self, **shapes):
        self.inside = Accumulator(**shapes, folded=True)
        super().__init__(dict(self.inside.signature.members))

    def elaborate(self, platform):
        m = Module()
        m.submodules.inside = inside = self.inside
        m.d.comb += [
            inside.term.eq(Mux(self.shift, 0, self.term)), inside.shift.eq(self.shift),
            inside.above.eq(self.above), self.sum.eq(inside.sum),
        ]
        return m


@SIZES
def test_the_chain_equals_its_twin(term, acc):
    prove_equal(Accumulator(term=signed(term), acc=signed(acc)), steps=2)


@SIZES
def test_the_folded_chain_equals_its_twin(term, acc):
    prove_equal(Still(term=signed(term), acc=signed(acc)), steps=2)


@pytest.mark.parametrize("name, made", [
    ("ADD_MASKED", lambda: Accumulator(term=signed(3), acc=signed(6))),
    ("ADD_OR_LOAD", lambda: Still(term=signed(3), acc=signed(6))),
])
@pytest.mark.parametrize("bit", range(12, 16))
def test_a_position_of_other_function_is_seen(name, made, bit, monkeypatch):
    monkeypatch.setattr(accumulator, name, getattr(accumulator, name) ^ 1 << bit)
    with pytest.raises(AssertionError, match="proof did fail"):
        prove_equal(made(), steps=2)


def test_a_carry_that_starts_from_anything_is_seen():
    """The first carry does not hang on what the chain's start is connected to: nothing."""
    models = ECP5_MODELS.read_text(encoding="utf-8").replace("f ? CI : !no_carry && g", "CI | g")
    with pytest.raises(AssertionError, match="proof did fail"):
        prove_equal(Accumulator(term=signed(3), acc=signed(6)), steps=2, models=models)


def test_sums_start_from_nothing_or_go_on():
    script = [{"term": 5}, {"term": -7}, {"term": 3, "clear": 1}, {"term": 0, "clear": 0}]
    (sums,) = play(Accumulator(term=signed(5), acc=signed(32)), script, "sum", tail=1)
    assert sums == [0, 5, -2, 3, 3]


def test_folded_sums_take_what_is_above():
    script = [{"term": 5}, {"term": 0, "shift": 1, "above": -9}, {"shift": 0, "term": 1}]
    (sums,) = play(Accumulator(term=signed(5), acc=signed(8), folded=True), script, "sum", tail=1)
    assert sums == [0, 5, -9, -8]
