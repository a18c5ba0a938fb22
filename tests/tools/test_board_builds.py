"""The record of bitstreams has the reports of the builds."""

import json
from types import SimpleNamespace

from tools import board_builds, results
from weft.boards.catalog import BOARDS

REPORT = {
    "board": "icebreaker", "used": {"LUT": 1, "FF": 2, "DSP": 3, "RAM": 4}, "clock": 54.0,
    "capacity": {"LUT": 5, "FF": 6, "DSP": 7, "RAM": 8}, "fmax": 70.0, "digests": {"design": "i"},
}


def test_a_row_for_each_report():
    reports = {
        name: {"used": used, "capacity": capacity, "clock": 48.0, "fmax": 50.04}
        for name, used, capacity in (
            ("a", {"LUT": 9, "RAM": 2}, {"LUT": 10, "RAM": 32}),
            ("b", {"LUT": 4523, "DSP": 8, "RAM": 28}, {"LUT": 5280, "DSP": 8, "RAM": 30}),
        )
    }
    assert board_builds.table(reports, "1a2b").splitlines()[2:] == [
        "| `a` | 9 of 10 | - | 2 of 32 | 48.0 MHz | 50.0 MHz | 1a2b |",
        "| `b` | 4,523 of 5,280 | 8 of 8 | 28 of 30 | 48.0 MHz | 50.0 MHz | 1a2b |",
    ]


def test_the_digests_are_the_ones_of_the_builds():
    reports = {"old": {}, "new": {"digests": {"design": "1", "conditions": "2"}}}
    assert board_builds.measured(reports) == {"new": {"design": "1", "conditions": "2"}}


def test_a_core_without_a_report_keeps_its_row(tmp_path, monkeypatch):
    """With the commit that it was built at; the sources of the record are the older ones."""
    for name in ("place", "stamp"):
        monkeypatch.setattr(results, name, lambda of, root=None: {"commit": "new", "digest": "2"})
    monkeypatch.setattr(results, "write", lambda root: None)
    columns = results.table(board_builds.table({"a": REPORT}, "old"))["columns"]
    stored = {"boards": {
        "commit": "old", "digest": "1", "designs": {"kept": {"design": "k"}},
        "tables": [{"columns": columns, "rows": [["`kept`", 1], ["`icebreaker`", 2]]}],
    }}
    monkeypatch.setattr(results, "load", stored.__getitem__)
    monkeypatch.setattr(results, "store", lambda name, record, root: stored.update({name: record}))
    (tmp_path / "icebreaker").mkdir()
    (tmp_path / "icebreaker" / "report.json").write_text(json.dumps(REPORT))
    for commit in ("old and new", "old and new"):
        assert board_builds.main(tmp_path) == 0
        record = stored["boards"]
        assert (record["commit"], record["digest"]) == (commit, "1")
        assert record["tables"][0]["rows"] == [
            ["`icebreaker`", "1 of 5", "3 of 7", "4 of 8", 54.0, 70.0, "new"], ["`kept`", 1],
        ]
        assert record["designs"] == {"icebreaker": {"design": "i"}, "kept": {"design": "k"}}


def test_boards_with_gowin_fpgas_have_a_record_of_their_own(tmp_path, monkeypatch):
    def build(name):
        (tmp_path / name).mkdir()
        report = REPORT | {"board": name, "digests": {"design": name}}
        (tmp_path / name / "report.json").write_text(json.dumps(report))

    saved = {}
    monkeypatch.setattr(results, "load", lambda name: {"tables": [{"rows": []}]})
    monkeypatch.setattr(results, "place", lambda of: {"commit": "1a2b"})
    monkeypatch.setattr(results, "save", lambda name, tables, **rest: saved.update({
        name: (tables[0]["rows"], rest["designs"])
    }))
    build("tang-nano-9k")
    assert board_builds.main(tmp_path) == 0 and list(saved) == ["gowin-boards"]
    build("icebreaker")
    assert board_builds.main(tmp_path) == 0
    assert saved == {
        "boards": (
            [["`icebreaker`", "1 of 5", "3 of 7", "4 of 8", 54.0, 70.0, "1a2b"]],
            {"icebreaker": {"design": "icebreaker"}},
        ),
        "gowin-boards": (
            [["`tang-nano-9k`", "1 of 5", "2 of 6", "3 of 7", "4 of 8", 54.0, 70.0, "1a2b"]],
            {"tang-nano-9k": {"design": "tang-nano-9k"}},
        ),
    }


def test_each_core_has_a_design(monkeypatch):
    names = {
        record: [name for name, _ in made()] for record, made in (
            ("boards", board_builds.designs), ("gowin-boards", board_builds.gowin_designs),
            ("language-boards", board_builds.language_designs),
            ("fast-boards", board_builds.fast_designs),
        )
    }
    assert set(BOARDS) < {name for found in names.values() for name in found}
    assert not set(names["boards"]) & set(names["gowin-boards"])
    for record, found in names.items():
        assert len(set(found)) == len(found)
        rows = results.load(record)["tables"][0]["rows"]
        assert {row[0].strip("`") for row in rows} <= set(found)
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
