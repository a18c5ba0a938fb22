"""docs/chip.md has the tables that ``make chip-price`` writes."""

import os
from pathlib import Path

import numpy as np
import pytest
from graphs import chain

from tools.chip_price import __main__ as command
from tools.chip_price import page


@pytest.mark.slow
def test_page_is_up_to_date():
    if "WEFT_NETWORKS" not in os.environ:
        pytest.skip("WEFT_NETWORKS must name a folder with the networks of MLPerf Tiny")
    text = page.PATH.read_text(encoding="utf-8")
    assert text == page.page(Path(os.environ["WEFT_NETWORKS"])), "stale; type: make chip-price"


def test_tables():
    graph = chain(np.random.default_rng(1))
    text = page.tables(dict.fromkeys(page.NETWORKS, graph))
    assert text.count("| FULLY_CONNECTED | 1 x 1 x 30 |") == len(page.GOALS)
    assert "### kws on `networks-25f`" in text


def test_needs_the_folder(monkeypatch, capsys):
    monkeypatch.delenv("WEFT_NETWORKS", raising=False)
    assert command.main() == 2
    assert capsys.readouterr().err.startswith("WEFT_NETWORKS must be a folder")
