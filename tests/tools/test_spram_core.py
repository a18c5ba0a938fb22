"""The blocks of the cells of a core for networks."""

import json

from tools.spram_core import block_of, cells


def test_blocks():
    names = {
        "core.list_reader.run.jobs$110.word_6_SB_DFFE_Q": "list_reader",
        "core.job$36_SB_DFF_Q": "other", "core.memory.bank.block_0_16": "memory",
        "core.a_SB_DFFSR_Q_1": "other",
        "link.sender.crc$26_SB_LUT4_O": "link", "$auto_core.output.added_SB_LUT4_O": "output",
        "tx_SB_LUT4_O": "other", "receiver.shift_SB_DFF_Q": "receiver",
    }
    assert {name: block_of(name) for name in names} == names


def test_cells_of_blocks(tmp_path):
    types = {"core.loader.a": "SB_LUT4", "core.loader.b": "SB_DFFESR", "core.array.c": "SB_LUT4",
             "core.array.d": "SB_CARRY", "core.loader.e": "SB_SPRAM256KA"}
    netlist = {"modules": {"top": {"cells": {name: {"type": t} for name, t in types.items()}}}}
    tmp_path.joinpath("top.json").write_text(json.dumps(netlist))
    found = cells(tmp_path / "top.json")
    assert list(found) == ["loader", "array", "all"]
    assert found["loader"] == {"LUT4": 1, "FF": 1} and found["all"]["LUT4"] == 2
