"""The memory with an output register, and the blocks that it becomes."""

import random

import pytest
from amaranth.back import rtlil

from weft.hw.devices import Primitives
from weft.hw.memory.ram import Ram
from weft.sim.amaranth_bench import play


@pytest.mark.parametrize("target", ["generic", "ecp5", "ice40hx"])
@pytest.mark.parametrize("width, depth", [(1, 1), (32, 8), (70, 512)])
def test_words_come_after_the_latency(width, depth, target):
    rng = random.Random(width)
    dut, held, due, script = Ram(width=width, depth=depth, target=target), {}, {}, []
    asked = None
    for now in range(200):
        place, address = rng.randrange(depth), rng.randrange(depth)
        en, data = rng.randrange(2), rng.getrandbits(width)
        script.append({"en": en, "place": place, "data": data, "address": address})
        if en and place == asked:
            due.pop(now - 1 + Ram.LATENCY, None)
        if address in held and not (en and place == address):
            due[now + Ram.LATENCY] = held[address]
        asked = address
        if en:
            held[place] = data
    (found,) = play(dut, script, "word", tail=Ram.LATENCY)
    assert due or depth == 512
    assert all(found[now] == word for now, word in due.items())


@pytest.mark.parametrize("target, width, depth, blocks", [
    ("ecp5", 36, 512, 1), ("ecp5", 37, 16, 2), ("ecp5", 36, 513, 0), ("generic", 36, 512, 0),
])
def test_blocks_are_of_36_bits(target, width, depth, blocks):
    dut = Ram(width=width, depth=depth, target=target)
    ports = [dut.en, dut.place, dut.data, dut.address, dut.word]
    text = rtlil.convert(dut, ports=ports, platform=Primitives(), emit_src=False)
    assert text.count("cell \\DP16KD") == blocks
