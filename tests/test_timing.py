"""The delays of a few Configs worked out by hand, and the constants against the hardware's own."""

import pytest

from weft.config import Config
from weft.hw.core import MACS
from weft.hw.memory.operands import OperandBuffer
from weft.hw.post.corrections import Corrector
from weft.timing import CORRECTION_LATENCY, MAC_LATENCY, READ_LATENCY, Delays

# Two cycles to the array's edge, those of the leaf, one into the result register, then one for
# each hop between the blocks of rows; written: the same for the columns, and one into the buffer.
BY_HAND = [
    # Blocks of two PEs: 3 hops down, 3 across. Rows of 2 chunks. 32 cycles are under way, which
    # are the results of 2 tiles, and one more tile: 24 rows, so 32.
    (Delays.of(Config()), {
        "drain": 2 + 2 + 1 + 3, "written": 8 + 3 + 1, "chunks": 2, "chunk_words": 1,
        "pass_rows": 8, "result_rows": 32, "room": 4,
    }),
    # A register a PE; 5 chunks of one result of 2 words. 46 cycles, 30 a tile: 9 rows, so 16.
    (Delays.of(Config(rows=3, cols=5, depth=2, hop=1, bytes_out=2)), {
        "drain": 2 + 2 + 1 + 2, "written": 7 + 4 + 1, "chunks": 5, "chunk_words": 2,
        "pass_rows": 3, "result_rows": 16, "room": 5,
    }),
    # One row: nothing to hop down. 21 cycles, 4 a tile: 7 rows, so 8.
    (Delays.of(Config(rows=1, cols=16, depth=8)), {
        "drain": 2 + 2 + 1 + 0, "written": 5 + 7 + 1, "chunks": 4, "chunk_words": 1,
        "pass_rows": 1, "result_rows": 8, "room": 8,
    }),
    # 14 cycles, 2 a tile: 7 and one more, which is a power of two.
    (Delays.of(Config(rows=1, cols=6)), {
        "drain": 5, "written": 5 + 2 + 1, "chunks": 2, "pass_rows": 1, "result_rows": 8, "room": 8,
    }),
    # 15 cycles, 2 a tile: 8 and one more, so 16.
    (Delays.of(Config(rows=1, cols=8)), {
        "drain": 5, "written": 5 + 3 + 1, "chunks": 2, "pass_rows": 1, "result_rows": 16,
        "room": 16,
    }),
    # A result in four words; one PE. 14 cycles, 4 a tile: 5 rows, so 8.
    (Delays.of(Config(rows=1, cols=1, bytes_out=1)), {
        "drain": 5, "written": 6, "chunks": 1, "chunk_words": 4,
        "pass_rows": 1, "result_rows": 8, "room": 8,
    }),
    # A slower leaf of two sums: passes of 16 rows. 50 cycles, 32 a pass: 48 rows, so 64.
    (Delays(Config(), latency=4, slots=2), {
        "drain": 2 + 4 + 1 + 3, "written": 10 + 3 + 1, "chunks": 2, "chunk_words": 1,
        "pass_rows": 16, "result_rows": 64, "room": 4,
    }),
]  # fmt: skip


@pytest.mark.parametrize("delays, expected", BY_HAND)
def test_by_hand(delays, expected):
    assert {name: getattr(delays, name) for name in expected} == expected


def test_reads_are_as_late_as_the_buffer():
    assert READ_LATENCY == OperandBuffer.LATENCY


def test_every_leaf_is_as_late_as_its_hardware():
    assert {name: mac.LATENCY for name, mac in MACS.items()} == MAC_LATENCY


def test_corrections_are_as_late_as_the_corrector_where_there_is_one():
    latencies = {name: Corrector.LATENCY if mac.CORRECTED else 0 for name, mac in MACS.items()}
    assert latencies == CORRECTION_LATENCY


@pytest.mark.parametrize("name", MAC_LATENCY)
def test_of_takes_the_leaf_of_the_config(name, monkeypatch):
    monkeypatch.setitem(MAC_LATENCY, name, 9)
    assert Delays.of(Config(depth=2, multiplier=name)).latency == 9
