"""Cells of a placed netlist, by block."""

import json

import pytest

from weft.boards.blocks import Cell, cells_by_block, latest_arrivals, packed_by_block, placed_cells
from weft.boards.devices import DEVICES


def cell(kind, bel, **parameters):
    return {"type": kind, "attributes": {"NEXTPNR_BEL": bel}, "parameters": parameters}


@pytest.fixture
def layout(tmp_path):
    """``layout(cells by name)``: writes a netlist file."""
    def written(found):
        path = tmp_path / "top-1.json"
        path.write_text(json.dumps({"modules": {"top": {"cells": found}}}))
        return path

    return written


@pytest.mark.parametrize(("name", "block", "group"), [
    ("accelerator.core.array.pe_0_1.mac.sum_TRELLIS_FF_Q_3", "array", "array"),
    ("$gbuf_accelerator.core.feeder.x_SB_DFF_Q", "feeder", "operands"),
    ("accelerator.core.a$106.write.end_LUT4_Z", "core", "control"),
    ("accelerator.core.output$163.rescaler.step_SB_DFF_Q", "output", "results"),
    ("accelerator.core.columns.mac_0_1.block_MULT16", "columns", "array"),
    ("accelerator.core.data_SB_DFFESR_Q_3_D_SB_LUT4_O", "core", "control"),
    ("accelerator.core.epilogue.scaler.product", "epilogue", "post-processing"),
    ("accelerator.link.intake.fsm_state_SB_DFF_Q", "link", "serial link"),
    ("accelerator.receiver.timer_LUT4_Z", "receiver", "serial link"),
    ("accelerator.answers__payload_SB_DFFESR_Q_1", "accelerator", "serial link"),
    ("core.array.pe_0_1.mac.sum_TRELLIS_FF_Q_3", "array", "array"),
    ("link.receiver.fsm_state_TRELLIS_FF_Q", "link", "serial link"),
    ("status_leds.count_SB_DFFSR_Q_1", "board", "board"),
    ("$nextpnr_ICESTORM_LC_79", "nextpnr", "board"),
])
def test_block_of_a_name(layout, name, block, group):
    path = layout({name: cell("TRELLIS_FF", "X3/Y4/SLICEA.FF1")})
    [found] = placed_cells(path, DEVICES["LFE5U-25F"])
    assert (found.block, found.group) == (block, group)
    assert (found.resource, found.x, found.y, found.bel) == ("FF", 3, 4, "SLICEA.FF1")


def test_an_ice40_logic_cell_counts_as_a_lut_and_a_used_flip_flop(layout):
    found = placed_cells(layout({
        "status_leds.a": cell("ICESTORM_LC", "X1/Y1/lc0", DFF_ENABLE="1"),
        "status_leds.b": cell("ICESTORM_LC", "X1/Y1/lc1", DFF_ENABLE="00000000"),
        "accelerator.core.array.m": cell("ICESTORM_DSP", "X0/Y5/mac16_0"),
        "led": cell("SB_IO", "X0/Y1/io0"),
    }), DEVICES["iCE40UP5K"])
    assert {block: dict(used) for block, used in cells_by_block(found).items()} == {
        "array": {"DSP": 1}, "board": {"LUT": 2, "FF": 1},
    }


def test_packed_cells_count_without_a_position(layout):
    path = layout({
        "core.array.m": {"type": "TRELLIS_COMB", "attributes": {}, "parameters": {}},
        "core.array.f": {"type": "TRELLIS_FF", "attributes": {}, "parameters": {}},
        "$nextpnr_CCU2C_0": {"type": "TRELLIS_COMB", "attributes": {}, "parameters": {}},
        "pin": {"type": "TRELLIS_IO", "attributes": {}, "parameters": {}},
    })
    assert placed_cells(path, DEVICES["LFE5U-25F"]) == []
    found = packed_by_block(path, DEVICES["LFE5U-25F"])
    assert {block: dict(used) for block, used in found.items()} == {
        "array": {"LUT": 1, "FF": 1}, "nextpnr": {"LUT": 1},
    }


def test_blocks_are_in_the_order_of_the_groups():
    blocks = "board", "link", "array", "tile_gate"
    some = [Cell(block, "LUT", False, 0, 0, "") for block in blocks]
    assert list(cells_by_block(some)) == ["array", "tile_gate", "link", "board"]


CLK, OTHER = "posedge clk", "posedge other"


def net(event, *endpoints):
    return {"event": event, "endpoints": [
        {"cell": cell, "event": end, "delay": delay} for cell, end, *delay in endpoints
    ]}


def test_the_latest_arrival_of_each_block_and_the_latest_block_first():
    report = {"detailed_net_timings": [
        net(CLK, ("core.drain.a_TRELLIS_FF_Q", CLK, 1.0, 2.0),
            ("accelerator.core.array.pe_0_0.x_TRELLIS_FF_Q", CLK, 2.5, 3.0)),
        net(CLK, ("core.drain.b_TRELLIS_FF_Q", CLK, 0.5, 1.5),
            ("accelerator.core.array.pe_7_7.x_TRELLIS_FF_Q", CLK, 1.0, 4.5)),
        net(OTHER, ("core.loader.page_TRELLIS_FF_Q", OTHER, 7.0)),
    ]}
    found = latest_arrivals(report)
    assert list(found.items()) == [("loader", 7.0), ("array", 4.5), ("drain", 2.0)]


def test_a_path_between_two_clocks_does_not_count():
    report = {"detailed_net_timings": [
        net(OTHER, ("core.drain.a_TRELLIS_FF_Q", CLK, 9.0)),
        net(CLK, ("core.drain.a_TRELLIS_FF_Q", CLK, 1.0)),
    ]}
    assert latest_arrivals(report) == {"drain": 1.0}
