"""Timing diagrams: four characters a cycle, and only signals of the core."""

import re

import pytest

from weft.buses import BUSES
from weft.kit.sheet import draw, waves


def test_draws_levels_and_values():
    assert draw("clk", [("d", "xABB"), ("valid", "0110")]) == (
        "clk    /-\\_/-\\_/-\\_/-\\_\n"
        "d      ::::<A==<B======\n"
        "valid  ____--------____"
    )


@pytest.mark.parametrize("bus, more", [
    ("axi", {}), ("dma", {}), *(
        pytest.param(bus, fields, marks=pytest.mark.slow if bus == "stream" else pytest.mark.long)
        for bus, fields in (*((bus, {}) for bus in BUSES if bus not in ("axi", "dma")),
                            ("wishbone", {"pipelined": True}))
    ),
])
def test_draws_ports_of_the_core(kits, bus, more):
    ip, files = kits(bus, **more)
    page = files["README.md"].decode()
    drawings = [text for text in waves(ip) if text.startswith("```")]
    drawn = {line.split()[0] for text in drawings for line in text.splitlines()[1:-1]}
    assert len(drawn) > 4
    assert drawn <= set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    assert all(text in page for text in drawings)
