"""Latencies of a few Configs computed by hand, and the constants against the hardware."""

import pytest

from weft.config import Config
from weft.hw.buffers.operands import OperandBuffer
from weft.hw.core import MACS
from weft.hw.output.corrector import Corrector
from weft.hw.output.lane_select import LaneSelect
from weft.hw.output.operand_sums import RowSums
from weft.hw.output.scalers import SCALERS
from weft.timing import (
    CORRECTION_LATENCY,
    MAC_LATENCY,
    READ_LATENCY,
    ROW_SUM_LATENCY,
    SLOTS,
    Latencies,
    mac_latency,
    scale_latency,
)

# drain_latency: two cycles to the array's edge, the MAC cell, one into the result register, one for
# each hop between blocks of rows. write_latency: one from the decision to the step, drain_latency,
# one for each hop between blocks of columns, one into the buffer.
BY_HAND = [
    # Blocks of four PEs: one hop down, one across. Rows of 2 chunks. 29 cycles are in flight: the
    # results of 2 tiles, and one more tile: 24 rows, so 32.
    (Latencies.of(Config()), {
        "drain_latency": 2 + 2 + 1 + 1, "write_latency": 1 + 6 + 1 + 1, "row_chunks": 2,
        "pass_rows": 8, "buffer_rows": 32, "buffer_passes": 4,
    }),
    # A folded drain has no result register.
    (Latencies.of(Config(drain="folded")), {
        "drain_latency": 2 + 2 + 1, "write_latency": 1 + 5 + 1 + 1,
    }),
    # A MAC cell in DSP blocks, and a register before the array.
    (Latencies.of(Config(target="ecp5")), {
        "drain_latency": 2 + 1 + 5 + 1 + 1, "write_latency": 1 + 10 + 1 + 1,
    }),
    # One register per PE; 5 chunks of one result of 2 words. 47 cycles, 30 a tile: 9 rows, so 16.
    (Latencies.of(Config(
        rows=3, cols=5, depth=2, hop=1, bytes_out=2, lanes=1, requantize="none",
    )), {
        "drain_latency": 2 + 2 + 1 + 2, "write_latency": 1 + 7 + 4 + 1, "row_chunks": 5,
        "pass_rows": 3, "buffer_rows": 16, "buffer_passes": 5,
    }),
    # One row: no hop down. 18 cycles, 4 a tile: 6 rows, so 8.
    (Latencies.of(Config(rows=1, cols=16, depth=8)), {
        "drain_latency": 2 + 2 + 1 + 0, "write_latency": 1 + 5 + 3 + 1, "row_chunks": 4,
        "pass_rows": 1, "buffer_rows": 8, "buffer_passes": 8,
    }),
    # 14 cycles, 2 a tile: 7 and one more: 8, a power of two.
    (Latencies.of(Config(rows=1, cols=6)), {
        "drain_latency": 5, "write_latency": 1 + 5 + 1 + 1, "row_chunks": 2,
        "pass_rows": 1, "buffer_rows": 8, "buffer_passes": 8,
    }),
    # 15 cycles, 2 a tile: 8 and one more, so 16.
    (Latencies.of(Config(rows=1, cols=6, hop=2)), {
        "drain_latency": 5, "write_latency": 1 + 5 + 2 + 1, "row_chunks": 2,
        "pass_rows": 1, "buffer_rows": 16, "buffer_passes": 16,
    }),
    # A result in four words; one PE. 15 cycles, 4 a tile: 5 rows, so 8.
    (Latencies.of(Config(rows=1, cols=1, bytes_out=1, lanes=1, requantize="none")), {
        "drain_latency": 5, "write_latency": 1 + 5 + 1, "row_chunks": 1,
        "pass_rows": 1, "buffer_rows": 8, "buffer_passes": 8,
    }),
    # A requantized result has one word. 12 cycles, 1 a tile: 13 rows, so 16.
    (Latencies.of(Config(rows=1, cols=1, bytes_out=1, lanes=1)), {
        "drain_latency": 5, "write_latency": 1 + 5 + 1, "row_chunks": 1,
        "pass_rows": 1, "buffer_rows": 16, "buffer_passes": 16,
    }),
    # More lanes than columns: a row is one chunk. 21 cycles, 8 a tile: 32 rows.
    (Latencies.of(Config(lanes=16, bytes_out=16)), {
        "drain_latency": 6, "write_latency": 9, "row_chunks": 1,
        "pass_rows": 8, "buffer_rows": 32, "buffer_passes": 4,
    }),
    # Two lanes: a chunk is half a word, and takes one cycle too. 45 cycles, 32 a tile: 24
    # rows, so 32.
    (Latencies.of(Config(lanes=2)), {
        "drain_latency": 6, "write_latency": 9, "row_chunks": 4,
        "pass_rows": 8, "buffer_rows": 32, "buffer_passes": 4,
    }),
    # A slower MAC cell with two sums: passes of 16 rows. 47 cycles, 32 a pass: 48 rows, so 64.
    (Latencies(Config(), mac_latency=4, slots=2), {
        "drain_latency": 2 + 4 + 1 + 1, "write_latency": 1 + 8 + 1 + 1, "row_chunks": 2,
        "pass_rows": 16, "buffer_rows": 64, "buffer_passes": 4,
    }),
    # Eight sums, a decoder at the edge; a row is a chunk of a word. 52 cycles, 32 a pass: 3 passes.
    (Latencies.of(Config(dtype="bf16", rows=4, cols=4)), {
        "drain_latency": 2 + 11 + 1, "write_latency": 1 + 14 + 1, "row_chunks": 1, "pass_rows": 32,
        "buffer_rows": 128, "buffer_passes": 4, "epilogue_latency": 1 + 2 + 1 + 1 + 1,
    }),
    (Latencies.of(Config(dtype="bf16", rows=1, cols=3, activation="none", flush_subnormals=True)), {
        "drain_latency": 2 + 11 + 1, "write_latency": 1 + 14 + 1, "row_chunks": 1, "pass_rows": 8,
        "buffer_rows": 64, "buffer_passes": 8, "epilogue_latency": 1 + 1,
    }),
]  # fmt: skip


