"""A kit on the disk: whole or not at all, and only over another kit."""

import json
from pathlib import Path

import pytest

from weft.kit.folder import MANIFEST, check, manifest, write

FILES = {"core.v": b"module", "driver/weft.c": b"int", MANIFEST: b"{}\n"}


def held(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_writes_all(tmp_path):
    write(tmp_path / "new" / "kit", FILES)
    assert held(tmp_path / "new") == {f"kit/{name}" for name in FILES}
    assert (tmp_path / "new/kit/driver/weft.c").read_bytes() == b"int"


def test_replaces_a_kit(tmp_path):
    write(tmp_path / "kit", {**FILES, "old.v": b""})
    write(tmp_path / "kit", FILES)
    assert held(tmp_path / "kit") == set(FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["kit"]


def test_fills_an_empty_folder(tmp_path):
    (tmp_path / "kit").mkdir()
    write(tmp_path / "kit", FILES)
    assert held(tmp_path / "kit") == set(FILES)


def test_makes_the_folders_above_it(tmp_path):
    write(tmp_path / "new" / "newer" / "kit", FILES)
    assert held(tmp_path / "new" / "newer" / "kit") == set(FILES)


def test_leaves_what_was_there_where_writing_fails(tmp_path, monkeypatch):
    write(tmp_path / "kit", FILES)
    real = Path.write_bytes

    def half(path, data):
        if path.name == "weft.c":
            raise OSError(28, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "kit", {**FILES, "core.v": b"other"})
    assert (tmp_path / "kit/core.v").read_bytes() == b"module"
    assert [path.name for path in tmp_path.iterdir()] == ["kit"]


def test_rejects_a_folder_of_something_else(tmp_path):
    (tmp_path / "letters.txt").touch()
    text = f"output must be a new folder, an empty one or a kit, and {tmp_path} holds no kit.json"
    with pytest.raises(OSError) as error:
        write(tmp_path, FILES)
    assert str(error.value) == text
    assert held(tmp_path) == {"letters.txt"}


def test_rejects_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError) as error:
        check(tmp_path / "file")
    assert str(error.value) == f"output must be a folder, and {tmp_path / 'file'} is a file"


def test_manifest_names_every_file():
    told = json.loads(manifest({"b": b"", "a": b"x"}, name="core"))
    assert told["name"] == "core"
    assert list(told["files"]) == ["a", "b"]
    assert told["files"]["b"].startswith("e3b0c442")
