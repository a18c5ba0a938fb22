"""The delays of a few Configs worked out by hand, and the constants against the hardware's own."""

import pytest

from weft.config import Config
from weft.hw.core import MACS
from weft.hw.memory.operands import OperandBuffer
from weft.hw.post.corrections import Corrector
from weft.hw.post.scale import SCALERS
from weft.timing import CORRECTION_LATENCY, MAC_LATENCY, READ_LATENCY, SCALE_LATENCY, SLOTS, Delays

# Two cycles to the array's edge, those of the leaf, one into the result register, then one for
# each hop between the blocks of rows; written: the same for the columns, and one into the buffer.
BY_HAND = [
    # Blocks of two PEs: 3 hops down, 3 across. Rows of 2 chunks. 32 cycles are under way, which
    # are the results of 2 tiles, and one more tile: 24 rows, so 32.
    (Delays.of(Config()), {
        "drain": 2 + 2 + 1 + 3, "written": 8 + 3 + 1, "chunks": 2,
        "pass_rows": 8, "result_rows": 32, "room": 4,
    }),
    # A register a PE; 5 chunks of one result of 2 words. 46 cycles, 30 a tile: 9 rows, so 16.
    (Delays.of(Config(rows=3, cols=5, depth=2, hop=1, bytes_out=2, lanes=1, requantize="none")), {
        "drain": 2 + 2 + 1 + 2, "written": 7 + 4 + 1, "chunks": 5,
        "pass_rows": 3, "result_rows": 16, "room": 5,
    }),
    # One row: nothing to hop down. 21 cycles, 4 a tile: 7 rows, so 8.
    (Delays.of(Config(rows=1, cols=16, depth=8)), {
        "drain": 2 + 2 + 1 + 0, "written": 5 + 7 + 1, "chunks": 4,
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
    (Delays.of(Config(rows=1, cols=1, bytes_out=1, lanes=1, requantize="none")), {
        "drain": 5, "written": 6, "chunks": 1,
        "pass_rows": 1, "result_rows": 8, "room": 8,
    }),
    # Requantized, it takes one word. 11 cycles, 1 a tile: 12 rows, so 16.
    (Delays.of(Config(rows=1, cols=1, bytes_out=1, lanes=1)), {
        "drain": 5, "written": 6, "chunks": 1,
        "pass_rows": 1, "result_rows": 16, "room": 16,
    }),
    # Lanes for more columns than there are: a row is a chunk. 24 cycles, 8 a tile: 32 rows.
    (Delays.of(Config(lanes=16, bytes_out=16)), {
        "drain": 8, "written": 12, "chunks": 1,
        "pass_rows": 8, "result_rows": 32, "room": 4,
    }),
    # Two lanes: a chunk is half a word, and takes a cycle all the same. 48 cycles, 32 a tile: 24
    # rows, so 32.
    (Delays.of(Config(lanes=2)), {
        "drain": 8, "written": 12, "chunks": 4,
        "pass_rows": 8, "result_rows": 32, "room": 4,
    }),
    # A slower leaf of two sums: passes of 16 rows. 50 cycles, 32 a pass: 48 rows, so 64.
    (Delays(Config(), latency=4, slots=2), {
        "drain": 2 + 4 + 1 + 3, "written": 10 + 3 + 1, "chunks": 2,
        "pass_rows": 16, "result_rows": 64, "room": 4,
    }),
    # Eight sums, a decoder at the edge; rows of a chunk of a word. 53 cycles, 32 a pass: 3 passes.
    (Delays.of(Config(dtype="bf16", rows=4, cols=4)), {
        "drain": 2 + 11 + 1 + 1, "written": 15 + 1 + 1, "chunks": 1, "pass_rows": 32,
        "result_rows": 128, "room": 4, "finish": 2 + 1 + 1 + 1,
    }),
    (Delays.of(Config(dtype="bf16", rows=1, cols=3, activation="none", flush_subnormals=True)), {
        "drain": 2 + 11 + 1, "written": 14 + 1 + 1, "chunks": 1, "pass_rows": 8,
        "result_rows": 64, "room": 8, "finish": 1,
    }),
]  # fmt: skip


@pytest.mark.parametrize("config, raw, narrow", [
    (Config(), 1, 1),
    (Config(lanes=16), 4, 1),
    (Config(dtype="bf16", lanes=8, bytes_out=4), 8, 4),
    (Config(dtype="bf16", lanes=1, bytes_out=64), 1, 1),
])
def test_chunks_are_cut_to_words(config, raw, narrow):
    delays, kind = Delays.of(config), config.format
    assert (delays.chunk_words(kind.acc), delays.chunk_words(kind.narrow)) == (raw, narrow)


@pytest.mark.parametrize("delays, expected", BY_HAND)
def test_by_hand(delays, expected):
    assert {name: getattr(delays, name) for name in expected} == expected


def test_reads_are_as_late_as_the_buffer():
    assert READ_LATENCY == OperandBuffer.LATENCY


def test_every_leaf_is_as_late_as_its_hardware():
    edges = {name: getattr(mac.OPERAND_DECODER, "LATENCY", 0) for name, mac in MACS.items()}
    assert {name: mac.LATENCY + edges[name] for name, mac in MACS.items()} == MAC_LATENCY


@pytest.mark.parametrize("config", [
    Config(), Config(depth=2, multiplier="fip"), Config(dtype="bf16"),
    Config(dtype="bf16", flush_subnormals=True),
])
def test_every_leaf_has_as_many_slots_as_its_hardware(config):
    assert SLOTS[config.dtype] == MACS[config.leaf].SLOTS


def test_corrections_are_as_late_as_the_corrector_where_there_is_one():
    latencies = {name: Corrector.LATENCY if mac.CORRECTED else 0 for name, mac in MACS.items()}
    assert latencies == CORRECTION_LATENCY


def test_scales_are_as_late_as_the_hardware_of_their_mode():
    assert {mode: scaler.LATENCY for mode, scaler in SCALERS.items()} == SCALE_LATENCY


# Two cycles for the parameters to come, one for the bias; one for zero points of B; those of the
# mode; one for the clamp; two for the table.
@pytest.mark.parametrize("mode, zero_points, table, cycles", [
    ("tflite", "none", "none", 2 + 1 + 0 + 4 + 1 + 0),
    ("tflite", "none", "table", 2 + 1 + 0 + 4 + 1 + 2),
    ("tflite", "column", "none", 2 + 1 + 1 + 4 + 1 + 0),
    ("tflite", "column", "table", 2 + 1 + 1 + 4 + 1 + 2),
    ("single", "none", "none", 2 + 1 + 0 + 4 + 1 + 0),
    ("single", "none", "table", 2 + 1 + 0 + 4 + 1 + 2),
    ("single", "column", "none", 2 + 1 + 1 + 4 + 1 + 0),
    ("single", "column", "table", 2 + 1 + 1 + 4 + 1 + 2),
    ("onnx", "none", "none", 2 + 1 + 0 + 7 + 1 + 0),
    ("onnx", "none", "table", 2 + 1 + 0 + 7 + 1 + 2),
    ("onnx", "column", "none", 2 + 1 + 1 + 7 + 1 + 0),
    ("onnx", "column", "table", 2 + 1 + 1 + 7 + 1 + 2),
])
def test_finish_by_hand(mode, zero_points, table, cycles):
    config = Config(requantize=mode, b_zero_point=zero_points, activation=table)
    assert Delays.of(config).finish == cycles


@pytest.mark.parametrize("name, config", [
    ("plain", Config()), ("fip", Config(depth=2, multiplier="fip")), ("bf16", Config(dtype="bf16")),
])
def test_of_takes_the_leaf_of_the_config(name, config, monkeypatch):
    monkeypatch.setitem(MAC_LATENCY, name, 9)
    assert Delays.of(config).latency == 9


@pytest.mark.parametrize("dtype, slots", [("int8", 1), ("bf16", 8)])
def test_of_takes_the_slots_of_the_dtype(dtype, slots):
    assert SLOTS[dtype] == slots
    assert Delays.of(Config(dtype=dtype)).slots == slots
