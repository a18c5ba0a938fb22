"""The record of bitstreams has the reports of the builds."""

import json
from types import SimpleNamespace

from tools import board_builds, results
from weft.boards.catalog import BOARDS


def test_a_row_for_each_report(tmp_path):
    for name, used in (("b", {"LUT": 4523, "DSP": 8, "RAM": 28}), ("a", {"LUT": 9, "RAM": 2})):
        (tmp_path / name).mkdir()
        capacity = {"LUT": 5280, "DSP": 8, "RAM": 30} if name == "b" else {"LUT": 10, "RAM": 32}
        report = {"used": used, "capacity": capacity, "clock": 48.0, "fmax": 50.04}
        (tmp_path / name / "report.json").write_text(json.dumps(report))
    assert board_builds.table(tmp_path).splitlines()[2:] == [
        "| `a` | 9 of 10 | - | 2 of 32 | 48.0 MHz | 50.0 MHz |",
        "| `b` | 4,523 of 5,280 | 8 of 8 | 28 of 30 | 48.0 MHz | 50.0 MHz |",
    ]


def test_the_digests_are_the_ones_of_the_builds(tmp_path):
    for name, report in (("old", {}), ("new", {"digests": {"design": "1", "conditions": "2"}})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(json.dumps(report))
    assert board_builds.measured(tmp_path) == {"new": {"design": "1", "conditions": "2"}}


def test_each_core_has_a_design(monkeypatch):
    names = [name for name, _ in board_builds.designs()]
    assert len(set(names)) == len(names) and set(BOARDS) < set(names)
    assert {row[0].strip("`") for row in results.load("boards")["tables"][0]["rows"]} <= set(names)
    monkeypatch.setattr(
        board_builds, "prepare", lambda board, config: SimpleNamespace(digests=(board, config)),
    )
    found, board = dict(board_builds.designs()), BOARDS["icebreaker"]
    assert found["icebreaker"]() == (board, board.config)
    built = board.built_for("networks")
    assert found["icebreaker-networks"]() == (built, built.config)


def test_needs_a_report(tmp_path, capsys):
    assert board_builds.main(tmp_path) == 2
    assert "must have the reports of weft build" in capsys.readouterr().err
