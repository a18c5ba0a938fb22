"""A bank of memory: what is written is read, and its blocks equal its twin in every shape."""

import random

import pytest

from weft.hw.memory import bank
from weft.hw.memory.bank import Bank
from weft.sim.amaranth_bench import play
from weft.sim.primitives import MODELS, duel

SHAPES = [
    (8, 4), (36, 512), (50, 300), (128, 64), (18, 1024), (40, 1000), (20, 2048), (8, 4096),
    (3, 8192), (2, 16384),
]


@pytest.mark.parametrize("target", ["generic", "ice40up"])
def test_a_word_is_read_in_steps(target):
    fill = [{"write": 1, "place": n, "data": 10 + n} for n in range(4)]
    read = [{"write": 0, "en": 1, "address": 2}, {"address": 3}, {"en": 0}, {"en": 1}, {}]
    (words,) = play(Bank(width=8, depth=4, target=target), [*fill, *read], "word", tail=1)
    assert words[6:] == [12, 12, 13, 13]


@pytest.mark.parametrize("target", ["generic", "ecp5", "ice40hx"])
@pytest.mark.parametrize("width, depth", [(1, 1), (32, 8), (70, 512)])
def test_words_come_after_the_latency(width, depth, target):
    rng = random.Random(width)
    dut, held, due, script = Bank(width=width, depth=depth, target=target), {}, {}, []
    asked = None
    for now in range(200 + 4 * depth):
        place, address = rng.randrange(depth), rng.randrange(depth)
        write, data = rng.randrange(2), rng.getrandbits(width)
        script.append({"write": write, "place": place, "data": data, "address": address})
        if write and place == asked:  # before it is out: left open
            due.pop(now - 1 + Bank.LATENCY, None)
        if address in held and not (write and place == address):
            due[now + Bank.LATENCY] = held[address]
        asked = address
        if write:
            held[place] = data
    (found,) = play(dut, script, "word", tail=Bank.LATENCY)
    assert len(due) > 40
    assert {now: found[now] for now in due} == due


@pytest.mark.parametrize("width, depth", SHAPES)
def test_blocks_equal_their_twin(width, depth):
    made = Bank(width=width, depth=depth, target="ecp5")
    assert duel(made, cycles=2 * depth + 2000) == "ALL RIGHT"


@pytest.mark.parametrize("line, broken", [
    ("if (OCEB) held", "held"), ("if (CEB) read", "read"), ("CEA && WEA", "CEA"),
    ("shown[35:18] : lower", "lower : lower"), ("|| place[n / 9]", "|| place[n / 9 + 1]"),
    ("held : read", "read : read"),
])
def test_blocks_of_other_function_are_seen(line, broken):
    models = MODELS.read_text(encoding="utf-8")
    assert models.count(line) == 1
    made = Bank(width=40, depth=30, target="ecp5")
    assert duel(made, cycles=2000, models=models.replace(line, broken)).startswith("WRONG")


def test_another_number_of_address_bits_is_seen(monkeypatch):
    monkeypatch.setattr(bank, "BITS", 13)
    assert duel(Bank(width=20, depth=600, target="ecp5"), cycles=3000).startswith("WRONG")
