"""The check of a case: its outcome on correct and on wrong hardware."""

import dataclasses
import json
from pathlib import Path

import pytest
from regress_cases import case
from tiers import tiers

from weft.config import Config
from weft.regress import check
from weft.regress.case import CHECKS, Case, CaseOutcome, drawn, matrix
from weft.sim.runner import BenchError, Outcome

# `make sweep` checks more Configs, others each day.
DRAW, CONFIGS, SIMULATED = 33, 16, 4
CASES = {
    f"{number}-{name}": Case(drawn(DRAW, number), f"{DRAW}.{number}", name, int(name != "lint"))
    for number in range(CONFIGS) for name in (["products"] if number < SIMULATED else ["lint"])
}


# Products of Configs that compile slowly, and further Configs.
LONG = {f"{number}-products" for number in range(1, SIMULATED)}
LONG |= {f"{number}-lint" for number in range(6, CONFIGS)}


@pytest.mark.parametrize("one", tiers(CASES, long=LONG))
def test_any_config_passes(one, tmp_path):
    outcome = check.checked(one, tmp_path)
    assert outcome.done, outcome.detail


@pytest.mark.parametrize("name, function", [("lint", "lint"), ("products", "run_products")])
def test_a_problem_is_wrong(monkeypatch, tmp_path, name, function):
    monkeypatch.setattr(check, function, lambda *arguments: "status 1\n%Warning\n")
    outcome = check.checked(case(check=name), tmp_path)
    assert (outcome.failure, outcome.detail) == ("wrong", "status 1\n%Warning")
    monkeypatch.setattr(check, function, lambda *arguments: "")
    assert check.checked(case(check=name), tmp_path).done


def test_an_exception_is_an_error(monkeypatch, tmp_path):
    def broken(config):
        raise RuntimeError("no such tool")

    monkeypatch.setattr(check, "lint", broken)
    outcome = check.checked(case(check="lint"), tmp_path)
    assert outcome.failure == "error" and not outcome.has_log
    assert outcome.detail.startswith("Traceback")
    assert outcome.detail.endswith("RuntimeError: no such tool")


def run_of(failures, tmp_path, seen):
    """A stand-in for the runner."""
    def run(config, simulator, *, build_dir, testcase, seed):
        seen.append((config, simulator, testcase, seed))
        log = Path(build_dir) / "1x1" / "test.log"
        log.parent.mkdir(parents=True)
        log.write_text("the log")
        outcome = Outcome(simulator, 5, failures, 700, 1.0, 0.1, seed, log)
        if failures:
            raise BenchError(f"1 of 5 failed; see {log}\n  flow: 1 != 2", outcome)
        return outcome

    return run


def test_benches_run_with_their_seed_and_tests(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(check, "run", run_of(0, tmp_path, seen))
    outcome = check.checked(case(seed=4, check="verilator"), tmp_path)
    assert dataclasses.replace(outcome, seconds=0.0) == CaseOutcome(tests=5, cycles=700)
    [one] = matrix([("d", case().config)], ("icarus",), 1, ("flow",))
    check.checked(one, tmp_path / "two")
    config = case().config
    assert seen == [(config, "verilator", None, 4), (config, "icarus", ("flow",), 1)]


def test_a_failed_bench_keeps_its_log(monkeypatch, tmp_path):
    monkeypatch.setattr(check, "run", run_of(1, tmp_path, []))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(check, "end_with_parent", lambda: None)
    Path("case.json").write_text(json.dumps(case().to_json()))
    assert check.main() == 0
    outcome = CaseOutcome(**json.loads(Path("outcome.json").read_text()))
    assert (outcome.failure, outcome.tests, outcome.cycles) == ("wrong", 5, 700)
    assert outcome.detail == "1 of 5 failed; see test.log\n  flow: 1 != 2"
    assert outcome.has_log and Path("test.log").read_text() == "the log"


def test_the_configs_have_every_choice():
    used = [vars(case.config) for case in CASES.values()]
    for field in dataclasses.fields(Config):
        flag = (False, True) if "flag" in field.metadata else ()
        choices = {*field.metadata.get("choices", flag)} - {"auto"}  # becomes another choice
        assert choices <= {config[field.name] for config in used}, field.name


def test_every_check_has_its_programs():
    assert set(CHECKS) == {"lint", "products", "icarus", "verilator"}
    assert all(CHECKS.values())
