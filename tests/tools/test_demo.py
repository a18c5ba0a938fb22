"""The demonstration: its timeline, and a run on the simulated core."""

import pytest

import weft
from tools import demo

pytest.importorskip("tflite")


@pytest.fixture(scope="module")
def program():
    return weft.load(demo.MODEL).compile(demo.config())


def test_the_timeline_has_each_phase_once(program):
    prediction = demo.prediction(program)
    rows = dict(demo.phases(program, prediction))
    assert list(rows) == [
        "loads", "CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D + ADD", "AVERAGE_POOL_2D",
        "FULLY_CONNECTED",
    ]
    assert len(rows["loads"]) == 8
    phases = [phase for name, found in rows.items() if name != "loads" for phase in found]
    end = 0
    for (compute, *computed), (store, *stored) in zip(phases[::2], phases[1::2], strict=True):
        assert (compute, store) == ("compute", "drain and store")
        assert end < computed[0] < computed[1] == stored[0] < stored[1]
        end = stored[1]
    assert end < prediction.cycles


@pytest.mark.slow
def test_it_runs(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    monkeypatch.setattr(demo, "PICTURE", tmp_path / "out" / "demo.png")
    assert demo.main() == 0
    out = capsys.readouterr().out
    assert "16 of 16 digits are right" in out
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000
