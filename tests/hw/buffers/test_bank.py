"""A bank of memory: what is written is read, and its blocks equal its twin in every shape."""

import random

import pytest
from amaranth.back import rtlil

from weft.hw.buffers import bank
from weft.hw.buffers.bank import Bank
from weft.sim.amaranth_bench import play
from weft.sim.primitives import MODELS, cosimulate

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


def test_a_tool_need_not_compare_addresses():
    """Without the attribute Yosys adds logic for reads of a word that is being written."""
    assert "attribute \\no_rw_check 1\n" in rtlil.convert(Bank(width=8, depth=4, target="generic"))


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
    assert cosimulate(made, cycles=2 * depth + 2000) == "ALL RIGHT"


@pytest.mark.parametrize("width, parts, bytewise", [
    (128, 1, True), (128, 2, False), (128, 8, False), (64, 2, True), (32, 4, True), (32, 16, False),
    (64, 32, False), (96, 4, True), (24, 1, True),
])
def test_parts_and_bytes_equal_their_twin(width, parts, bytewise):
    made = Bank(width=width, depth=16, target="ecp5", parts=parts, bytewise=bytewise)
    assert cosimulate(made, cycles=2_000) == "ALL RIGHT"


@pytest.mark.parametrize("target", ["generic", "ice40up"])
def test_a_part_of_a_word_is_read(target):
    dut = Bank(width=32, depth=4, target=target, parts=4, bytewise=True)
    fill = [{"write": 0b1111, "place": n, "data": 0x04030201 + 0x10101010 * n} for n in range(4)]
    fill.append({"write": 0b0100, "place": 2, "data": 0xFFFFFFFF})
    read = [{"write": 0, "address": 4 * 2 + n} for n in range(4)]
    (words,) = play(dut, [*fill, *read], "word", tail=2)
    assert words[-4:] == [0x21, 0x22, 0xFF, 0x24]


@pytest.mark.parametrize("line, broken", [
    ("if (OCEB) held", "held"), ("if (CEB) for", "for"), ("CEA && WEA", "CEA"),
    ("shown[35:18] : lower", "lower : lower"), ("|| place[n / 9]", "|| place[n / 9 + 1]"),
    ("held : read", "read : read"),
])
def test_blocks_of_other_function_are_seen(line, broken):
    models = MODELS.read_text(encoding="utf-8")
    assert models.count(line) == 1
    made = Bank(width=40, depth=30, target="ecp5")
    assert cosimulate(made, cycles=2000, models=models.replace(line, broken)).startswith("WRONG")


def test_another_number_of_address_bits_is_seen(monkeypatch):
    monkeypatch.setattr(bank, "BITS", 13)
    assert cosimulate(Bank(width=20, depth=600, target="ecp5"), cycles=3000).startswith("WRONG")
