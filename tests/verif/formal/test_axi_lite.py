"""Tests of the rules of AXI4-Lite: a correct slave keeps all, each bug violates one."""

import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.formal.axi_lite import AxiLiteBounds, AxiLiteRules
from verif.formal.bench import FormalBench, prove

OUT = {"awready", "wready", "bresp", "bvalid", "arready", "rdata", "rresp", "rvalid"}


class Slave(wiring.Component):
    """One register at address 0; ``bug`` selects an error."""

    def __init__(self, bug=None):
        self.bug = bug
        super().__init__({
            name: (Out if name in OUT else In)(width) for name, width in AxiLiteRules.PINS.items()
        })

    def elaborate(self, platform):
        m, bug = Module(), self.bug
        aw, w = Signal(), Signal()
        b_valid, r_valid = (
            Signal(name=name, reset_less=bug == f"{name} survives a reset") for name in "br"
        )
        register, address, data, r_data = Signal(32), Signal(12), Signal(32), Signal(32)
        b_done = self.bvalid if bug == "b leaves at once" else self.bvalid & self.bready
        r_done = self.rvalid if bug == "r leaves at once" else self.rvalid & self.rready
        m.d.comb += [
            self.bvalid.eq(b_valid), self.rvalid.eq(r_valid),
            self.awready.eq((~aw | (bug == "any number of aw")) & (bug != "aw is never taken")),
            self.wready.eq(~w & (bug != "w is never taken")),
            self.arready.eq(~self.rvalid & (bug != "ar is never taken")),
        ]
        with m.If(self.awvalid & self.awready):
            m.d.sync += [aw.eq(1), address.eq(self.awaddr)]
        with m.If(self.wvalid & self.wready):
            m.d.sync += [w.eq(1), data.eq(self.wdata)]
        whole = aw if bug == "b without w" else w if bug == "b without aw" else aw & w
        with m.If(b_done):
            m.d.sync += b_valid.eq(0)
            if bug != "b twice":
                m.d.sync += [aw.eq(0), w.eq(0)]
        with m.Elif(whole & ~self.bvalid & (bug != "no b")):
            refused = 3 if bug == "b is a decode error" else 2
            m.d.sync += [b_valid.eq(1), self.bresp.eq(Mux(address == 0, 0, refused))]
            with m.If(address == 0):
                m.d.sync += register.eq(data)
        with m.If(self.arvalid & self.arready):
            refused = 1 if bug == "r is exclusive" else 2
            m.d.sync += [
                r_valid.eq(bug != "no r"),
                r_data.eq(Mux(self.araddr == 0, register, 0)),
                self.rresp.eq(Mux(self.araddr == 0, 0, refused)),
            ]
        m.d.comb += self.rdata.eq(register if bug == "r follows the register" else r_data)
        with m.If(r_done & (bug != "r twice")):
            m.d.sync += r_valid.eq(0)
        return m


BUGS = {
    "b without w": "b_after_aw_and_w",
    "b without aw": "b_after_aw_and_w",
    "b twice": "b_after_aw_and_w",
    "r twice": "r_after_ar",
    "b leaves at once": "b_stays",
    "r leaves at once": "r_stays",
    "r follows the register": "r_stays",
    "any number of aw": "few",
    "b survives a reset": "b_after_reset",
    "r survives a reset": "r_after_reset",
    "b is a decode error": "bresp_known",
    "r is exclusive": "rresp_known",
    "aw is never taken": "aw_bounded",
    "w is never taken": "w_bounded",
    "ar is never taken": "ar_bounded",
    "no b": "b_bounded",
    "no r": "r_bounded",
}


def bench(bug=None, rules=AxiLiteRules):
    return FormalBench(Slave(bug), {"": rules(limit=3) if rules is AxiLiteBounds else rules()})


KINDS = [AxiLiteRules, AxiLiteBounds]


def test_every_rule_has_a_bug():
    assert set(BUGS.values()) == {rule for rules in KINDS for rule in rules.RULES}


@pytest.mark.parametrize("rules", KINDS)
def test_correct_slave_keeps_every_rule(rules):
    [report] = prove(bench(rules=rules))
    assert report.failures == []
    assert (set(report.rules), set(report.covers)) == (set(rules.RULES), set(rules.COVERS))


@pytest.mark.slow
def test_each_bug_violates_its_rule():
    benches = [
        bench(bug, next(rules for rules in KINDS if rule in rules.RULES))
        for bug, rule in BUGS.items()
    ]
    reports = prove(*benches, only=[{rule} for rule in BUGS.values()])
    found = {bug: report.failures for bug, report in zip(BUGS, reports, strict=True)}
    assert found == {bug: [f"{rule}: reached"] for bug, rule in BUGS.items()}
