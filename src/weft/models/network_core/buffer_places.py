"""Places of jobs' parts in a buffer: weights in B, and parameters in their memory."""

import bisect
import copy
import operator

__all__ = ["BufferPlaces"]

_end_of, _job_of = operator.itemgetter(1), operator.itemgetter(2)


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
        first = last = bisect.bisect_right(self._sorted, start, key=_end_of)
        while last < len(self._sorted) and self._sorted[last][0] < end:
            entry = self._sorted[last]
            self._free += entry[1] - entry[0]
            del self._used[bisect.bisect_left(self._used, entry[2], key=_job_of)]
            last += 1
        del self._sorted[first:last]

    def _found(self, size):
        """Return the place for ``size`` words with the fewest jobs, and these jobs.

        Of places with equal jobs the first one counts: after the latest part; the first words;
        after a part, the oldest part first.
        """
        room, waits, found = self._free, 0, []
        if room >= size:
            found = self._gaps(size)
        jobs = iter(self._used)
        while not found:
            part = next(jobs)
            room, waits = room + part[1] - part[0], part[2] + 1
            if room >= size:  # no gap was large enough before, so this part is in one that is
                found = self._gap_with(part, size)
        if any(low <= self._next <= high for low, high, _ in found):
            return self._next, waits
        if not found[0][0]:
            return 0, waits
        ends = (
            entry for low, high, entries in found for entry in entries if low <= entry[1] <= high
        )
        return min(ends, key=_job_of)[1], waits

    def _gaps(self, size):
        """Return the places for ``size`` words between all parts.

        Each gap is the first and the last place in it, and the parts that end there.
        """
        found, low, before = [], 0, ()
        for entry in self._sorted:
            if entry[0] - low >= size:
                found.append((low, entry[0] - size, before))
            low, before = entry[1], (entry,)
        if self._size - low >= size:
            found.append((low, self._size - size, before))
        return found

    def _gap_with(self, part, size):
        """Return the gap of a part, as `_gaps`, when it and all older parts are removed."""
        parts, job = self._sorted, part[2]
        first = last = bisect.bisect_left(parts, part)
        while first and parts[first - 1][2] <= job:
            first -= 1
        while last < len(parts) and parts[last][2] <= job:
            last += 1
        low = parts[first - 1][1] if first else 0
        high = (parts[last][0] if last < len(parts) else self._size) - size
        return [(low, high, parts[max(0, first - 1) : last])] if low <= high else []
