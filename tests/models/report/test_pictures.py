"""The pictures: well-formed SVG in the page's colours."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from network_programs import TARGET, make_program

from weft.models.report import pictures as module
from weft.models.report import product_core_views, report
from weft.models.report.pictures import COLOURS
from weft.models.target import NetworkTarget


@pytest.fixture(scope="module")
def drawn(program, other_program):
    return report(program, other_program).pictures()


def test_pictures(drawn):
    assert set(drawn) == {
        "cycles", "wire", "timeline", "roofline-load", "roofline-drain", "chip", "energy", "maps",
        "against",
    }
    for svg in drawn.values():
        root = ElementTree.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "viewBox" in root.attrib and "width" not in root.attrib
        assert set(re.findall(r"var\(--(\w+)\)", svg)) <= set(COLOURS)
        # The page sets fonts and colours.
        assert not re.search("#0000[0-9a-f]{2}|font-family|DejaVu", svg)
    assert ">2  DEPTHWISE_CONV_2D<" in drawn["cycles"]


def test_ids_are_unique_in_the_page(drawn):
    ids = re.findall(r' id="([^"]+)"', "".join(drawn.values()))
    assert ids and len(set(ids)) == len(ids)


def test_compares_layers_by_their_operators(program):
    """One target fuses operators 1 and 2; the other has two layers for operator 4."""
    mine, *_ = found = report(program).layers
    fused = [replace(mine, position=(0,)), replace(mine, position=(1, 2)), *found[3:]]
    split = [*found[:4], replace(mine, position=(4,)), replace(mine, position=(4,))]
    a, b = (replace(report(program), layers=tuple(layers)) for layers in (fused, split))
    assert module._by_layer(a, b, [1, 2, 4, 8, 16, 32]) == [1, 6, 8, 48]
    assert module._by_layer(b, a, [1, 2, 4, 8]) == [1, 2, 0, 4, 8, 0]


def test_without_a_serial_port_there_is_no_wire(monkeypatch):
    for name in ("common_pictures", "layer_bars", "_timeline", "roofline"):
        monkeypatch.setattr(product_core_views, name, lambda *arguments: {})
    found = report(make_program(NetworkTarget("mine", TARGET.config)))
    assert "wire" not in found.pictures()
