"""The fields of `Config` that follow from its target: MAC cell, and columns of DSP blocks."""

import pytest
from rejects import refusal

from weft.config import Config


@pytest.mark.parametrize("target", ["ecp5", "ice40hx", "ice40up", "gowin"])
def test_a_target_has_its_own_mac_cells(target):
    assert Config(target=target).mac_cell == f"plain_{target}"
    assert Config(target=target, depth=2).mac_cell == f"fip_{target}"
    assert Config(target=target, depth=3).mac_cell == f"plain_{target}"
    assert Config(target=target, depth=2, multiplier="plain").mac_cell == f"plain_{target}"
    own = "bf16_ecp5" if target == "ecp5" else "bf16"
    assert Config(target=target, dtype="bf16").mac_cell == own
    assert Config(depth=2).mac_cell == "plain"


@pytest.mark.parametrize(("target", "most"), [
    ("generic", 0), ("ecp5", 5), ("ice40hx", 0), ("ice40up", 5), ("gowin", 5),
])
def test_dsp_cols_are_all_columns_with_dsp_blocks(target, most):
    fields = {"target": target, "cols": 5}
    assert Config(**fields).dsp_cols == most
    for count in range(most + 1):
        assert Config(**fields, dsp_cols=count).dsp_cols == count
    assert refusal(Config, **fields, dsp_cols=most + 1) == (
        f"dsp_cols must be at most {most} with 5 columns and target {target!r}, not {most + 1}"
    )
    assert refusal(Config, **fields, dsp_cols=-1) == "dsp_cols must be in 0..64, not -1"
    assert refusal(Config, **fields, dsp_cols=True) == "dsp_cols must be an integer, not True"


@pytest.mark.parametrize("fields, blocks", [
    ({"target": "ice40up", "rows": 2, "cols": 2, "depth": 6}, 2),
    ({"target": "ice40up", "rows": 3, "cols": 3, "depth": 4, "dsp_cols": 1}, 2),
    ({"target": "ice40up", "rows": 3, "cols": 3, "depth": 4}, 0),
    ({"target": "ice40up", "rows": 3, "cols": 3, "depth": 4, "dsp_cols": 0}, None),
    ({"target": "ecp5", "rows": 64, "cols": 64}, None),
])
def test_pes_share_the_dsp_blocks_of_a_small_device(fields, blocks):
    assert Config(multiplier="plain", **fields).pe_blocks == blocks
