"""The pictures of the documents show the values of today."""

import json
import re
from xml.etree import ElementTree

import pytest

from tools import pictures

pytest.importorskip("tflite")
pytest.importorskip("matplotlib")


def test_the_pictures_are_up_to_date():
    drawn = json.loads(pictures.DIGESTS.read_text(encoding="utf-8"))
    assert pictures.shown() == drawn, "stale; type: make pictures"


def test_every_picture_exists_and_has_a_digest():
    files = {path.name for folder in (pictures.STATIC, pictures.PAGES)
             for path in folder.iterdir() if path.suffix in (".png", ".svg")}
    # Drawings without values.
    by_hand = {"concepts.svg", "network-core.svg", "operators.svg", "system.svg"}
    assert files - by_hand == set(json.loads(pictures.DIGESTS.read_text(encoding="utf-8")))


def test_another_value_is_another_digest(monkeypatch):
    before = pictures.shown()
    phases = pictures.demo.phases
    monkeypatch.setattr(pictures.demo, "phases", lambda *args: [*phases(*args)][1:])
    after = pictures.shown()
    assert [name for name in before if before[name] != after[name]] == ["demo.png", "words.png"]


def test_the_picture_of_a_report_is_complete(tmp_path):
    path = tmp_path / "report.svg"
    pictures._draw_report(path)
    text = path.read_text(encoding="utf-8")
    assert len(ElementTree.fromstring(text)) == len(pictures.PARTS)
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    assert used and all(f"{name}: #" in text for name in used)


def test_the_pictures_for_learners_are_those_that_are_drawn(tmp_path, monkeypatch):
    static = pictures.STATIC
    monkeypatch.setattr(pictures, "STATIC", tmp_path)
    pictures._draw_stairs()
    stored = {path.name: path.read_text(encoding="utf-8") for path in static.glob("learn-*.svg")}
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert drawn == stored and len(drawn) == 6
    for text in drawn.values():
        ElementTree.fromstring(text)
