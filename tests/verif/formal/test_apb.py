"""Tests of the rules of APB: a correct slave keeps all, each bug violates one."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.formal.apb import ApbRules
from verif.formal.bench import FormalBench, prove

OUT = {"prdata", "pready", "pslverr"}


class Slave(wiring.Component):
    """Ends a read in its first access cycle, a write a cycle later; address 0 has no error."""

    def __init__(self, bug=None):
        self.bug = bug
        super().__init__({
            name: (Out if name in OUT else In)(width) for name, width in ApbRules.PINS.items()
        })

    def elaborate(self, platform):
        m, bug = Module(), self.bug
        waited = Signal()  # a write has had its wait state
        access = self.psel & self.penable
        end = access & (~self.pwrite | waited)
        after_reset = Signal(init=1)
        m.d.sync += [waited.eq(access & self.pwrite & ~waited), after_reset.eq(0)]
        m.d.comb += [
            self.pready.eq({
                "ready without a transfer": end | ~self.psel & ~after_reset,
                "ready in reset": end | after_reset,
                "no end of a write": end & ~self.pwrite,
            }.get(bug, end)),
            self.pslverr.eq((self.paddr != 0) & (1 if bug == "an early error" else end)),
        ]
        return m


BUGS = [
    ("ready without a transfer", "asked"),
    ("an early error", "error_at_end"),
    ("ready in reset", "after_reset"),
    ("no end of a write", "bounded"),
]


def bench(bug=None):
    return FormalBench(Slave(bug), {"": ApbRules(limit=3)})


def test_every_rule_has_a_bug():
    assert {rule for _, rule in BUGS} == set(ApbRules.RULES)


def test_correct_slave_keeps_every_rule():
    [report] = prove(bench())
    assert report.failures == []
    assert set(report.rules) == set(ApbRules.RULES)
    assert set(report.covers) == set(ApbRules.COVERS)


@pytest.mark.parametrize("bug, rule", BUGS, ids=[bug for bug, _ in BUGS])
def test_bug_violates_its_rule(bug, rule):
    [report] = prove(bench(bug), only=[{rule}])
    assert report.failures == [f"{rule}: reached"]
