"""The page of a network core: whole, and with its pictures."""

import pytest
from html_elements import HtmlElements

from weft.models.report import report
from weft.models.report.network_core_page import network_core_page


@pytest.fixture(scope="module")
def text(network_core_program, program):
    return network_core_page(report(network_core_program, program))


def test_elements_nest(text):
    found = HtmlElements(text)
    assert found.open == []
    row = found.cells.index("CONV_2D+ADD")
    assert found.cells[row : row + 7] == [
        "CONV_2D+ADD", "Weft", "20,736", "6 x 6 x 8", "12", "2", "36"
    ]


def test_pictures(text):
    for heading in ("Cycles of the core", "What is busy", "Roofline: load", "Roofline: drain",
                    "Memory on the chip", "Maps", "Layer by layer"):
        assert f"<h3>{heading}</h3>" in text
    assert text.count("<svg role") == 7 and "cycles of the core, list after list" in text
