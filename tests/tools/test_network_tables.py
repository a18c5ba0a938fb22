"""Tables of a page are replaced, and the folder of the networks is required."""

import pytest

from tools import network_core_networks, networks
from tools.network_tables import replaced, write


def test_tables_are_replaced(tmp_path, monkeypatch, capsys):
    path = tmp_path / "page.md"
    path.write_text("a\n<!-- begin: make areas -->\nold\n<!-- end -->\nb\n")
    monkeypatch.setenv("WEFT_NETWORKS", "nets")
    assert write({path: lambda folder: replaced(path, {"make areas": f"\\1 {folder}"})}) == 0
    assert path.read_text() == "a\n<!-- begin: make areas -->\n\\1 nets\n<!-- end -->\nb\n"
    assert capsys.readouterr().out == f"{path}\n"


def test_needs_the_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("WEFT_NETWORKS", raising=False)
    assert write({tmp_path / "page.md": None}) == 2
    assert capsys.readouterr().err.startswith("WEFT_NETWORKS must be a folder")


def test_a_page_without_the_table_is_an_error(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("a\n")
    with pytest.raises(ValueError, match="must have the comment <!-- begin: x --> once, not 0"):
        replaced(path, {"x": ""})


@pytest.mark.slow
def test_tables_of_cores_for_networks_are_current(mlperf_tiny):
    """The cycles and bytes of the documents are the predicted ones."""
    for path, page in network_core_networks.PAGES.items():
        assert page(mlperf_tiny) == path.read_text(encoding="utf-8")
    text = networks.PATH.read_text(encoding="utf-8")
    assert replaced(networks.PATH, network_core_networks.sizes(mlperf_tiny)) == text
