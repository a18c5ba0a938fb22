"""The expected results of a job, and their comparison with the words of the result stream."""

from typing import NamedTuple

import numpy as np

from weft.commands import Status

__all__ = ["ResultWord", "Scoreboard", "result_words"]

_DONE = Status(0)


class ResultWord(NamedTuple):
    """A word of the result stream."""

    data: int
    last: int
    status: int
    tag: int


def result_words(data: bytes, size: int, *, tag: int, status: int, last=True) -> list[ResultWord]:
    """The words, of ``size`` bytes each, of a packet; a packet may be the last one of its job."""
    starts = range(0, len(data), size)
    return [
        ResultWord(
            int.from_bytes(data[n : n + size], "little"), int(last and n == starts[-1]), status, tag
        )
        for n in starts
    ]


class Scoreboard:
    """The expected words of a job, in order, and the statuses it may end with.

    Parameters
    ----------
    tag : int
    results : array [M, N]
        Expected results; their bits are compared. Masked results may have any value. Empty if the
        job has no results.
    statuses : set of Status
        Allowed statuses. A job that ends early may have sent some of its words, which must be
        correct.
    config : Config
    name : str
        Name of the job for messages.

    Attributes
    ----------
    words : list of tuple
        Value, mask of the compared bits, and row and column of the first result, for each word.
    taken : int
        Result words so far.
    ended : Status or None
        Status of the job; None before it has ended.
    """

    def __init__(self, tag, results, statuses, config, name):
        self.tag = tag
        self.name = name
        self.statuses = statuses
        self.ended = None
        self.words = list(_words(results, config))
        self.taken = 0

    def check(self, words):
        """Compare all words of a run of the job. Raises AssertionError if one differs."""
        self.taken, self.ended = 0, None
        for word in words:
            assert self.ended is None, f"last of {self.name} must come with its last word"
            self.take(word)
        assert self.ended is not None, f"{self.name} must end with a word whose last is set"

    def take(self, word: ResultWord) -> bool:
        """Compare the next word; returns True for the last word of the job."""
        if word.tag != self.tag:
            raise AssertionError(f"tag of a result must be {self.tag}, not {word.tag}")
        status = Status(word.status) if word.last else _DONE
        if status == _DONE:
            self._compare(word)
        elif Status.REJECTED in status and self.taken:
            raise AssertionError(
                f"{self.name} must be rejected before its first result, not after {self.taken}"
            )
        if word.last:
            if status not in self.statuses:
                allowed = " or ".join(repr(s) for s in self.statuses)
                raise AssertionError(f"{self.name} must end with {allowed}, not {status!r}")
            self.ended = status
        return bool(word.last)

    def _compare(self, word):
        if self.taken == len(self.words):
            raise AssertionError(f"{self.name} must have {self.taken} result words, not more")
        value, mask, row, col = self.words[self.taken]
        if (word.data ^ value) & mask:
            raise AssertionError(
                f"{self.name}, word {self.taken} (row {row}, from column {col} on)"
                f" must be {value:#x}, not {word.data & mask:#x}"
            )
        self.taken += 1
        if word.last != (self.taken == len(self.words)):
            raise AssertionError(
                f"last of {self.name} must come with word {len(self.words) - 1},"
                f" and is {word.last} with word {self.taken - 1}"
            )


def _words(results, config):
    """Value, mask of the compared bits, and row and column of the first result, for each word."""
    size = results.dtype.itemsize
    bits = np.ma.getdata(results).view(f"u{size}")
    counts = ~np.ma.getmaskarray(results)
    data, mask, places = bytearray(), bytearray(), []
    m, n = results.shape
    for top in range(0, m, config.rows):
        for left in range(0, n, config.cols):
            right = min(left + config.cols, n)
            padding = bytes((left - right) % config.lanes * size)
            for row in range(top, min(top + config.rows, m)):
                data += b"".join(x.to_bytes(size, "little") for x in bits[row, left:right].tolist())
                mask += np.repeat(counts[row, left:right] * b"\xff"[0], size).astype("u1").tobytes()
                mask += padding
                data += padding
                places += [(row, col) for col in range(left, right + len(padding) // size)]
    for start in range(0, len(data), config.bytes_out):
        part = slice(start, start + config.bytes_out)
        value, care = (int.from_bytes(x[part], "little") for x in (data, mask))
        yield value, care, *places[start // size]
