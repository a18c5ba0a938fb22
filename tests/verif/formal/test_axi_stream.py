"""Tests of the rules of AXI4-Stream: a correct source keeps all, each bug violates one."""

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.formal.axi_stream import SinkRules, SourceRules
from verif.formal.bench import FormalBench, prove

WIDTH = 8


class Pipe(wiring.Component):
    """A register between two streams, four words a packet; ``bug`` selects an error."""

    def __init__(self, bug=None):
        self.bug = bug
        pins = SourceRules.PINS | {"tdata": WIDTH}
        super().__init__({
            "i_tvalid": In(1), "i_tready": Out(1), "i_tdata": In(WIDTH),
            **{f"o_{name}": (In if name == "tready" else Out)(w) for name, w in pins.items()},
        })

    def elaborate(self, platform):
        m, bug = Module(), self.bug
        valid = Signal(reset_less=bug == "a word survives a reset")
        data, tag, count = Signal(WIDTH), Signal(16), Signal(2)
        done = valid if bug == "a word leaves at once" else valid & self.o_tready
        pace = Signal()
        m.d.sync += pace.eq(~pace)
        m.d.comb += [
            self.o_tvalid.eq(valid & (pace if bug == "a word comes and goes" else 1)),
            self.i_tready.eq(~valid | done),
            self.o_tdata.eq(data ^ (self.i_tdata if bug == "data follow the sink" else 0)),
            self.o_tlast.eq(count.all() & (pace if bug == "last comes and goes" else 1)),
            self.o_tid.eq(tag ^ (self.i_tvalid if bug == "id follows the sink" else 0)),
            self.o_tuser.eq(Cat(count, pace if bug == "user comes and goes" else 0)),
        ]
        with m.If(done):
            last = 0 if bug == "tags change in packets" else 3
            m.d.sync += [
                valid.eq(0), count.eq(count + 1), tag.eq(Mux(count == last, tag + 1, tag)),
            ]
        with m.If(self.i_tvalid & self.i_tready):
            m.d.sync += [valid.eq(1), data.eq(self.i_tdata)]
        return m


BUGS = {
    "a word leaves at once": "valid_stays",
    "a word comes and goes": "valid_stays",
    "data follow the sink": "data_stay",
    "last comes and goes": "last_stays",
    "id follows the sink": "id_stays",
    "user comes and goes": "user_stays",
    "a word survives a reset": "after_reset",
    "tags change in packets": "one_id",
}


def bench(bug=None):
    rules = {"i_": SinkRules(tdata=WIDTH), "o_": SourceRules(tdata=WIDTH)}
    return FormalBench(Pipe(bug), rules)


def test_every_rule_has_a_bug():
    assert set(BUGS.values()) == set(SourceRules.RULES)


def test_correct_source_keeps_every_rule():
    [report] = prove(bench())
    assert report.failures == []
    assert set(report.rules) == {f"o_{name}" for name in SourceRules.RULES}
    assert set(report.covers) == {
        *(f"o_{name}" for name in SourceRules.COVERS), *(f"i_{name}" for name in SinkRules.COVERS)
    }


def test_each_bug_violates_its_rule():
    reports = prove(*map(bench, BUGS), only=[{f"o_{rule}"} for rule in BUGS.values()])
    found = {bug: report.failures for bug, report in zip(BUGS, reports, strict=True)}
    assert found == {bug: [f"o_{rule}: reached"] for bug, rule in BUGS.items()}


class Wire(Pipe):
    """Connects the input to the output."""

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.o_tvalid.eq(self.i_tvalid), self.o_tdata.eq(self.i_tdata),
            self.i_tready.eq(self.o_tready),
        ]
        return m


@pytest.mark.parametrize("assumed, answer", [(True, "never"), (False, "reached")])
def test_sink_rules_assume_a_legal_source(assumed, answer):
    watched = {"i_": SinkRules(tdata=WIDTH)} if assumed else {}
    rules = {"o_valid_stays", "o_data_stay"}
    bench = FormalBench(Wire(), watched | {"o_": SourceRules(tdata=WIDTH)})
    [found] = prove(bench, only=[rules])
    assert {verdict.answer for verdict in found.rules.values()} == {answer}
