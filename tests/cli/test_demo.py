"""The demonstration: its timeline, and a run on the simulated core."""

import dataclasses
import io
import shlex

import numpy as np
import pytest
from rich.console import Console
from rich.text import Text

from weft.cli import demo_timeline as demo
from weft.cli import main
from weft.demo import digits_images
from weft.models.network_core.runners import GoldenRunner

pytest.importorskip("tflite")


@pytest.fixture(scope="module")
def program():
    return demo.compiled()


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


@pytest.mark.parametrize("options, kinds", [
    ({"color_system": "truecolor"}, {"▀"}), ({"color_system": None}, {" ", "▀", "▄", "█"}),
    ({"color_system": "truecolor", "no_color": True}, {" ", "▀", "▄", "█"}),
])
def test_a_digit_is_seen_without_colors(options, kinds):
    console = Console(force_terminal=True, width=80, file=io.StringIO(), **options)
    images, labels = digits_images()
    demo.show_digits(console, images[:8], labels[:8], [np.eye(10)[n] for n in labels[:8]], 0)
    rows = Text.from_ansi(console.file.getvalue()).plain.splitlines()[:4]
    assert {*"".join(rows)} - {" "} == kinds - {" "}


def test_saves_a_network_and_pictures_that_weft_run_takes(here, capsys):
    pytest.importorskip("PIL")
    assert main(["demo", "--save", "my digits"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1:] and all(line.startswith("  weft ") for line in said[1:])
    assert len(list((here / "my digits").iterdir())) == 12
    for line in said[1:]:
        words = shlex.split(line)[1:]
        assert main(["golden" if word == "board" else word for word in words]) == 0
        text = capsys.readouterr().out
    assert text.endswith("accuracy: 100.00% (10 of 10)\n")


@pytest.mark.slow
def test_it_runs(here, capsys):
    pytest.importorskip("matplotlib")
    assert main(["demo"]) == 0
    text = capsys.readouterr().out
    assert "16 of 16 digits are right" in text and '"weft" 2 times' in text
    for name in ("demo.png", "words.png", "words.wav"):
        assert (here / "out" / name).stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.exit_code("demo", 1)
def test_another_number_of_cycles_fails(here, capsys, monkeypatch, program):
    class Counted(GoldenRunner):
        def run(self, *addresses, **options):
            report = super().run(*addresses, **options)
            return dataclasses.replace(report, cycles=5)

    monkeypatch.setattr(demo, "SimulatedRunner", Counted)
    assert main(["demo", "--out", "."]) == 1
    predicted = demo.prediction(program).cycles
    assert f"the cycle model predicts {predicted:,} cycles" in capsys.readouterr().out
