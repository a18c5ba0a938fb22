"""Places of jobs' parts in a buffer: weights in B, and parameters in their memory."""

import bisect
import copy
import itertools

__all__ = ["BufferPlaces"]


class BufferPlaces:
    """The parts of a buffer that jobs use; a new part lies where the fewest jobs must end before.

    Parameters
    ----------
    size : int
        Words of the buffer.
    """

    def __init__(self, size: int):
        self._size = self._free = size
        self._next = 0
        self._used: list[tuple[int, int, int]] = []  # start, end, job; in the order of jobs
        self._sorted: list[tuple[int, int, int]] = []  # the same ones by their starts

    def copied(self) -> "BufferPlaces":
        """Return places that go on from these."""
        other = copy.copy(self)
        other._used, other._sorted = self._used.copy(), self._sorted.copy()
        return other

    def follow(self, other: "BufferPlaces", ends: list[int], other_ends: list[int]) -> bool:
        """Whether the same words are used as in ``other``, by jobs that end no earlier.

        ``ends`` has when each job ends, from the second entry on.
        """
        return self._next == other._next and len(self._used) == len(other._used) and all(
            mine[:2] == its[:2] and ends[mine[2] + 1] >= other_ends[its[2] + 1]
            for mine, its in zip(reversed(self._used), reversed(other._used), strict=True)
        )

    def take(self, size: int, job: int) -> tuple[int, int]:
        """Return the first word of a part, and the jobs that must have ended before its load.

        ``job`` grows from part to part.
        """
        start, waits = self._next, 0
        if start + size > self._size or self._sorted and self._sorted[-1][1] > start:
            start, waits = self._found(size)
        end = start + size
        if waits:
            self._release(start, end)
        self._next = end
        self._free -= size
        self._used.append((start, end, job))
        bisect.insort(self._sorted, (start, end, job))
        return start, waits

    def _release(self, start, end):
        """Remove the parts between two words."""
        def apart(entry):
            return entry[1] <= start or end <= entry[0]

        self._free += sum(entry[1] - entry[0] for entry in self._used if not apart(entry))
        self._used = list(filter(apart, self._used))
        self._sorted = list(filter(apart, self._sorted))

    def _found(self, size):
        """Return the place for ``size`` words with the fewest jobs, and these jobs.

        Of places with equal jobs the first one counts: after the latest part; the first words;
        after a part, or before one, the oldest part first; the last words.
        """
        jobs, room, waits = iter(self._used), self._free, 0
        while room < size:  # no place has fewer jobs
            start, end, job = next(jobs)
            room, waits = room + end - start, job + 1
        while not (ranges := self._ranges(size, waits)):
            waits = next(jobs)[2] + 1
        places = itertools.chain(
            (self._next, 0), (end for _, end, _ in self._used),
            (start - size for start, _, _ in self._used), (self._size - size,),
        )
        return next(
            place for place in places if any(low <= place <= high for low, high in ranges)
        ), waits

    def _ranges(self, size, waits):
        """Return the ranges of places for ``size`` words when ``waits`` jobs have ended."""
        found, low = [], 0
        for start, end, job in self._sorted:
            if job >= waits:
                if start - low >= size:
                    found.append((low, start - size))
                low = end
        if self._size - low >= size:
            found.append((low, self._size - size))
        return found
