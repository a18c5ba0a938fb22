"""Tables of a page are replaced, and the folder of the networks is required."""

import pytest

from tools import networks, presets, program_memory
from tools.network_tables import replaced


def test_tables_are_replaced(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("a\n<!-- begin: make areas -->\nold\n<!-- end -->\nb\n")
    text = replaced(path, {"make areas": "\\1 nets"})
    assert text == "a\n<!-- begin: make areas -->\n\\1 nets\n<!-- end -->\nb\n"


@pytest.mark.parametrize("tool", [networks, presets, program_memory])
def test_needs_the_folder(tool, monkeypatch, capsys):
    monkeypatch.delenv("WEFT_NETWORKS", raising=False)
    assert tool.main() == 2
    assert capsys.readouterr().err.startswith("WEFT_NETWORKS must be a folder")


def test_a_page_without_the_table_is_an_error(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("a\n")
    with pytest.raises(ValueError, match="must have the comment <!-- begin: x --> once, not 0"):
        replaced(path, {"x": ""})
