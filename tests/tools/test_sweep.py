"""The sweep of random Configs: a part of it, and that it reports problems."""

import dataclasses

import pytest
from tooling import load

from weft.host.golden import GoldenTransport

SEED, CONFIGS, SIMULATED = 15, 60, 15
QUICK = 12  # Configs on the golden transport


@pytest.fixture(scope="module")
def sweep():
    return load("sweep")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(CONFIGS))
def test_any_config(sweep, number):
    problem = sweep.problem(SEED, number, simulate=number < SIMULATED)
    assert not problem, problem


def test_products_are_correct_on_the_golden_core(sweep, monkeypatch):
    monkeypatch.setattr(sweep, "SimTransport", GoldenTransport)
    numbers = range(QUICK)
    assert {sweep.config_of(SEED, n).dtype for n in numbers} == {"int8", "bf16"}
    assert [sweep.problem(SEED, n, simulate=True) for n in numbers] == [""] * QUICK


class Wrong(GoldenTransport):
    """A core with one wrong bit in the last result."""

    bit, cycles = 1, 0

    def receive(self, timeout):
        packet = super().receive(timeout)
        if packet.status:  # no results
            return packet
        data = bytes([packet.data[0] ^ self.bit, *packet.data[1:]])
        return dataclasses.replace(packet, data=data)

    def read(self, address, count, timeout):
        words = super().read(address, count, timeout)
        self._counters["busy"] += self.cycles
        return words


class Slow(Wrong):
    """A core with correct results that takes more cycles than the cycle model predicts."""

    bit, cycles = 0, 1


@pytest.mark.parametrize("core, message", [(Wrong, "\nnot\n"), (Slow, " must take ")])
@pytest.mark.parametrize("dtype", ["int8", "bf16"])
def test_reports_a_problem_and_how_to_repeat_it(sweep, monkeypatch, core, message, dtype):
    monkeypatch.setattr(sweep, "SimTransport", core)
    number = next(n for n in range(QUICK) if sweep.config_of(SEED, n).dtype == dtype)
    text = sweep.problem(SEED, number, simulate=True)
    assert text.startswith(f"{sweep.config_of(SEED, number)}\n")
    assert message in text
    assert text.endswith(
        f"\nto repeat it: python -m tools.sweep --seed {SEED} --only {number}"
    )


def test_reports_lint_messages_and_exceptions(sweep, monkeypatch):
    monkeypatch.setattr(sweep, "lint", lambda config: "status 1\n%Warning-CMPCONST")
    repeat = f"to repeat it: python -m tools.sweep --seed {SEED} --only 3"
    config = sweep.config_of(SEED, 3)
    text = sweep.problem(SEED, 3, simulate=False)
    assert text == f"{config}\nstatus 1\n%Warning-CMPCONST\n{repeat}"

    def broken(config):
        raise RuntimeError("no such tool")

    monkeypatch.setattr(sweep, "lint", broken)
    text = sweep.problem(SEED, 3, simulate=False)
    assert text.startswith(f"{config}\nTraceback")
    assert text.endswith(f"RuntimeError: no such tool\n{repeat}")


def test_the_command_fails_if_a_config_fails(sweep, monkeypatch, capsys):
    monkeypatch.setattr(sweep, "lint", lambda config: "")
    monkeypatch.setattr(sweep, "SimTransport", Wrong)
    monkeypatch.setattr("sys.argv", ["sweep.py", "--seed", str(SEED), "--only", "3"])
    assert sweep.main() == 1
    assert capsys.readouterr().out.endswith("\n1 problems\n")
    monkeypatch.setattr(sweep, "SimTransport", GoldenTransport)
    assert sweep.main() == 0
    assert capsys.readouterr().out == f"seed {SEED}\n0 problems\n"
