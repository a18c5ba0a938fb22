"""The cache of results, and the digest of the sources."""

import re
from pathlib import Path

from weft.boards import benchmark
from weft.boards.benchmark import ResultCache


def test_cache_computes_once_and_replaces_damaged_files(tmp_path):
    cache, made = ResultCache(tmp_path / "c"), []

    def make():
        made.append(1)
        return {"a": [1, 2.5, None]}

    assert cache.get("k", make) == cache.get("k", make) == {"a": [1, 2.5, None]}
    assert len(made) == 1
    (tmp_path / "c" / "k.json").write_text('{"a"')
    assert cache.get("k", make) == {"a": [1, 2.5, None]} and len(made) == 2


def test_source_digest_has_16_digits_of_all_sources(monkeypatch):
    read, read_bytes = set(), Path.read_bytes
    monkeypatch.setattr(
        Path, "read_bytes", lambda path: read.add((path.parent.name, path.name)) or read_bytes(path)
    )
    assert re.fullmatch("[0-9a-f]{16}", benchmark.source_digest.__wrapped__())
    assert read > {
        ("boards", "presets.py"), ("weft", "config.py"), ("arith", "mac.py"), ("weft", "buses.py"),
        ("network_core", "descriptors.py"), ("cycles", "model.py"), ("weft", "dtypes.py"),
    }
