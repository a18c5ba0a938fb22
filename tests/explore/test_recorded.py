"""The recorded points: the file, and what is true of all of them."""

import json
from collections import Counter
from pathlib import Path

import pytest
from explore_points import records

from weft.boards.blocks import GROUPS
from weft.boards.devices import DEVICES
from weft.cli.explore_result import ERROR_COLUMNS, FAMILIES, error_rows
from weft.config import Config
from weft.explore import findings, network_features
from weft.explore.features import dsp_blocks, ram_blocks, ram_blocks_by_part
from weft.explore.model import LEAST, TooFewPoints, family_of, leave_one_out
from weft.explore.points import PACKED

ROOT = Path(__file__).resolve().parent.parent.parent
ALL = findings.recorded()
CONFIG = Config(target="ecp5")


def test_a_file_gives_the_points_back(tmp_path):
    made = records(5)
    findings.write(tmp_path / "points.json", made)
    read = findings.read(tmp_path / "points.json")
    assert sorted(read, key=str) == sorted(made, key=str)
    assert findings.read(tmp_path / "none.json") == []


@pytest.mark.parametrize("text", ["{", '[{"point": {}}]', '[{"point": 1}]', "[3]"])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "points.json").write_text(text)
    with pytest.raises(OSError, match="points.json must hold points of weft explore record"):
        findings.read(tmp_path / "points.json")


def test_all_recorded_points_are_done_and_legal():
    assert all(outcome.done for _, outcome in ALL)
    assert all(bool(outcome.fmax) == (point.seed != PACKED) for point, outcome in ALL)
    assert len({point.key for point, _ in ALL}) == len(ALL)


def test_dsp_blocks_and_block_rams_are_counted_exactly():
    measured = [
        record for record in ALL if record[1].blocks and isinstance(record[0].config, Config)
    ]
    assert [
        (str(point), outcome.used.get("DSP", 0), _rams(outcome)) for point, outcome in measured
    ] == [
        (str(point), dsp_blocks(point.config), +Counter(ram_blocks_by_part(point.config)))
        for point, _ in measured
    ]


NETWORKS = {
    "ecp5-networks": network_features.NETWORKS, "ice40-networks": network_features.SINGLE_PORT,
}


@pytest.mark.parametrize("family", NETWORKS)
def test_all_blocks_of_cores_for_networks_are_counted_exactly(family):
    measured, counted = findings.recorded(family), NETWORKS[family].counted
    assert len(measured) >= LEAST
    assert [
        (str(point), {name: outcome.used[name] for name in counted}) for point, outcome in measured
    ] == [
        (str(point), {name: count(point.config) for name, count in counted.items()})
        for point, _ in measured
    ]


@pytest.mark.parametrize("family", NETWORKS)
def test_the_parts_of_a_core_for_networks_have_all_its_blocks(family):
    members = [block for blocks in NETWORKS[family].members.values() for block in blocks]
    assert len(members) == len(set(members))
    for _, outcome in findings.recorded(family):
        assert outcome.blocks.keys() <= set(members)


def _rams(outcome):
    """The block RAMs of each part of a design that has some."""
    return +Counter({
        part: sum(outcome.blocks.get(name, {}).get("RAM", 0) for name in names)
        for part, names in GROUPS.items()
    })


def test_the_records_of_the_bench_are_points():
    found = findings.bench_points(ROOT / "results" / "performance.json")
    assert {point.device.name for point, _ in found} >= {"LFE5U-25F", "iCE40HX8K", "iCE40UP5K"}
    text = json.loads((ROOT / "results" / "performance.json").read_text())
    assert {outcome.fmax for _, outcome in found} <= {
        fmax for record in text for fmax in record["fmax"].values()
    }


def test_random_points_fit_their_devices():
    for name in ("LFE5U-25F", "iCE40UP5K", "iCE40HX8K"):
        device, points = DEVICES[name], findings.varied(DEVICES[name], 5)
        for _ in range(20):
            config = next(points).config
            assert config.target == device.target
            assert dsp_blocks(config) <= device.capacity.get("DSP", 0)
            assert ram_blocks(config) <= device.capacity["RAM"]


def test_random_cores_for_networks():
    for name, family in (("LFE5U-25F", "ecp5-networks"), ("iCE40UP5K", "ice40-networks")):
        device = DEVICES[name]
        assert findings.families(device) == [family.removesuffix("-networks"), family]
        points = findings.varied(device, 5, networks=True, packed=True)
        for _ in range(5):
            point = next(points)
            assert family_of(point.config) == family and point.seed == PACKED
    assert findings.families(DEVICES["iCE40HX8K"]) == ["ice40", "ice40-networks"]


def test_too_few_points_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(findings, "FILE", tmp_path / "points.json")
    with pytest.raises(TooFewPoints, match="estimates for .* need 8 recorded points of"):
        findings.fitted(CONFIG)


def test_outcomes_of_other_runs_count(monkeypatch, tmp_path):
    monkeypatch.setattr(findings, "FILE", tmp_path / "points.json")
    assert findings.fitted(CONFIG, records(9)).family == "ecp5"


@pytest.mark.parametrize(("family", "points"), [("ecp5", 40), ("ice40", 20)])
def test_the_errors_of_the_estimates_are_within_the_goals(family, points):
    errors = leave_one_out([record for record in ALL if family_of(record[0].config) == family])
    assert errors.of("LUT").size >= points and errors.of("fmax").size >= points
    assert errors.typical("LUT") <= 0.05 and errors.typical("FF") <= 0.05
    assert errors.typical("fmax") <= 0.15
    assert not errors.blocks_of("DSP").any() and not errors.blocks_of("RAM").any()


@pytest.mark.slow
def test_a_row_of_errors_has_all_columns():
    rows = error_rows()
    assert [row[0] for row in rows] == list(FAMILIES)
    assert {len(row) for row in rows} == {len(ERROR_COLUMNS)}


def test_columns_that_use_block_ram_are_within_the_recorded_range():
    measured = [
        point.config for point, outcome in ALL
        if outcome.blocks and isinstance(point.config, Config) and point.config.ram_cols
    ]
    assert len(measured) >= 5
    config = max(measured, key=lambda config: config.rows * config.ram_cols * config.depth)
    assert findings.fitted(config).estimate(config, DEVICES["LFE5U-25F"]).outside == ()
