"""Cases on an engine with a stand-in of the checks; resumed, and with wrong hardware."""

import sys
import zlib
from pathlib import Path

import pytest
from fake_check import CRASHES, HANGS, WRONG
from regress_cases import case, work

from weft.config import Config
from weft.regress.case import CHECKS, Case
from weft.regress.check import CaseStore, CaseWork
from weft.sim import tools
from weft.sim.cache import folder
from weft.tasks.engine import Engine
from weft.tasks.store import run_items

BROKEN = sys.executable, str(Path(__file__).resolve().parents[1] / "support" / "broken_check.py")


@pytest.fixture(autouse=True)
def build(monkeypatch, tmp_path):
    """A build folder that stays empty."""
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "build"))
    yield
    assert list((folder() / "regress").glob("*")) == []


@pytest.mark.parametrize("rows, limits, failure, detail", [
    (2, {}, "", ""),
    (WRONG, {}, "wrong", "1 of 3 failed; see test.log\n  short_k: 1 != 2"),
    (HANGS, {"seconds": 0.3}, "time", "7.60/icarus/1: the run took over 0.3 s"),
    (CRASHES, {}, "crash",
     "7.62/icarus/1: exit code 1 without a result: the check has a bug"),
])
def test_each_outcome_has_its_reason(rows, limits, failure, detail):
    result = work(**limits).run(case(rows=rows))
    assert (result.outcome.failure, result.outcome.detail) == (failure, detail)
    logs = {name: zlib.decompress(data) for name, data in result.files.items()}
    assert logs == ({"test.log": b"log of icarus"} if failure == "wrong" else {})


@pytest.mark.slow
def test_finished_cases_are_not_repeated(monkeypatch, tmp_path):
    """Passed and wrong cases are kept; one that took too long runs again."""
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    cases = [case(), case(seed=2), case(rows=WRONG), case(rows=HANGS)]

    def ended():
        found, waiting = {}, iter(cases)
        with (
            CaseStore(tmp_path / "cases.sqlite") as store,
            Engine(work(seconds=2), workers=2) as engine,
        ):
            run_items(
                lambda: next(waiting, None), engine, store, seconds=60,
                on_outcome=lambda one, outcome, known: found.update({one: (outcome, known)}),
                on_left=lambda *arguments: pytest.fail(),
            )
            assert zlib.decompress(store.data(case(rows=WRONG))) == b"log of icarus"
        return found

    first, second = ended(), ended()
    assert [first[one][0].failure for one in cases] == ["", "", "wrong", "time"]
    assert [known for _, known in first.values()] == [False] * 4
    assert {one: known for one, (_, known) in second.items()} == dict(
        zip(cases, [True, True, True, False], strict=True)
    )
    assert {one: outcome for one, (outcome, _) in second.items()} == {
        one: outcome for one, (outcome, _) in first.items()
    }
    runs = [line.split()[1] for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(runs) == ["2", "2", "60", "60", "63"]


def test_another_version_runs_again(monkeypatch, tmp_path):
    with CaseStore(tmp_path / "cases.sqlite") as store:
        store.keep(case(), work().run(case()))
        assert store.get(case()) is not None
        monkeypatch.setattr("weft.regress.case.versions", lambda: {"weft": "0"})
        assert store.get(case()) is None
        monkeypatch.undo()
        store.forget(case())
        assert store.get(case()) is None


def test_set_up_needs_the_programs_of_the_checks_alone(monkeypatch):
    def missing(*arguments):
        raise tools.ToolError("Icarus Verilog was not found")

    monkeypatch.setitem(CHECKS, "icarus", (missing,))
    CaseWork(("lint",)).set_up()
    with pytest.raises(tools.ToolError, match="^Icarus Verilog was not found$"):
        CaseWork(("lint", "icarus")).set_up()


TINY = Config(rows=1, cols=1, depth=1, a_words=32, b_words=32)


@pytest.mark.slow
def test_a_real_case_passes_and_wrong_hardware_fails():
    one = Case(TINY, "design", "icarus", 1, ("short_k",))
    passed = CaseWork().run(one)
    assert (passed.outcome.failure, passed.outcome.tests) == ("", 1)
    wrong = CaseWork(command=BROKEN).run(one)
    assert (wrong.outcome.failure, wrong.outcome.tests) == ("wrong", 1)
    assert "1 of 1 failed; see test.log" in wrong.outcome.detail
    assert b"short_k" in zlib.decompress(wrong.files["test.log"])
