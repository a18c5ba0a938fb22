"""The HTML page: whole, alone, and safe for any name."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from weft.network.report import report
from weft.network.report.page import page

VOID = {"meta", "br"}


class Checker(HTMLParser):
    """Checks that elements nest, and collects their text and all addresses."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.links = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        self.links += [
            value for name, value in attributes
            if name in ("src", "href", "xlink:href", "srcset") and not value.startswith("#")
        ]

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def checked(program, other_program):
    named = replace(program, name="<b>&")
    checker = Checker()
    checker.feed(page(report(named, other_program)))
    checker.close()
    return checker


def test_elements_nest(checked):
    assert checked.open == []


def test_needs_no_network(checked):
    assert checked.links == []


def test_has_everything(checked):
    text = "".join(checked.text)
    assert "<b>& on a-board" in text
    for part in ("285", "DEPTHWISE_CONV_2D", "softmax needs a reduction", "the batch is 1", "4x4x4",
                 " cycles at 100 MHz", "a-board and other", "Horowitz", "host (windows, packing"):
        assert part in text
