"""The operand buffer: words written by lines and segments, read one a cycle."""

import random

import pytest
from amaranth.lib.data import StructLayout

from weft.geometry import Operand
from weft.hw.buffers.operands import OperandBuffer
from weft.hw.control.loader import BufferWrite
from weft.sim.amaranth_bench import play

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
    write = BufferWrite(
        address=range(geometry.words // geometry.group), segments=geometry.segments,
        pages=geometry.pages, bytes_in=geometry.stream,
    )
    return OperandBuffer(geometry=geometry, write=StructLayout({"valid": 1, "write": write}))


def writes(geometry, contents, rng):
    """The writes of a buffer full of ``contents[word][edge][depth]``; padding is noise."""
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
    held = contents(geometry, rng)
    fill = list(writes(geometry, held, rng))
    rng.shuffle(fill)  # any order: a line and segment is all that says where
    addresses = [rng.randrange(geometry.words) for _ in range(2 * geometry.words)]
    script = [{"write": {"valid": 1, "write": write}, "en": 1} for write in fill]
    # What is not valid is not written.
    noise = [
        {"write": {"valid": 0, "write": {**rng.choice(fill), "data": 0}}, "address": address}
        for address in addresses
    ]
    (words,) = play(buffer(geometry), [*script, *noise], "word", tail=LATENCY)
    read = words[len(script) + LATENCY :]
    assert read == [held[address] for address in addresses]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_a_word_can_be_read_in_the_cycle_after_its_write(geometry):
    rng = random.Random(2)
    held = contents(geometry, rng)
    script = []
    for n, write in enumerate(writes(geometry, held, rng)):
        # Read the line whose last segment was written in the cycle before.
        whole = max(0, n // geometry.segments - 1)
        address = whole * geometry.group + rng.randrange(geometry.group)
        script.append({"write": {"valid": 1, "write": write}, "address": address, "en": 1})
    (words,) = play(buffer(geometry), script, "word", tail=LATENCY)
    for n, cycle in enumerate(script):
        if n >= geometry.segments:
            assert words[n + LATENCY] == held[cycle["address"]]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_what_is_under_way_waits_where_it_is(geometry):
    rng = random.Random(3)
    held = contents(geometry, rng)
    script = [
        {"write": {"valid": 1, "write": write}, "en": 0} for write in writes(geometry, held, rng)
    ]
    fill = len(script)
    moves = [rng.random() < 0.4 for _ in range(200)]
    addresses = [rng.randrange(geometry.words) for _ in moves]
    script += [
        {"write": {"valid": 0}, "en": int(en), "address": address}
        for en, address in zip(moves, addresses, strict=True)
    ]
    (words,) = play(buffer(geometry), script, "word", tail=1)
    asked = []
    for n, (en, address) in enumerate(zip(moves, addresses, strict=True)):
        asked += [address] * en
        if len(asked) >= LATENCY:
            assert words[fill + n + 1] == held[asked[-LATENCY]]
