"""Sums of addresses, and the range of a read, against numbers of vectors."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from network_cores import small_network_core

from verif.amaranth_bench import play
from weft.hw.network_core.layouts import (
    VectorAddress,
    add_addresses,
    add_vectors,
    later_sum,
    within,
)

CHIP = small_network_core(4, 4, 2)  # 5 banks of 16 words; a word of an address has 5 bits
STEPS = -7, -1, 0, 1, 4, 5, 12


class Sums(wiring.Component):
    """All functions of an address."""

    def __init__(self):
        address = VectorAddress(CHIP)
        super().__init__({
            "a": In(address), "b": In(address), "total": Out(address), "at_once": Out(address),
            "moved": Out(address).array(len(STEPS)), "inside": Out(8),
        })

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.total.eq(later_sum(m, self.a, self.b, CHIP.banks, "sum")),
            self.at_once.eq(add_addresses(m, self.a, self.b, CHIP.banks, "at_once")),
        ]
        for moved, step in zip(self.moved, STEPS, strict=True):
            m.d.comb += moved.eq(add_vectors(m, self.a, step, CHIP.banks, f"add_{step + 7}"))
        for vectors in range(1, 9):
            m.d.comb += self.inside[vectors - 1].eq(within(CHIP, self.a, vectors, 3, 9))
        return m


def place(number):
    return {"bank": number % CHIP.banks, "word": number // CHIP.banks % 32}


@pytest.fixture(scope="module")
def samples():
    numbers = range(10, 70)
    script = [{"a": place(n), "b": place(3 * n)} for n in numbers]
    watched = [f"moved__{n}" for n in range(len(STEPS))]
    dut = Sums()
    for name, moved in zip(watched, dut.moved, strict=True):
        setattr(dut, name, moved)
    sums = play(dut, script, "total", "at_once", "inside", *watched, tail=2)
    total, at_once, inside, *moved = sums
    return numbers, total, at_once, inside, moved


def test_a_constant_number_of_vectors_is_added_at_once(samples):
    numbers, _, _, _, moved = samples
    for step, found in zip(STEPS, moved, strict=True):
        assert found[: len(numbers)] == [place(n + step) for n in numbers]


def test_two_addresses_are_added_at_once_or_two_cycles_later(samples):
    numbers, total, at_once, *_ = samples
    expected = [place(4 * n) for n in numbers]
    assert total[2:] == expected
    assert at_once[: len(numbers)] == expected


def test_a_read_must_lie_within_its_limits(samples):
    numbers, _, _, inside, _ = samples
    first, beyond = 3 * CHIP.banks, 9 * CHIP.banks
    for n, found in zip(numbers, inside, strict=False):
        assert found == sum(
            (first <= n and n + vectors <= beyond) << vectors - 1 for vectors in range(1, 9)
        )


def test_a_bank_that_does_not_exist_stays():
    dut = Sums()
    dut.one = dut.moved[STEPS.index(1)]
    assert play(dut, [{"a": {"bank": 6, "word": 2}}], "one") == [[{"bank": 6, "word": 2}]]
