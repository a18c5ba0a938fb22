"""The register block against `weft.registers`, with which the driver decodes it."""

import random

import pytest

from verif.amaranth_bench import play
from weft import registers
from weft.config import Config
from weft.hw.registers import Registers
from weft.registers import LATENCY

CONFIG = Config(rows=3, cols=5, depth=2, multiplier="fip", a_words=64, b_words=128, bytes_out=4)
FIRST = len(registers.REGISTERS) - len(registers.COUNTERS)


def test_the_constants_describe_the_config():
    script = [{"address": n} for n in range(FIRST) for _ in range(LATENCY)]
    (data,) = play(Registers(config=CONFIG), script, "data", tail=1)
    assert data[LATENCY::LATENCY] == registers.describe(CONFIG)
    assert registers.decode(data[LATENCY::LATENCY]) == CONFIG


@pytest.mark.parametrize("cycles", [0, 1, 7, 8, 9, 16, 200])
def test_each_counter_counts_its_own_cycles(cycles):
    rng = random.Random(cycles)
    script = [
        {"count": {name: rng.random() < (n + 3) / 10 for n, name in enumerate(registers.COUNTERS)}}
        for _ in range(cycles)
    ]
    stop = [{"count": dict.fromkeys(registers.COUNTERS, 0)}] * LATENCY
    stop += [{"address": FIRST + n} for n in range(len(registers.COUNTERS)) for _ in range(LATENCY)]
    (data,) = play(Registers(config=CONFIG), [*script, *stop], "data", tail=1)
    found = data[len(script) + 2 * LATENCY :: LATENCY]
    for name, count in zip(registers.COUNTERS, found, strict=True):
        assert count == sum(cycle["count"][name] for cycle in script), name


@pytest.mark.parametrize("name", registers.COUNTERS)
def test_a_running_counter_is_read_with_a_bounded_delay(name):
    script = [{"count": {name: 1}, "address": registers.REGISTERS.index(name)}] * 100
    (data,) = play(Registers(config=CONFIG), script, "data", tail=1)
    assert all(now - LATENCY <= count <= now for now, count in enumerate(data))
    assert data == sorted(data)


@pytest.mark.parametrize("address", [len(registers.REGISTERS), 128, 255])
def test_addresses_after_the_last_register_read_0(address):
    script = [{"address": 0, "count": dict.fromkeys(registers.COUNTERS, 1)}] * LATENCY
    (data,) = play(
        Registers(config=CONFIG), [*script, *[{"address": address}] * LATENCY], "data", tail=1
    )
    assert data[LATENCY :: LATENCY] == [registers.MAGIC, 0]
