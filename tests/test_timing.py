"""The delays of a few Configs worked out by hand, and the constants against the hardware's own."""

import pytest

from weft.config import Config
from weft.hw.buffers.operands import OperandBuffer
from weft.hw.core import MACS
from weft.hw.output.corrector import Corrector
from weft.hw.output.lane_select import LaneSelect
from weft.hw.output.operand_sums import RowSums
from weft.hw.output.scalers import SCALERS
from weft.timing import (
    CORRECTED_LATENCY,
    MAC_LATENCY,
    READ_LATENCY,
    SLOTS,
    SUMS_LATENCY,
    Delays,
    mac_latency,
    scale_latency,
)

# Two cycles to the array's edge, those of the leaf, one into the result register, then one for
# each hop between the blocks of rows; written: one from the decision to the step, the same for the
# columns, and one into the buffer.
BY_HAND = [
    # Blocks of four PEs: a hop down, one across. Rows of 2 chunks. 29 cycles are under way, which
    # are the results of 2 tiles, and one more tile: 24 rows, so 32.
    (Delays.of(Config()), {
        "drain": 2 + 2 + 1 + 1, "written": 1 + 6 + 1 + 1, "chunks": 2,
        "pass_rows": 8, "result_rows": 32, "room": 4,
    }),
    # Sums that are drained through themselves have no other register.
    (Delays.of(Config(drain="folded")), {"drain": 2 + 2 + 1, "written": 1 + 5 + 1 + 1}),
    # A leaf in blocks of a device, and a register before the array.
    (Delays.of(Config(target="ecp5")), {
        "drain": 2 + 1 + 5 + 1 + 1, "written": 1 + 10 + 1 + 1,
    }),
    # A register a PE; 5 chunks of one result of 2 words. 47 cycles, 30 a tile: 9 rows, so 16.
    (Delays.of(Config(rows=3, cols=5, depth=2, hop=1, bytes_out=2, lanes=1, requantize="none")), {
        "drain": 2 + 2 + 1 + 2, "written": 1 + 7 + 4 + 1, "chunks": 5,
        "pass_rows": 3, "result_rows": 16, "room": 5,
    }),
    # One row: nothing to hop down. 18 cycles, 4 a tile: 6 rows, so 8.
    (Delays.of(Config(rows=1, cols=16, depth=8)), {
        "drain": 2 + 2 + 1 + 0, "written": 1 + 5 + 3 + 1, "chunks": 4,
        "pass_rows": 1, "result_rows": 8, "room": 8,
    }),
    # 14 cycles, 2 a tile: 7 and one more, which is a power of two.
    (Delays.of(Config(rows=1, cols=6)), {
        "drain": 5, "written": 1 + 5 + 1 + 1, "chunks": 2, "pass_rows": 1, "result_rows": 8,
        "room": 8,
    }),
    # 15 cycles, 2 a tile: 8 and one more, so 16.
    (Delays.of(Config(rows=1, cols=6, hop=2)), {
        "drain": 5, "written": 1 + 5 + 2 + 1, "chunks": 2, "pass_rows": 1, "result_rows": 16,
        "room": 16,
    }),
    # A result in four words; one PE. 15 cycles, 4 a tile: 5 rows, so 8.
    (Delays.of(Config(rows=1, cols=1, bytes_out=1, lanes=1, requantize="none")), {
        "drain": 5, "written": 1 + 5 + 1, "chunks": 1,
        "pass_rows": 1, "result_rows": 8, "room": 8,
    }),
    # Requantized, it takes one word. 12 cycles, 1 a tile: 13 rows, so 16.
    (Delays.of(Config(rows=1, cols=1, bytes_out=1, lanes=1)), {
        "drain": 5, "written": 1 + 5 + 1, "chunks": 1,
        "pass_rows": 1, "result_rows": 16, "room": 16,
    }),
    # Lanes for more columns than there are: a row is a chunk. 21 cycles, 8 a tile: 32 rows.
    (Delays.of(Config(lanes=16, bytes_out=16)), {
        "drain": 6, "written": 9, "chunks": 1,
        "pass_rows": 8, "result_rows": 32, "room": 4,
    }),
    # Two lanes: a chunk is half a word, and takes a cycle all the same. 45 cycles, 32 a tile: 24
    # rows, so 32.
    (Delays.of(Config(lanes=2)), {
        "drain": 6, "written": 9, "chunks": 4,
        "pass_rows": 8, "result_rows": 32, "room": 4,
    }),
    # A slower leaf of two sums: passes of 16 rows. 47 cycles, 32 a pass: 48 rows, so 64.
    (Delays(Config(), latency=4, slots=2), {
        "drain": 2 + 4 + 1 + 1, "written": 1 + 8 + 1 + 1, "chunks": 2,
        "pass_rows": 16, "result_rows": 64, "room": 4,
    }),
    # Eight sums, a decoder at the edge; rows of a chunk of a word. 52 cycles, 32 a pass: 3 passes.
    (Delays.of(Config(dtype="bf16", rows=4, cols=4)), {
        "drain": 2 + 11 + 1, "written": 1 + 14 + 1, "chunks": 1, "pass_rows": 32,
        "result_rows": 128, "room": 4, "finish": 1 + 2 + 1 + 1 + 1,
    }),
    (Delays.of(Config(dtype="bf16", rows=1, cols=3, activation="none", flush_subnormals=True)), {
        "drain": 2 + 11 + 1, "written": 1 + 14 + 1, "chunks": 1, "pass_rows": 8,
        "result_rows": 64, "room": 8, "finish": 1 + 1,
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


def test_the_way_of_sums_is_as_long_as_the_hardwares():
    assert CORRECTED_LATENCY == Corrector.LATENCY
    assert SUMS_LATENCY == 1 + RowSums.READ
    for target, registered in (("generic", False), ("ecp5", True), ("ice40up", True)):
        assert Delays(Config(target=target), latency=5).row == LaneSelect.latency(registered)


@pytest.mark.parametrize("cycles", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("mode", SCALERS)
def test_scales_are_as_late_as_the_hardware_of_their_mode(mode, cycles):
    assert SCALERS[mode].latency(cycles) == scale_latency(mode, cycles)


# Four cycles until sums and parameters meet, or five where sums of rows must be there, or seven
# where they are corrected; one for the bias; one for zero points of B; those of the mode and its
# product; five for the clamp; three for the table.
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
def test_finish_by_hand(fields, cycles):
    assert Delays.of(Config(**fields)).finish == cycles


@pytest.mark.parametrize("config, places", [
    (Config(requantize="none"), 4),  # sums a cycle after they are asked for; two more in the queue
    (Config(), 32),  # 24 cycles, a chunk a cycle
    (Config(scale_cycles=8), 4),  # 28 cycles, 8 a chunk
    (Config(requantize="none", depth=2, multiplier="fip"), 16),  # 7 cycles
    (Config(requantize="none", depth=2, multiplier="fip", bytes_out=4), 4),  # ... a chunk in 4
])
def test_places_hold_what_is_under_way(config, places):
    assert Delays.of(config).places == places


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


@pytest.mark.parametrize("depth", [1, 2, 3, 8])
@pytest.mark.parametrize("multiplier", ["plain", "fip"])
@pytest.mark.parametrize("target", ["generic", "ecp5"])
def test_leaves_of_any_depth_are_as_late_as_their_hardware(target, multiplier, depth):
    pairs = 2 if multiplier == "fip" else 1
    config = Config(target=target, multiplier=multiplier, depth=pairs * depth)
    assert mac_latency(config) == MACS[config.leaf].latency(config.depth)
