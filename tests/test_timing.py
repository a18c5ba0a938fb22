"""Latencies of a few Configs computed by hand, and the constants against the hardware."""

import dataclasses

import pytest

from weft.config import Config
from weft.hw.arith.cells import MACS
from weft.hw.buffers.operands import OperandBuffer
from weft.hw.output.lanes import LaneSelect
from weft.hw.output.scalers import SCALERS
from weft.latencies import CORRECTION, MEMORY_READ, ROW_SUM, scaler
from weft.mac_cells import MAC_CELLS
from weft.targets import TARGETS
from weft.timing import Latencies

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
    latencies, kind = Latencies.of(config), config.data_type
    assert (latencies.chunk_words(kind.acc), latencies.chunk_words(kind.narrow)) == (raw, narrow)


@pytest.mark.parametrize("latencies, expected", BY_HAND)
def test_by_hand(latencies, expected):
    assert {name: getattr(latencies, name) for name in expected} == expected


def test_memories_read_in_two_cycles():
    assert MEMORY_READ == OperandBuffer.LATENCY == 2


@pytest.mark.parametrize("name, cycles", [
    ("plain", 2), ("fip", 2), ("bf16", 11), ("bf16_ftz", 11), ("plain_ecp5", 5), ("fip_ecp5", 5),
    ("plain_ice40hx", 4), ("fip_ice40hx", 4), ("plain_ice40up", 4), ("fip_ice40up", 4),
    ("plain_gowin", 6), ("fip_gowin", 6),
])
def test_mac_cells_with_one_product(name, cycles):
    cell = MAC_CELLS[name]
    assert cell.latency_of(cell.pairs) == cycles


@pytest.mark.parametrize("name", MAC_CELLS)
def test_every_mac_cell_equals_its_hardware(name):
    cell, mac = MAC_CELLS[name], MACS[name]
    assert cell.decoder_latency == getattr(mac.OPERAND_DECODER, "LATENCY", 0)
    assert cell.latency == mac.LATENCY
    assert (cell.slots, cell.corrected) == (mac.SLOTS, mac.CORRECTED)


@pytest.mark.parametrize("name", [name for name, cell in MAC_CELLS.items() if cell.has_tree])
@pytest.mark.parametrize("products, levels", [(1, 0), (2, 1), (3, 2), (8, 3)])
def test_a_tree_of_products_takes_a_cycle_for_each_level(name, products, levels):
    cell = MAC_CELLS[name]
    depth = cell.pairs * products
    assert cell.latency_of(depth) == cell.latency + levels == MACS[name].latency(depth)


def test_from_a_chunk_request():
    assert (CORRECTION, ROW_SUM) == (7, 5)


@pytest.mark.parametrize("target, cycles", [
    ("generic", 1), ("ecp5", 4), ("ice40hx", 4), ("ice40up", 4), ("gowin", 4),
])
def test_sums_are_read_in_as_many_cycles_as_the_lanes_take(target, cycles):
    registered = TARGETS[target].pipelines_results
    assert Latencies.of(Config(target=target, depth=1)).read_latency == cycles
    assert LaneSelect.latency(registered) == cycles


@pytest.mark.parametrize("mode, cycles, latency", [
    ("tflite", 1, 11), ("tflite", 2, 13), ("single", 4, 12), ("onnx", 8, 23), ("onnx", 32, 46),
])
def test_scaler_latency(mode, cycles, latency):
    assert SCALERS[mode].latency(cycles) == scaler(mode, cycles) == latency


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
    cell = dataclasses.replace(MAC_CELLS[name], latency=9, decoder_latency=0, slots=3)
    monkeypatch.setattr(MAC_CELLS, "_objects", {name: cell})
    latencies = Latencies.of(config)
    assert (latencies.mac_latency, latencies.slots) == (9, 3)


@pytest.mark.parametrize("dtype, slots", [("int8", 1), ("bf16", 8)])
def test_of_uses_the_slots_of_the_dtype(dtype, slots):
    assert Latencies.of(Config(dtype=dtype)).slots == slots
