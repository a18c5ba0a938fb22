"""The report of a network core as text, and as a page with its pictures."""

import numpy as np
import pytest
from html_elements import HtmlElements
from network_core_networks import NetworkBuilder
from network_cores import PROGRAM

from weft.models.network_core.compiler import compile_network_core
from weft.models.report import report
from weft.models.target import target_of


@pytest.fixture(scope="module")
def text(network_core_program, program):
    return report(network_core_program, program).page()


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


def test_text(network_core_program):
    found = report(network_core_program).text().splitlines()
    assert found[0].startswith("net: 4 of 5 operators on Weft")
    assert found[4].split()[:9] == [
        "0", "CONV_2D+ADD", "Weft", "20,736", "6x6x8", "12", "3", "2", "36"
    ]
    assert found[5].split() == ["2", "SOFTMAX", "host"]
    assert found[7].split() == ["4", "RESHAPE", "Weft", "6x6x8"]
    cycles = [segment.cycles for segment in network_core_program.segments]
    assert found[9] == f"lists: 2, of {cycles[0]:,}, {cycles[1]:,} cycles"
    assert found[10].startswith("memory: ") and " of 6,144 bytes (maps " in found[10]
    assert found[11] == "weights: 72 words of B, which has 70: loaded in each inference"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_narrow_terminal_leaves_out_columns(network_core_program, width):
    table = report(network_core_program).text(width).splitlines()[1:9]
    assert max(map(len, table)) <= width and "…" not in "".join(table)
    head = "".join(table).split()
    assert ("position" in head) == (width == 120) and "cycles" in head


def test_the_picture_of_the_memory_says_where_areas_lie(text):
    assert "bytes; setup and maps share their place" in text
    builder = NetworkBuilder(np.random.default_rng(1), (1, 4, 4, 3))
    x = builder.convolution(0, 4)
    builder.on_host()
    builder.convolution(x, 4)
    program = compile_network_core(builder.graph(), target_of(PROGRAM))
    assert "bytes; all but maps and products are in the program memory<" in report(program).page()
