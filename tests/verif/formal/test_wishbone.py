"""Tests of the rules of Wishbone: a correct slave keeps all, each bug violates one."""

import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.formal.bench import FormalBench, prove
from verif.formal.wishbone import ClassicRules, PipelinedRules

RULES = {False: ClassicRules, True: PipelinedRules}
OUT = {"dat_o", "ack_o", "err_o", "stall_o"}


class Slave(wiring.Component):
    """Answers each access two cycles later, with an error except at address 0."""

    def __init__(self, pipelined, bug=None):
        self.pipelined = pipelined
        self.bug = bug
        super().__init__({
            name: (Out if name in OUT else In)(width)
            for name, width in RULES[pipelined].PINS.items()
        })

    def elaborate(self, platform):
        m, bug = Module(), self.bug
        busy = Signal()
        taken, known = Signal(), Signal()
        done, wrong = (Signal(reset_less=bug == "an answer survives a reset") for _ in "ae")
        stays = 1 if bug == "a dropped cycle is answered" else self.cyc_i
        if self.pipelined:
            m.d.comb += self.stall_o.eq((taken & ~busy) | (bug == "a strobe is stalled for ever"))
            took = self.cyc_i & self.stb_i & (
                1 if bug == "a stalled strobe is taken" else ~self.stall_o
            )
        else:
            answered = 0 if bug == "a strobe is answered twice" else done | wrong
            took = self.cyc_i & self.stb_i & ~taken & ~answered
        m.d.sync += [
            busy.eq(~busy),
            known.eq(self.adr_i == 0), taken.eq(took & stays & (bug != "no answer")),
            done.eq(taken & stays & (known | (bug == "both answers"))),
            wrong.eq(taken & stays & ~known),
        ]
        gate = 1 if bug == "a dropped cycle is answered" else self.cyc_i
        if not self.pipelined:
            gate = gate & (1 if bug == "an answer without a strobe" else self.stb_i)
        early = self.stb_i & self.cyc_i & (bug == "an answer at once")
        m.d.comb += [
            self.ack_o.eq((done & gate) | early), self.err_o.eq(wrong & gate & ~early),
            self.dat_o.eq(Mux(done, 1, 0)),
        ]
        return m


BUGS = [
    (False, "a dropped cycle is answered", "asked"),
    (False, "an answer at once", "once"),
    (False, "both answers", "one_kind"),
    (False, "an answer survives a reset", "after_reset"),
    (False, "no answer", "bounded"),
    (True, "a dropped cycle is answered", "asked"),
    (True, "a stalled strobe is taken", "asked"),
    (True, "an answer at once", "asked"),
    (True, "both answers", "one_kind"),
    (True, "an answer survives a reset", "after_reset"),
    (True, "a strobe is stalled for ever", "stall_bounded"),
    (True, "no answer", "bounded"),
    (True, "no answer", "few"),
]


def bench(pipelined, bug=None):
    return FormalBench(Slave(pipelined, bug), {"": RULES[pipelined](limit=3)})


@pytest.mark.parametrize("pipelined", RULES)
def test_every_rule_has_a_bug(pipelined):
    broken = {rule for kind, _, rule in BUGS if kind == pipelined}
    assert broken == set(RULES[pipelined].RULES)


@pytest.mark.parametrize("pipelined", RULES)
def test_correct_slave_keeps_every_rule(pipelined):
    [report] = prove(bench(pipelined))
    assert report.failures == []
    assert set(report.rules) == set(RULES[pipelined].RULES)


def test_each_bug_violates_its_rule():
    benches = [bench(pipelined, bug) for pipelined, bug, _ in BUGS]
    reports = prove(*benches, only=[{rule} for *_, rule in BUGS])
    found = [(bug[:2], report.failures) for bug, report in zip(BUGS, reports, strict=True)]
    assert found == [(bug[:2], [f"{bug[2]}: reached"]) for bug in BUGS]
