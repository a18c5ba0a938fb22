"""The page of a core for networks: whole, and with its pictures."""

from html.parser import HTMLParser

import pytest

from weft.network.report import report
from weft.network.report.chip_page import chip_page

VOID = {"meta", "br"}


class Elements(HTMLParser):
    """Checks that elements nest, and collects the cells of tables."""

    def __init__(self):
        super().__init__()
        self.open, self.cells = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


@pytest.fixture(scope="module")
def text(chip_program, program):
    return chip_page(report(chip_program, program))


def test_elements_nest(text):
    found = Elements()
    found.feed(text)
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
