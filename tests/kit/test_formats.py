"""The kit's page of formats: sections of the documentation, for the bus of the core."""

from pathlib import Path

import pytest
from rejects import rejects

from weft.buses import BUSES
from weft.config import Config
from weft.ip import Ip
from weft.kit.documents import SECTIONS, formats, sections
from weft.kit.folder import text

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", SECTIONS)
def test_copy_equals_the_docs(page):
    """``python -m tools.formats`` updates the copy."""
    file, names = SECTIONS[page]
    assert text(file) == sections((DOCS / page).read_text(encoding="utf-8"), names)


@pytest.mark.parametrize("bus", BUSES)
def test_page_is_for_the_core(bus):
    ip = Ip(config=Config(dtype="bf16", rows=4, cols=4, c_words=64), bus=bus)
    page = formats(ip)
    assert page.startswith(f"# Formats of {ip.name}\n")
    assert "\n| bf16 | 4 | 4 | 1 |" in page
    assert "## Headers\n" in page and "| 4 | REQUANTIZE |" in page
    assert ("## Descriptors\n" in page) == (bus == "dma")
    assert "](" not in page  # links would lead out of the kit


def test_rejects_a_page_without_the_section():
    with rejects(ValueError, "page must have the sections B, C, and lacks C"):
        sections("# A\n\n## B\n\ntext\n", ("B", "C"))


def test_sections_end_where_the_next_begins():
    page = "# A\n\n## B\n\none\n\n## C\n\ntwo\n\n## D\n\nthree\n"
    assert sections(page, ("C", "B")) == "## C\n\ntwo\n\n## B\n\none\n"
