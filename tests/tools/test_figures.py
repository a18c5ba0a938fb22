"""The page of figures is what the cycle model says today."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parent.parent.parent / "tools" / "figures.py"


def test_page_is_fresh():
    spec = importlib.util.spec_from_file_location("figures", TOOL)
    figures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figures)
    page = figures.PATH.read_text(encoding="utf-8")
    assert page == figures.page(), "docs/figures.md is stale; type: make figures"
