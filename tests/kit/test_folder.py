"""Writing a kit to disk: completely or not at all, and only over another kit."""

import json
from pathlib import Path

import pytest
from rejects import rejects

from weft.kit.folder import MANIFEST, check, manifest, write

FILES = {"core.v": b"module", "driver/weft.c": b"int", MANIFEST: b"{}\n"}


def names(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_writes_all(tmp_path):
    write(tmp_path / "new" / "kit", FILES)
    assert names(tmp_path / "new") == {f"kit/{name}" for name in FILES}
    assert (tmp_path / "new/kit/driver/weft.c").read_bytes() == b"int"


def test_replaces_a_kit(tmp_path):
    write(tmp_path / "kit", {**FILES, "old.v": b""})
    write(tmp_path / "kit", FILES)
    assert names(tmp_path / "kit") == set(FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["kit"]


def test_fills_an_empty_folder(tmp_path):
    (tmp_path / "kit").mkdir()
    write(tmp_path / "kit", FILES)
    assert names(tmp_path / "kit") == set(FILES)


def test_creates_parent_folders(tmp_path):
    write(tmp_path / "new" / "newer" / "kit", FILES)
    assert names(tmp_path / "new" / "newer" / "kit") == set(FILES)


def test_keeps_the_old_kit_if_writing_fails(tmp_path, monkeypatch):
    write(tmp_path / "kit", FILES)
    real = Path.write_bytes

    def half(path, data):
        if path.name.startswith("weft.c."):
            raise OSError(28, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="No space left") as caught:
        write(tmp_path / "kit", {**FILES, "core.v": b"other"})
    assert caught.value.filename == str(tmp_path / "kit/driver/weft.c")
    assert (tmp_path / "kit/core.v").read_bytes() == b"module"
    assert [path.name for path in tmp_path.iterdir()] == ["kit"]


def test_rejects_a_folder_with_other_files(tmp_path):
    (tmp_path / "letters.txt").touch()
    text = f"output must be a new folder, an empty one or a kit, and {tmp_path} holds no kit.json"
    with rejects(OSError, text):
        write(tmp_path, FILES)
    assert names(tmp_path) == {"letters.txt"}


def test_rejects_a_file(tmp_path):
    (tmp_path / "file").touch()
    with rejects(OSError, f"output must be a folder, and {tmp_path / 'file'} is a file"):
        check(tmp_path / "file")


def test_manifest_names_every_file():
    index = json.loads(manifest({"b": b"", "a": b"x"}, name="core"))
    assert index["name"] == "core"
    assert list(index["files"]) == ["a", "b"]
    assert index["files"]["b"].startswith("e3b0c442")
