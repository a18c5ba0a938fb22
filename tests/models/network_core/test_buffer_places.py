"""Places in a buffer: where the fewest jobs must end before, by trying all places."""

import numpy as np
import pytest

from weft.models.network_core.weights import BufferPlaces

SIZE = 60


class AllPlaces:
    """The same rule without any knowledge: a job for each word."""

    def __init__(self):
        self.words = [0] * SIZE  # the jobs that must have ended before the word is free
        self.parts = []  # start, end; the oldest one first
        self.next = 0

    def take(self, size, job):
        places = [
            self.next, 0, *(end for _, end in self.parts),
            *(start - size for start, _ in self.parts), SIZE - size,
        ]
        possible = [start for start in places if 0 <= start <= SIZE - size]
        start = min(possible, key=lambda start: max(self.words[start : start + size]))
        waits, self.next = max(self.words[start : start + size]), start + size
        for part in [part for part in self.parts if part[0] < self.next and start < part[1]]:
            self.parts.remove(part)
            self.words[part[0] : part[1]] = [0] * (part[1] - part[0])  # all of it waits no more
        self.parts.append((start, self.next))
        self.words[start : self.next] = [job + 1] * size
        return start, waits


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("largest", [6, 25, SIZE])
def test_places_are_the_first_with_the_fewest_jobs(seed, largest):
    rng = np.random.default_rng(seed)
    places, expected, job = BufferPlaces(SIZE), AllPlaces(), 0
    for _ in range(80):
        size, job = int(rng.integers(1, largest + 1)), job + int(rng.integers(1, 4))
        assert places.take(size, job) == expected.take(size, job)


def test_copies_go_on_alone():
    places = BufferPlaces(SIZE)
    places.take(50, 0)
    other = places.copied()
    assert other.take(10, 1) == (50, 0)
    assert places.take(10, 1) == (50, 0)


def test_follows_only_equal_places_that_end_no_earlier():
    first, second, ends = BufferPlaces(SIZE), BufferPlaces(SIZE), [0, 10, 20]
    for places in (first, second):
        places.take(30, 0)
        places.take(20, 1)
    assert first.follow(second, ends, ends)
    assert first.follow(second, [0, 10, 21], ends)
    assert not first.follow(second, [0, 9, 21], ends)
    other = second.copied()
    other.take(5, 2)
    assert not other.follow(second, [*ends, 30], ends)
    third = BufferPlaces(SIZE)
    third.take(20, 0)
    third.take(30, 1)
    assert not third.follow(second, ends, ends)
