"""The table of mutants: each text is in its source exactly once, and all stages have mutants."""

from pathlib import Path

import pytest
from tooling import load

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def mutants():
    return load("cell_mutants")


def test_every_text_is_in_its_source_once(mutants):
    assert mutants.misplaced(mutants.MUTANTS) == []


def test_every_stage_has_mutants(mutants):
    stages = [mutant.stage for mutant in mutants.MUTANTS]
    for stage in ("multiply", "start", "swap", "align", "add", "normalize", "round"):
        assert stages.count(stage) >= 2, stage


def test_the_page_has_every_mutant(mutants):
    page = (ROOT / "docs" / "cell-mutants.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    listed = [tuple(cell.strip() for cell in row.split(" | "))[:2] for row in rows]
    assert listed == [(f"| {m.stage}", m.what) for m in mutants.MUTANTS]
    assert not any("| NONE |" in row for row in rows)
