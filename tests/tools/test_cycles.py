"""docs/cycles.md agrees with the cycle model."""

from tooling import load


def test_page_is_up_to_date():
    tool = load("cycles")
    page = tool.PATH.read_text(encoding="utf-8")
    assert page == tool.page(), "docs/cycles.md is stale; type: make cycles"
