"""docs/networks.md has the tables that ``make networks`` writes."""

import os
from pathlib import Path

import pytest
from tooling import load


@pytest.mark.slow
def test_page_is_up_to_date():
    if "WEFT_NETWORKS" not in os.environ:
        pytest.skip("WEFT_NETWORKS must name a folder with the networks of MLPerf Tiny")
    tool = load("networks")
    text = tool.PATH.read_text(encoding="utf-8")
    assert text == tool.page(Path(os.environ["WEFT_NETWORKS"])), "stale; type: make networks"


def test_needs_the_folder(monkeypatch, capsys):
    monkeypatch.delenv("WEFT_NETWORKS", raising=False)
    assert load("networks").main() == 2
    assert capsys.readouterr().err.startswith("WEFT_NETWORKS must be a folder")
