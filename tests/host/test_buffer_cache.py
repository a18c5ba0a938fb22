"""The cache of a buffer: data are placed once, and replaced by others in their place."""

from weft.host.list_products import BufferCache


def test_places():
    cache = BufferCache(10)
    assert cache.place(b"a", 4) == (0, True)
    assert cache.place(b"b", 4) == (4, True)
    assert cache.place(b"a", 4) == (0, False)
    assert cache.place(b"c", 3) == (0, True)  # from the start: it overwrites a
    assert cache.place(b"b", 4) == (4, False)
    assert cache.place(b"a", 4) == (3, True)  # and now b
    assert cache.place(b"c", 3) == (0, False)
    assert cache.place(b"b", 4) == (0, True)
    assert cache.place(b"whole", 10) == (0, True)
    assert cache.place(b"a", 4) == (0, True)
