"""``weft clean``: deletes the cache, and keeps the rest of the folder."""

import pytest

from weft.cli import main
from weft.sim import cache


@pytest.fixture
def builds(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path))
    return tmp_path


def test_deletes_only_the_cache(builds, capsys):
    cache.entry("kind", "name", lambda place: (place / "file").write_bytes(bytes(2_000_000)))
    (builds / "other").touch()
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == f"{builds / 'cache'}: deleted 2.0 MB\n"
    assert [path.name for path in builds.iterdir()] == ["other"]


def test_an_empty_cache(builds, capsys):
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == f"{builds / 'cache'}: deleted 0.0 MB\n"
