"""Cases and outcomes: keys, JSON, text, and what an outcome depends on."""

import json

import pytest
from regress_cases import case

from weft.config import Config
from weft.regress import case as cases
from weft.regress.case import Case, CaseOutcome
from weft.sim import tools


def test_json_has_all_of_it():
    one = Case(Config(rows=3, dtype="bf16"), "7.3", "icarus", 2, ("flow", "shapes"))
    assert Case.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_a_key_depends_on_all_but_the_name(monkeypatch):
    one = case()
    filtered = Case(one.config, "x", "icarus", 1, ("flow",))
    others = [case(rows=3), case(seed=2), case(check="verilator"), filtered]
    assert len({each.key for each in (one, *others)}) == 5
    assert Case(one.config, "another name", "icarus", 1).key == one.key
    monkeypatch.setattr(cases, "versions", lambda: {"weft": "0"})
    assert case().key != one.key


def test_versions_name_sources_packages_and_simulators(monkeypatch):
    found = cases.versions()
    assert {"weft", "sources", "amaranth", "cocotb", "verilator", "icarus"} <= found.keys()

    def missing():
        raise tools.ToolError("no iverilog")

    monkeypatch.setattr(tools, "icarus", missing)
    assert cases.versions.__wrapped__() == found | {"icarus": "missing"}


@pytest.mark.parametrize("outcome, text, done, final", [
    (CaseOutcome(seconds=3), "passed, 3 s", True, True),
    (CaseOutcome(tests=4, cycles=12, seconds=3), "passed, 4 tests, 12 cycles, 3 s", True, True),
    (CaseOutcome(failure="wrong", detail="first\nsecond"), "FAILED, wrong: first", False, True),
    (CaseOutcome(failure="time", detail="late"), "FAILED, time: late", False, False),
])
def test_an_outcome_says_what_happened(outcome, text, done, final):
    assert (str(outcome), outcome.done, outcome.final) == (text, done, final)
