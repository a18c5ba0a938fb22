"""The sweep of random Configs: some of it here, and that it finds and tells what is wrong."""

import dataclasses

import pytest
from tooling import load

from weft.host.golden import GoldenTransport

SEED, CONFIGS, MULTIPLIED = 15, 60, 15
QUICK = 12  # Configs on the golden transport


@pytest.fixture(scope="module")
def sweep():
    return load("sweep")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(CONFIGS))
def test_any_config(sweep, number):
    wrong = sweep.problem(SEED, number, multiplies=number < MULTIPLIED)
    assert not wrong, wrong


def test_products_are_right_on_the_golden_core(sweep, monkeypatch):
    monkeypatch.setattr(sweep, "SimTransport", GoldenTransport)
    numbers = range(QUICK)
    assert {sweep.config_of(SEED, n).dtype for n in numbers} == {"int8", "bf16"}
    assert [sweep.problem(SEED, n, multiplies=True) for n in numbers] == [""] * QUICK


class Wrong(GoldenTransport):
    """A core whose last result has one wrong bit, and which counts a cycle too many."""

    bit, cycles = 1, 0

    def receive(self, timeout):
        packet = super().receive(timeout)
        if packet.status:  # it has no results
            return packet
        data = bytes([packet.data[0] ^ self.bit, *packet.data[1:]])
        return dataclasses.replace(packet, data=data)

    def read(self, address, count, timeout):
        words = super().read(address, count, timeout)
        self._counters["busy"] += self.cycles
        return words


class Slow(Wrong):
    """A core that is right, and slower than the cycle model says."""

    bit, cycles = 0, 1


@pytest.mark.parametrize("core, said", [(Wrong, "\nin place of\n"), (Slow, "Record(cycles=")])
@pytest.mark.parametrize("dtype", ["int8", "bf16"])
def test_tells_what_is_wrong_and_how_to_repeat_it(sweep, monkeypatch, core, said, dtype):
    monkeypatch.setattr(sweep, "SimTransport", core)
    number = next(n for n in range(QUICK) if sweep.config_of(SEED, n).dtype == dtype)
    text = sweep.problem(SEED, number, multiplies=True)
    assert text.startswith(f"{sweep.config_of(SEED, number)}\n")
    assert said in text
    assert text.endswith(
        f"\nto repeat it: python tools/sweep.py --seed {SEED} --only {number}"
    )


def test_tells_what_lint_says_and_what_raises(sweep, monkeypatch):
    monkeypatch.setattr(sweep, "lint", lambda config: "status 1\n%Warning-CMPCONST")
    again = f"to repeat it: python tools/sweep.py --seed {SEED} --only 3"
    config = sweep.config_of(SEED, 3)
    told = sweep.problem(SEED, 3, multiplies=False)
    assert told == f"{config}\nstatus 1\n%Warning-CMPCONST\n{again}"

    def broken(config):
        raise RuntimeError("no such tool")

    monkeypatch.setattr(sweep, "lint", broken)
    told = sweep.problem(SEED, 3, multiplies=False)
    assert told.startswith(f"{config}\nTraceback")
    assert told.endswith(f"RuntimeError: no such tool\n{again}")


def test_the_command_fails_where_a_config_does(sweep, monkeypatch, capsys):
    monkeypatch.setattr(sweep, "lint", lambda config: "")
    monkeypatch.setattr(sweep, "SimTransport", Wrong)
    monkeypatch.setattr("sys.argv", ["sweep.py", "--seed", str(SEED), "--only", "3"])
    assert sweep.main() == 1
    assert capsys.readouterr().out.endswith("\n1 problems\n")
    monkeypatch.setattr(sweep, "SimTransport", GoldenTransport)
    assert sweep.main() == 0
    assert capsys.readouterr().out == f"seed {SEED}\n0 problems\n"