@pytest.mark.parametrize("config, raw, narrow", [
    (Config(), 1, 1),
    (Config(lanes=16), 4, 1),
    (Config(dtype="bf16", lanes=8, bytes_out=4), 8, 4),
    (Config(dtype="bf16", lanes=1, bytes_out=64), 1, 1),
])
def test_chunk_words(config, raw, narrow):
    latencies, kind = Latencies.of(config), config.format
    assert (latencies.chunk_words(kind.acc), latencies.chunk_words(kind.narrow)) == (raw, narrow)


@pytest.mark.parametrize("latencies, expected", BY_HAND)
def test_by_hand(latencies, expected):
    assert {name: getattr(latencies, name) for name in expected} == expected


def test_read_latency_equals_the_buffers():
    assert READ_LATENCY == OperandBuffer.LATENCY


def test_mac_latencies_equal_the_hardware():
    edges = {name: getattr(mac.OPERAND_DECODER, "LATENCY", 0) for name, mac in MACS.items()}
    assert {name: mac.LATENCY + edges[name] for name, mac in MACS.items()} == MAC_LATENCY


@pytest.mark.parametrize("config", [
    Config(), Config(depth=2, multiplier="fip"), Config(dtype="bf16"),
    Config(dtype="bf16", flush_subnormals=True),
])
def test_slots_equal_the_hardware(config):
    assert SLOTS[config.dtype] == MACS[config.mac_cell].SLOTS


def test_sum_latencies_equal_the_hardware():
    assert CORRECTION_LATENCY == Corrector.LATENCY
    assert ROW_SUM_LATENCY == 1 + RowSums.READ
    for target, registered in (("generic", False), ("ecp5", True), ("ice40up", True)):
        latencies = Latencies(Config(target=target), mac_latency=5)
        assert latencies.read_latency == LaneSelect.latency(registered)


@pytest.mark.parametrize("cycles", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("mode", SCALERS)
def test_scaler_latencies_equal_the_hardware(mode, cycles):
    assert SCALERS[mode].latency(cycles) == scale_latency(mode, cycles)


# Four cycles until sums and parameters meet (five with row sums, seven with corrections); one for
# the bias; one for zero points of B; the scaler of the mode; five for the clamp; three for the
# table.
@pytest.mark.parametrize("fields, cycles", [
    ({"activation": "none"}, 4 + 1 + 6 + 5 + 5),
    ({}, 4 + 1 + 6 + 5 + 5 + 3),
    ({"b_zero_point": "column"}, 5 + 1 + 1 + 6 + 5 + 5 + 3),
    ({"multiplier": "fip", "depth": 2}, 7 + 1 + 6 + 5 + 5 + 3),
    ({"requantize": "single"}, 4 + 1 + 5 + 5 + 5 + 3),
    ({"requantize": "onnx", "activation": "none"}, 4 + 1 + 12 + 5 + 5),
    ({"scale_cycles": 8}, 4 + 1 + 6 + 11 + 5 + 3),
    ({"scale_cycles": 16}, 4 + 1 + 6 + 18 + 5 + 3),
])
def test_epilogue_latency_by_hand(fields, cycles):
    assert Latencies.of(Config(**fields)).epilogue_latency == cycles


@pytest.mark.parametrize("config, depth", [
    (Config(requantize="none"), 4),  # sums a cycle after their request; two more in the buffer
    (Config(), 32),  # 24 cycles, a chunk a cycle
    (Config(scale_cycles=8), 4),  # 28 cycles, 8 a chunk
    (Config(requantize="none", depth=2, multiplier="fip"), 16),  # 7 cycles
    (Config(requantize="none", depth=2, multiplier="fip", bytes_out=4), 4),  # ... a chunk in 4
])
def test_reorder_depth_holds_all_chunks_in_flight(config, depth):
    assert Latencies.of(config).reorder_depth == depth


@pytest.mark.parametrize("name, config", [
    ("plain", Config()), ("fip", Config(depth=2, multiplier="fip")), ("bf16", Config(dtype="bf16")),
])
def test_of_uses_the_mac_cell_of_the_config(name, config, monkeypatch):
    monkeypatch.setitem(MAC_LATENCY, name, 9)
    assert Latencies.of(config).mac_latency == 9


@pytest.mark.parametrize("dtype, slots", [("int8", 1), ("bf16", 8)])
def test_of_uses_the_slots_of_the_dtype(dtype, slots):
    assert SLOTS[dtype] == slots
    assert Latencies.of(Config(dtype=dtype)).slots == slots


@pytest.mark.parametrize("depth", [1, 2, 3, 8])
@pytest.mark.parametrize("multiplier", ["plain", "fip"])
@pytest.mark.parametrize("target", ["generic", "ecp5"])
def test_mac_latencies_of_any_depth_equal_the_hardware(target, multiplier, depth):
    pairs = 2 if multiplier == "fip" else 1
    config = Config(target=target, multiplier=multiplier, depth=pairs * depth)
    assert mac_latency(config) == MACS[config.mac_cell].latency(config.depth)
