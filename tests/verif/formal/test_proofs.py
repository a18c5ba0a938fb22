"""Tests of the cheap proofs, and of some bugs sown in the hardware: each violates a rule.

`make proofs` proves all, and sows all bugs.
"""

import dataclasses
import gc
import warnings

import pytest
from amaranth.hdl import UnusedElaboratable
from tiers import tiers

from verif.formal.bench import prove
from verif.formal.bugs import BUGS, sown
from verif.formal.engine import REACH
from verif.formal.proofs import PROOFS, STEPS
from weft.hw.bus.wishbone import Wishbone

CHEAP = [
    "Wishbone alone", "Wishbone alone, pipelined", "registers, stream", "AXI4 reads alone",
    "address generator alone", "APB alone", "apb, networks", "program memory, reads",
    "program memory, stores", "panel gate alone", "SDRAM controller, 8 words",
]
SOWN = [
    bug for bug in BUGS
    if bug.proof in (
        "Wishbone alone", "APB alone", "AXI4 reads alone", "address generator alone",
        "list loader alone", "panel gate alone", "registers, networks", "program memory, reads",
        "SDRAM controller, 8 words",
    )
    or bug.rule in ("w_last", "w_limit")
]
# Further bugs of the same proof are long.
FIRST = {bug.proof: bug.what for bug in reversed(SOWN)}
FURTHER = {bug.what for bug in SOWN} - {*FIRST.values()}


def rules(*names):
    """The sentences of the rules of proofs: name of the proof -> name of the rule -> sentence."""
    texts = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        for name in names:
            bench = PROOFS[name].bench()
            texts[name] = {
                prefix + rule: text for prefix, one in bench.rules.items()
                for rule, text in one.RULES.items()
            }
        del bench
        gc.collect()  # unused components warn when they are deleted
    return texts


# Rules use the domain that a whole core creates from its pins. Amaranth 0.6 will not allow that.
@pytest.mark.filterwarnings("ignore:Domain 'sync' is used in 'top.*rules':DeprecationWarning")
@pytest.mark.parametrize("name", tiers({name: name for name in CHEAP}, *CHEAP[:3]))
def test_proof(name):
    proof = PROOFS[name]
    bench = proof.bench()
    [report] = prove(bench, only=[proof.only(bench)], cuts=proof.cuts)
    assert report.failures == []
    assert report.rules.keys() | report.covers.keys() == proof.only(bench)


@pytest.mark.slow
def test_limits_of_a_list():
    """The rules of its accesses; the whole proof is too long here."""
    proof, only = PROOFS["list execution alone"], {"reads_inside", "log_inside"}
    [report] = prove(proof.bench(), only=[only], cuts=proof.cuts)
    assert report.failures == []
    assert report.rules.keys() == only


@pytest.mark.parametrize("bug", tiers(
    {bug.what: bug for bug in SOWN}, SOWN[0].what, long=FURTHER
))
def test_bug_violates_its_rule(bug):
    proof = PROOFS[bug.proof]
    with sown(bug):
        [report] = prove(proof.bench(), only=[{bug.rule}], search=REACH, cuts=proof.cuts)
    assert report.failures == [f"{bug.rule}: reached"]


def test_every_bug_can_be_sown():
    for bug in BUGS:
        with sown(bug):
            pass


def test_every_rule_has_a_bug():
    """The same sentence may be a rule of several designs; a bug in one of them suffices."""
    texts = rules(*PROOFS)
    violated = {texts[bug.proof][bug.rule] for bug in BUGS}
    assert {text for found in texts.values() for text in found.values()} == violated


def test_steps_assume_only_rules_that_are_proven_before():
    whole = PROOFS["AXI4 writes alone"]
    every = rules(whole.name)[whole.name].keys()
    known = every - {*whole.excluded}
    for name, selected in STEPS.items():
        assert {*PROOFS[name].bench.args} <= known
        known |= {*selected}
    assert known == every


def test_bug_is_removed_after_the_context():
    before = Wishbone.elaborate
    with sown(SOWN[0]):
        assert Wishbone.elaborate is not before
    assert Wishbone.elaborate is before


def test_missing_text_of_a_bug_is_an_error():
    bug = dataclasses.replace(SOWN[0], old="no such text")
    with pytest.raises(ValueError, match="must be in weft.hw.bus.wishbone once, not 0 times"):
        with sown(bug):
            pass
