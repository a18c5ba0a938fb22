"""Cache entries: built once, complete or absent, rebuilt when damaged, pruned."""

import multiprocessing
import os
import re

import pytest

from weft.sim import cache


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "builds"))


def write(text, made=None):
    """A function that builds an entry of one file; each call appends to ``made``."""
    def make(place):
        if made is not None:
            made.append(place)
        (place / "file").write_text(text, encoding="utf-8")

    return make


def test_builds_an_entry_once():
    made = []
    first = cache.entry("kind", "name", write("text", made))
    assert cache.entry("kind", "name", write("text", made)) == first == cache.root() / "kind/name"
    assert (first / "file").read_text(encoding="utf-8") == "text"
    assert len(made) == 1


def test_digest_changes_with_each_part_and_its_place():
    found = [cache.digest(*parts) for parts in (["ab", "c"], ["a", "bc"], [b"ab", "d"], ["abc"])]
    assert len(set(found)) == 4 and all(re.fullmatch("[0-9a-f]{16}", one) for one in found)
    assert cache.digest("ab", "c") == cache.digest(b"ab", b"c")


@pytest.mark.parametrize("damage", ["delete", "change", "empty", "extra", "contents"])
def test_rebuilds_a_damaged_entry_with_a_warning(damage):
    place = cache.entry("kind", "name", write("text"))
    if damage == "delete":
        (place / "file").unlink()
    elif damage == "contents":
        (place / "contents.json").write_text("[", encoding="utf-8")
    else:
        name = "another" if damage == "extra" else "file"
        (place / name).write_text("" if damage == "empty" else "half", encoding="utf-8")
    message = "the files in .*kind/name have changed since they were built"
    with pytest.warns(cache.CacheWarning, match=message):
        cache.entry("kind", "name", write("text"))
    assert (place / "file").read_text(encoding="utf-8") == "text"
    assert not (place / "another").exists()
    assert cache.entry("kind", "name", write("other")) == place  # without a warning


def test_an_entry_that_fails_leaves_nothing():
    def fails(place):
        (place / "file").write_text("half", encoding="utf-8")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cache.entry("kind", "name", fails)
    assert list((cache.root() / "kind").iterdir()) == []


def test_rebuilds_an_interrupted_entry():
    left = cache.root() / "kind" / ".name"
    left.mkdir(parents=True)
    (left / "half").touch()
    place = cache.entry("kind", "name", write("text"))
    assert sorted(path.name for path in place.iterdir()) == ["contents.json", "file"]
    assert not left.exists()


def _in_a_process(number, log):
    def make(place):
        with open(log, "a", encoding="utf-8") as made:
            made.write(f"{number}\n")
        (place / "file").write_text("text", encoding="utf-8")

    cache.entry("kind", "name", make)


def test_processes_that_need_one_entry_build_it_once(tmp_path):
    context, log = multiprocessing.get_context("fork"), tmp_path / "log"
    processes = [context.Process(target=_in_a_process, args=(n, log)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(log.read_text(encoding="utf-8").splitlines()) == 1


def test_deletes_the_least_recently_used_entry(monkeypatch):
    places = [cache.entry("kind", str(n), write("x" * 1000)) for n in range(3)]
    for age, place in zip((300, 100, 200), places, strict=True):
        contents = place / "contents.json"
        os.utime(contents, (contents.stat().st_mtime - age,) * 2)
    cache.entry("kind", "0", write(""))  # used again
    monkeypatch.setattr(cache, "LIMIT", 3000)
    newest = cache.entry("kind", "3", write("x" * 1000))
    assert [place.exists() for place in (*places, newest)] == [True, True, False, True]


def test_keeps_a_new_entry_larger_than_the_limit(monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 10)
    assert cache.entry("kind", "name", write("x" * 1000)).exists()


def test_clears():
    cache.entry("kind", "name", write("x" * 1000))
    assert cache.clear() >= 1000
    assert not cache.root().exists()
    assert cache.clear() == 0


def test_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path))
    assert cache.folder() == tmp_path
    monkeypatch.delenv("WEFT_BUILD")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache.folder() == tmp_path / "cache" / "weft"


def test_uses_the_entries_of_a_read_only_cache(monkeypatch):
    place = cache.entry("kind", "name", write("text"))

    def refuse(path):
        raise PermissionError(path)

    monkeypatch.setattr(os, "utime", refuse)
    assert cache.entry("kind", "name", write("another text")) == place


def test_names_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "file"))
    text = (
        f"cannot write to the cache: [Errno 20] Not a directory: '{cache.root() / 'locks'}';"
        " set WEFT_BUILD to a folder that can be written"
    )
    with pytest.raises(OSError, match=f"^{re.escape(text)}$"):
        cache.entry("kind", "name", write("text"))
