"""The cache of results, and the digest of the sources."""

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


def test_source_digest_has_16_digits():
    assert len(benchmark.source_digest()) == 16 and int(benchmark.source_digest(), 16) >= 0
