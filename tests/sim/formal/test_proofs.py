"""Proofs of the hardware: the cheap ones; and bugs sown in it, which each break a rule."""

import dataclasses
import gc
import warnings

import pytest
from amaranth.hdl import UnusedElaboratable

from weft.hw.bus.wishbone import Wishbone
from weft.sim.formal.bench import prove
from weft.sim.formal.bugs import BUGS, sown
from weft.sim.formal.engine import REACH
from weft.sim.formal.proofs import PROOFS, STEPS

CHEAP = [
    "Wishbone alone", "Wishbone alone, pipelined", "registers, stream", "AXI4 reads alone",
    "AXI4 writes alone, in order", "operands walked",
]
SOWN = [
    bug for bug in BUGS
    if bug.proof in ("Wishbone alone", "AXI4 reads alone", "operands walked")
    or bug.rule in ("w_last", "w_few")
]


def rules(name):
    """What the rules of a proof say, by name; its bench is not needed for more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        bench = PROOFS[name].bench()
        said = {
            prefix + rule: text for prefix, one in bench.rules.items()
            for rule, text in one.RULES.items()
        }
        del bench
        gc.collect()
    return said


@pytest.mark.parametrize("name", CHEAP)
def test_a_proof(name):
    proof = PROOFS[name]
    bench = proof.bench()
    [report] = prove(bench, only=[proof.only(bench)], cuts=proof.cuts)
    assert report.wrong == []
    assert report.rules.keys() | report.covers.keys() == proof.only(bench)


@pytest.mark.parametrize("bug", SOWN, ids=[bug.what for bug in SOWN])
def test_a_bug_is_found(bug):
    proof = PROOFS[bug.proof]
    with sown(bug):
        [report] = prove(proof.bench(), only=[{bug.rule}], search=REACH, cuts=proof.cuts)
    assert report.wrong == [f"{bug.rule}: reached"]


def test_every_bug_can_be_sown():
    for bug in BUGS:
        with sown(bug):
            pass


def test_every_rule_is_broken_by_a_bug():
    """Of one design at least that has a rule which says so."""
    said = {name: rules(name) for name in PROOFS}
    broken = {said[bug.proof][bug.rule] for bug in BUGS}
    assert {text for some in said.values() for text in some.values()} == broken


def test_what_is_promised_of_writes_is_proven_before():
    whole = PROOFS["AXI4 writes alone"]
    known = rules(whole.name).keys() - {*whole.left}
    for name, some in STEPS.items():
        assert {*PROOFS[name].bench.args} <= known
        known |= {*some}
    assert known == rules(whole.name).keys()


def test_a_bug_is_gone_when_it_was_sown():
    before = Wishbone.elaborate
    with sown(SOWN[0]):
        assert Wishbone.elaborate is not before
    assert Wishbone.elaborate is before


def test_a_bug_whose_text_is_not_there_is_an_error():
    bug = dataclasses.replace(SOWN[0], old="no such text")
    with pytest.raises(ValueError, match="must be in weft.hw.bus.wishbone once, not 0 times"):
        with sown(bug):
            pass
