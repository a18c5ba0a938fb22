"""Tests of page allocation and of the ring."""

from weft.host.plan import Pages, Ring


def test_allocates_at_the_end_of_the_smallest_gap_that_fits():
    pages = Pages(16)
    assert pages.free() == (0, 16)
    assert pages.allocate(4) == 12
    assert pages.allocate(2) == 10
    assert pages.allocate(6) == 4
    pages.release(10)
    assert pages.gaps() == [(0, 4), (10, 2)]
    assert pages.allocate(2) == 10
    assert pages.allocate(5) is None
    assert pages.free() == (0, 4)


def test_has_no_free_page_when_all_are_allocated():
    pages = Pages(2)
    assert pages.allocate(2) == 0
    assert pages.free() == (0, 0)
    assert pages.allocate(1) is None
    pages.release(0)
    assert pages.free() == (0, 2)


def test_ring_wraps():
    ring = Ring(5, 8)
    assert [ring.next_region(3) for _ in range(4)] == [5, 8, 5, 8]
    assert ring.next_region(8) == 5
    assert ring.next_region(1) == 5
