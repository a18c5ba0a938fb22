"""The folders that commands write into."""

import pytest

from weft.cli.output_paths import output_file, output_folder


def test_is_made_with_those_above_it(tmp_path):
    path = tmp_path / "a" / "b"
    assert output_folder(str(path)) == path
    assert path.is_dir()


def test_is_left_as_it_is_where_it_is_there(tmp_path):
    (tmp_path / "kept").touch()
    assert output_folder(tmp_path) == tmp_path
    assert (tmp_path / "kept").exists()


@pytest.mark.parametrize("below, reason", [
    ("", "[Errno 17] File exists: "), ("below", "[Errno 20] Not a directory: "),
])
def test_rejects_what_cannot_be_a_folder(tmp_path, below, reason):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / below
    with pytest.raises(OSError) as error:
        output_folder(path)
    text = f"folder of the output must be one to write in: {reason}'{path}'"
    assert str(error.value) == text


def test_rejects_a_folder_that_cannot_be_written():
    """Not even by root."""
    with pytest.raises(OSError, match="^folder of the output must be one to write in: .*'/proc'$"):
        output_folder("/proc")


def test_a_file_is_left_as_it_is(tmp_path):
    path = tmp_path / "a" / "core.v"
    assert output_file(str(path)) == path
    assert list(path.parent.iterdir()) == []
    path.write_text("old")
    assert output_file(path) == path
    assert [one.name for one in path.parent.iterdir()] == ["core.v"]
    assert path.read_text() == "old"


def test_rejects_what_is_no_file(tmp_path):
    with pytest.raises(OSError, match=f"^output must be a file, and {tmp_path} is a folder$"):
        output_file(tmp_path)
    with pytest.raises(OSError, match="^output must be a file that can be written: "):
        output_file(tmp_path / (252 * "a"))
