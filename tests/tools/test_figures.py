"""The page of figures is what the cycle model says today."""

from tooling import load


def test_page_is_fresh():
    figures = load("figures")
    page = figures.PATH.read_text(encoding="utf-8")
    assert page == figures.page(), "docs/figures.md is stale; type: make figures"
