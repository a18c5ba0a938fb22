"""Output files and folders: created, left unchanged, or rejected."""

from pathlib import Path

import pytest
from rejects import rejects

from weft.files import output_file, output_folder


def test_creates_a_folder_and_its_parents(tmp_path):
    path = tmp_path / "a" / "b"
    assert output_folder(str(path)) == path
    assert path.is_dir()


def test_leaves_an_existing_folder_unchanged(tmp_path):
    (tmp_path / "kept").touch()
    assert output_folder(tmp_path) == tmp_path
    assert (tmp_path / "kept").exists()


@pytest.mark.parametrize("below, reason", [
    ("", "[Errno 17] File exists: "), ("below", "[Errno 20] Not a directory: "),
])
def test_rejects_a_file_in_place_of_a_folder(tmp_path, below, reason):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / below
    text = f"cannot write to the output folder: {reason}'{path}'"
    with rejects(OSError, text):
        output_folder(path)


def test_rejects_a_folder_that_cannot_be_written():
    """Not even by root."""
    with pytest.raises(OSError, match="^cannot write to the output folder: .*'/proc'$"):
        output_folder("/proc")


def test_leaves_an_existing_file_unchanged(tmp_path):
    path = tmp_path / "a" / "core.v"
    assert output_file(str(path)) == path
    assert list(path.parent.iterdir()) == []
    path.write_text("old")
    assert output_file(path) == path
    assert [one.name for one in path.parent.iterdir()] == ["core.v"]
    assert path.read_text() == "old"


def test_rejects_a_file_that_the_command_uses_already(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.onnx").write_text("network")
    (tmp_path / "link").symlink_to("net.onnx")
    for path in ("net.onnx", tmp_path / "net.onnx", "link", "a/../net.onnx"):
        with rejects(OSError, "output must be a file of its own, not net.onnx"):
            output_file(path, None, "net.onnx")
    assert output_file("other", "net.onnx", None) == Path("other")


def test_rejects_a_path_that_cannot_be_a_file(tmp_path):
    with pytest.raises(OSError, match=f"^output must be a file; {tmp_path} is a folder$"):
        output_file(tmp_path)
    with pytest.raises(OSError, match="^cannot write the output file: "):
        output_file(tmp_path / (252 * "a"))
