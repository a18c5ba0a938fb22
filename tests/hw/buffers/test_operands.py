"""The operand buffer: words are written by line and segment, and read one a cycle."""

import random

import pytest

from verif.amaranth_bench import play
from verif.loader_model import write_port
from weft.geometry import Operand
from weft.hw.buffers.operands import OperandBuffer

LATENCY = OperandBuffer.LATENCY
GEOMETRIES = [
    pytest.param(Operand(1, 1, 64, 1), id="byte-of-byte"),
    pytest.param(Operand(3, 1, 32, 16), id="4-of-3-bytes"),
    pytest.param(Operand(1, 1, 64, 64), id="16-of-a-byte"),
    pytest.param(Operand(2, 2, 32, 4), id="whole"),
    pytest.param(Operand(3, 2, 64, 4), id="2-segments-ragged"),
    pytest.param(Operand(4, 4, 32, 4), id="4-segments"),
    pytest.param(Operand(5, 3, 32, 2), id="8-segments-ragged"),
]


def buffer(geometry):
    return OperandBuffer(geometry=geometry, write=write_port(geometry), target="generic")


def writes(geometry, contents, rng):
    """The writes of a buffer full of ``contents[word][edge][depth]``; padding is random."""
    width = geometry.segments * geometry.stream
    for line in range(geometry.words // geometry.group):
        words = contents[line * geometry.group : (line + 1) * geometry.group]
        used = bytes(value & 255 for word in words for edge in word for value in edge)
        whole = used + rng.randbytes(width - len(used))
        for segment in range(geometry.segments):
            part = whole[segment * geometry.stream : (segment + 1) * geometry.stream]
            yield {"line": line, "segment": segment, "data": int.from_bytes(part, "little")}


def contents(geometry, rng):
    return [
        [[rng.randint(-128, 127) for _ in range(geometry.depth)] for _ in range(geometry.edge)]
        for _ in range(geometry.words)
    ]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_every_word_reads_as_it_was_written(geometry):
    rng = random.Random(1)
    stored = contents(geometry, rng)
    fill = list(writes(geometry, stored, rng))
    rng.shuffle(fill)  # line and segment alone select the place
    addresses = [rng.randrange(geometry.words) for _ in range(2 * geometry.words)]
    script = [{"write": {"valid": 1, "write": write}, "read_en": 1} for write in fill]
    # A write that is not valid has no effect.
    invalid = [
        {"write": {"valid": 0, "write": {**rng.choice(fill), "data": 0}}, "read_addr": address}
        for address in addresses
    ]
    (words,) = play(buffer(geometry), [*script, *invalid], "read_data", tail=LATENCY)
    read = words[len(script) + LATENCY :]
    assert read == [stored[address] for address in addresses]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_a_word_can_be_read_in_the_cycle_after_its_write(geometry):
    rng = random.Random(2)
    stored = contents(geometry, rng)
    script = []
    for n, write in enumerate(writes(geometry, stored, rng)):
        # Read the line whose last segment was written in the previous cycle.
        line = max(0, n // geometry.segments - 1)
        address = line * geometry.group + rng.randrange(geometry.group)
        script.append({"write": {"valid": 1, "write": write}, "read_addr": address, "read_en": 1})
    (words,) = play(buffer(geometry), script, "read_data", tail=LATENCY)
    for n, cycle in enumerate(script):
        if n >= geometry.segments:
            assert words[n + LATENCY] == stored[cycle["read_addr"]]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_reads_in_flight_wait_while_not_enabled(geometry):
    rng = random.Random(3)
    stored = contents(geometry, rng)
    script = [
        {"write": {"valid": 1, "write": write}, "read_en": 0}
        for write in writes(geometry, stored, rng)
    ]
    fill = len(script)
    enables = [rng.random() < 0.4 for _ in range(200)]
    addresses = [rng.randrange(geometry.words) for _ in enables]
    script += [
        {"write": {"valid": 0}, "read_en": int(en), "read_addr": address}
        for en, address in zip(enables, addresses, strict=True)
    ]
    (words,) = play(buffer(geometry), script, "read_data", tail=1)
    read = []
    for n, (en, address) in enumerate(zip(enables, addresses, strict=True)):
        read += [address] * en
        if len(read) >= LATENCY:
            assert words[fill + n + 1] == stored[read[-LATENCY]]
