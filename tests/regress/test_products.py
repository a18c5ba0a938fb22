"""Random products: correct on the golden core, and problems of a wrong core are reported."""

import dataclasses

import pytest

from weft.host.emulated import GoldenTransport
from weft.regress import check
from weft.regress.case import drawn

DRAW, QUICK = 15, 12  # Configs on the golden transport


def test_products_are_correct_on_the_golden_core(monkeypatch):
    monkeypatch.setattr(check, "SimTransport", GoldenTransport)
    configs = [drawn(DRAW, number) for number in range(QUICK)]
    assert {config.dtype for config in configs} == {"int8", "bf16"}
    assert [check.run_products(config, 1) for config in configs] == [""] * QUICK


def test_another_seed_draws_other_products(monkeypatch):
    seen = []

    class Counting(GoldenTransport):
        """The golden core, which keeps what it receives."""

        def send(self, commands):
            seen.append(commands.encode())
            super().send(commands)

    monkeypatch.setattr(check, "SimTransport", Counting)
    sent = []
    for seed in (1, 1, 2):
        assert check.run_products(drawn(DRAW, 0), seed) == ""
        sent.append(b"".join(seen))
        seen.clear()
    assert sent[0] == sent[1] != sent[2]


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
def test_reports_a_problem(monkeypatch, core, message, dtype):
    monkeypatch.setattr(check, "SimTransport", core)
    configs = (drawn(DRAW, number) for number in range(QUICK))
    assert message in check.run_products(next(c for c in configs if c.dtype == dtype), 1)
