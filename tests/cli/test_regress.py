"""``weft regress`` from end to end, with a stand-in of the checks."""

import contextlib
import functools
import json
import os
import shlex
import subprocess
from types import SimpleNamespace

import pytest
from fake_check import HANGS, WRONG
from regress_cases import FAKE

from weft.cli import main
from weft.config import Config
from weft.regress import case, check
from weft.regress.case import Case, CaseOutcome, versions
from weft.regress.check import CaseStore
from weft.sim import tools
from weft.tasks import engine
from weft.tasks.store import Claimant, _start_of

BENCHES = ["--checks", "benches", "--jobs", "2"]


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """``run(*arguments)``: exit code and output; Config ``number`` of a draw has its rows."""
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "build"))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(check.CaseWork, "set_up", lambda self: None)
    monkeypatch.setattr(check, "CaseWork", functools.partial(check.CaseWork, command=FAKE))
    rows = {1: [2, WRONG, *range(3, 9)], 2: [4, 5, 6], 3: [HANGS]}
    monkeypatch.setattr(
        case, "drawn", lambda draw, number: Config(rows=rows[draw][number], cols=2)
    )

    def ended(*arguments):
        code = main(["regress", *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out + said.err

    def runs():
        text = (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""
        return sorted(" ".join(line.split()[:-1]) for line in text.splitlines())

    ended.folder, ended.runs = tmp_path, runs
    return ended


def table(said):
    """The rows of the table, by check."""
    rows = [line.split() for line in said.splitlines()]
    return {row[0]: row[1:6] for row in rows if row and row[0] in (*check.CHECKS,) and len(row) > 8}


def test_runs_each_config_with_each_check_and_seed(run):
    code, said = run("--draw", 2, "--configs", 3, "--seeds", 2, "--jobs", 2)
    assert code == 0
    expected = [f"lint {rows} 0" for rows in (4, 5, 6)] + [
        f"{check} {rows} {seed}" for check in ("icarus", "products", "verilator")
        for rows in (4, 5, 6) for seed in (1, 2)
    ]
    assert run.runs() == sorted(expected)
    assert table(said) == {
        "lint": ["3", "3", "0", "0", "0"],
        **{check: ["6", "6", "0", "0", "0"] for check in ("products", "icarus", "verilator")},
    }
    assert "engine: 2 workers in this process" in said and "checking: 16 of 21" in said


@pytest.mark.exit_code("regress", 1)
def test_a_failure_has_its_config_its_message_and_its_command(run):
    code, said = run(*BENCHES, "--configs", 2, "--simulators", "icarus", "--tests", "short_k")
    assert code == 1
    config = Config(rows=WRONG, cols=2)
    assert f"\nFAILED  1.1/icarus/1  wrong\n{config}\n1 of 3 failed; see test.log\n" in said
    assert table(said) == {"icarus": ["2", "1", "1", "0", "0"]}
    log = run.folder / "build" / "regress" / "1.1-icarus-1.log"
    assert log.read_text() == "log of icarus" and f"1.1/icarus/1: test.log is {log}" in said
    [command] = [line for line in said.splitlines() if line.startswith("repeat: ")]
    assert command == "repeat: weft regress --only 1.1/icarus/1 --tests short_k"
    before = run.runs()
    code, said = run(*shlex.split(command)[3:])
    assert code == 1 and "FAILED  1.1/icarus/1  wrong" in said
    assert run.runs() == sorted([*before, f"icarus {WRONG} 1"])


def test_the_same_command_continues(run):
    arguments = BENCHES[:2] + ["--jobs", 1, "--draw", 2, "--configs", 3]
    assert run(*arguments, "--configs", 1)[0] == 0
    assert len(run.runs()) == 2
    code, said = run(*arguments)
    assert code == 0 and len(run.runs()) == 6
    assert table(said)["icarus"] == ["3", "3", "0", "0", "1"]
    assert "2.0/verilator/1  4x2x1: passed, 3 tests, 1,000 cycles, 0 s (known)" in said
    run(*arguments, "--store", "other.sqlite")
    assert len(run.runs()) == 12


def test_checks_one_design(run):
    (run.folder / "my.toml").write_text("rows = 7\ncols = 2\n")
    code, said = run(*BENCHES, "--config", "my.toml", "--seeds", 2, "--simulators", "verilator")
    assert code == 0 and run.runs() == ["verilator 7 1", "verilator 7 2"]
    (run.folder / "my.toml").write_text(f"rows = {WRONG}\ncols = 2\n")
    code, said = run(*BENCHES, "--config", "my.toml", "--simulators", "verilator")
    assert code == 1
    assert "repeat: weft regress --only design/verilator/1 --config my.toml\n" in said


def test_writes_json(run):
    assert run(*BENCHES, "--configs", 2, "--json", "out/all.json")[0] == 1
    values = json.loads((run.folder / "out" / "all.json").read_text())
    assert values["versions"] == versions()
    assert (values["passed"], values["failed"], values["not run"]) == (2, 2, 0)
    [bad] = [case for case in values["cases"] if case["case"] == "1.1/icarus/1"]
    assert bad["repeat"] == "weft regress --only 1.1/icarus/1"
    assert bad["result"] == "failed" and bad["outcome"]["failure"] == "wrong"
    assert bad["config"]["rows"] == WRONG and bad["known"] is False


def test_the_budget_ends_it(run):
    code, said = run(*BENCHES, "--draw", 2, "--configs", 3, "--budget", "0s", "--json", "x.json")
    assert code == 1 and run.runs() == []
    assert "6 of 6 cases did not run: the command ended before their start\nthe same com" in said
    assert json.loads((run.folder / "x.json").read_text())["not run"] == 6


@pytest.fixture
def claims(run):
    """``claims(claimant, rows)``: a store where a process has claimed the case of these rows."""
    with contextlib.ExitStack() as stack:

        def claim(claimant, rows):
            path = run.folder / "build" / "regress.sqlite"
            store = stack.enter_context(CaseStore(path, owner=claimant))
            draw = {4: 0, 5: 1, 6: 2}[rows]
            case = Case(Config(rows=rows, cols=2), f"2.{draw}", "icarus", 1)
            assert store.claim(case, 1e6) is None

        yield claim


ICARUS = [*BENCHES, "--draw", 2, "--simulators", "icarus"]


def test_a_case_that_a_live_process_runs_is_left_to_it(run, claims):
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            claims(Claimant(os.uname().nodename, process.pid, _start_of(process.pid)), 5)
            code, said = run(*ICARUS, "--configs", 3, "--json", "x.json")
        finally:
            process.kill()
    left = f"left to process {process.pid}, which runs"
    assert f"1 of 3 cases did not run: {left}\nthe same command continues" in said
    assert code == 0 and run.runs() == ["icarus 4 1", "icarus 6 1"]
    [case] = [
        case for case in json.loads((run.folder / "x.json").read_text())["cases"]
        if case["result"] == "not run"
    ]
    assert case["case"] == "2.1/icarus/1" and case["reason"] == left


def test_a_case_of_a_process_that_has_ended_runs(run, claims):
    """Another process, this one, has its number now."""
    here = Claimant.here()
    claims(Claimant(here.host, here.number, "before"), 5)
    code, said = run(*ICARUS, "--configs", 2)
    assert code == 0 and run.runs() == ["icarus 4 1", "icarus 5 1"]


def test_a_case_that_perhaps_nobody_runs_is_no_success(run, claims):
    claims(Claimant("far", 7, "now"), 5)
    code, said = run(*ICARUS, "--configs", 2)
    assert code == 1 and run.runs() == ["icarus 4 1"]
    assert "1 of 2 cases did not run: left to process 7 of far, which may have ended\n" in said


def test_a_budget_that_ends_early_is_no_success(run, monkeypatch):
    times = iter([0, 1, 99])
    clock = SimpleNamespace(monotonic=lambda: next(times, 99))
    monkeypatch.setattr("weft.cli.regress.time", clock)
    code, said = run(*ICARUS, "--configs", 3, "--budget", "10s")
    assert code == 1 and len(run.runs()) == 1
    assert "2 of 3 cases did not run: the command ended before their start\n" in said


def test_a_case_that_another_process_ends_meanwhile_is_known(run, claims, monkeypatch):
    claims(Claimant("far", 7, "now"), 4)
    claim = CaseStore.claim

    def ends(store, case, seconds):
        other = claim(store, case, seconds)
        if other:
            store.record(case, CaseOutcome(tests=3))
        return other

    monkeypatch.setattr(CaseStore, "claim", ends)
    code, said = run(*ICARUS, "--configs", 1)
    assert code == 0 and run.runs() == []
    assert "2.0/icarus/1  4x2x1: passed, 3 tests, 0 cycles, 0 s (known)" in said


def test_a_case_over_its_time_runs_again(run):
    arguments = [*BENCHES, "--draw", 3, "--configs", 1, "--simulators", "icarus"]
    code, said = run(*arguments, "--minutes", 0.01)
    assert code == 1 and "the run took over 0.6 s" in said
    run(*arguments, "--minutes", 0.01)
    assert run.runs() == [f"icarus {HANGS} 1"] * 2


@pytest.mark.parametrize("arguments, text", [
    (["--only", "1.3/lint/1"], "only must be a case as 1.3/icarus/2, 1.3/lint or"),
    (["--only", "design/lint"], "the case design/lint needs --config FILE"),
    (["--config", "none.toml"], "none.toml"),
    (["--cluster", "tcp://127.0.0.1:9"], "no scheduler with workers answers at tcp://127.0.0.1:9"),
])
def test_wrong_input_is_one_line(run, monkeypatch, arguments, text):
    monkeypatch.setattr(engine, "WAIT", 0.2)
    code, said = run(*arguments, *BENCHES)
    assert code == 2
    last = said.splitlines()[-1]
    assert last.startswith("weft: error: ") and text in last


def test_a_missing_simulator_is_one_line(run, monkeypatch):
    def missing(self):
        raise tools.ToolError("Icarus Verilog was not found")

    monkeypatch.setattr(check.CaseWork.func, "set_up", missing)
    assert run(*BENCHES) == (2, "weft: error: Icarus Verilog was not found\n")
    assert run.runs() == []
