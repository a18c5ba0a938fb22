"""Tables of a page are replaced, and the folder of the networks is required."""

from tools.network_tables import replaced, write


def test_tables_are_replaced(tmp_path, monkeypatch, capsys):
    path = tmp_path / "page.md"
    path.write_text("a\n<!-- begin: make areas -->\nold\n<!-- end -->\nb\n")
    monkeypatch.setenv("WEFT_NETWORKS", "nets")
    assert write(path, lambda folder: replaced(path, "areas", f"\\1 {folder}")) == 0
    assert path.read_text() == "a\n<!-- begin: make areas -->\n\\1 nets\n<!-- end -->\nb\n"
    assert capsys.readouterr().out == f"{path}\n"


def test_needs_the_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("WEFT_NETWORKS", raising=False)
    assert write(tmp_path / "page.md", None) == 2
    assert capsys.readouterr().err.startswith("WEFT_NETWORKS must be a folder")
