"""The HTML page: whole, alone, and safe for any name."""

from dataclasses import replace

import pytest
from html_elements import HtmlElements

from weft.models.report import report
from weft.models.report.interface import page


@pytest.fixture(scope="module")
def checked(program, other_program):
    named = replace(program, name="<b>&")
    return HtmlElements(page(report(named, other_program)))


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
