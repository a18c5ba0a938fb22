"""The register block against `weft.registers`, which the driver reads it with."""

import random

import pytest

from weft import registers
from weft.config import Config
from weft.hw.registers import Registers
from weft.sim.amaranth_bench import play

CONFIG = Config(rows=3, cols=5, depth=2, multiplier="fip", a_words=64, b_words=128, bytes_out=4)
FIRST = len(registers.REGISTERS) - len(registers.COUNTERS)


def test_describes_its_config():
    script = [{"address": n} for n in range(FIRST)]
    (data,) = play(Registers(config=CONFIG), script, "data", tail=1)
    assert data[1:] == registers.describe(CONFIG)
    assert registers.decode(data[1:]) == CONFIG


def test_each_counter_counts_its_own_cycles():
    rng = random.Random(1)
    script = [
        {"count": {name: rng.random() < (n + 1) / 10 for n, name in enumerate(registers.COUNTERS)}}
        for _ in range(200)
    ]
    stop = [{"count": dict.fromkeys(registers.COUNTERS, 0), "address": FIRST + n}
            for n in range(len(registers.COUNTERS))]
    (data,) = play(Registers(config=CONFIG), [*script, *stop], "data", tail=1)
    for name, count in zip(registers.COUNTERS, data[201:], strict=True):
        assert count == sum(cycle["count"][name] for cycle in script), name


def test_a_counter_is_read_as_it_stands():
    address = registers.REGISTERS.index("busy")
    script = [{"count": {"busy": 1}, "address": address}] * 5
    (data,) = play(Registers(config=CONFIG), script, "data", tail=1)
    assert data[1:] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("address", [len(registers.REGISTERS), 128, 255])
def test_there_is_nothing_behind_the_last_one(address):
    script = [{"address": 0, "count": dict.fromkeys(registers.COUNTERS, 1)}, {"address": address}]
    (data,) = play(Registers(config=CONFIG), script, "data", tail=1)
    assert data[1:] == [registers.MAGIC, 0]
