"""What a job must answer, and the comparison of the words that come with it."""

import numpy as np

from weft.commands import Status

__all__ = ["Expectation"]

_DONE = Status(0)


class Expectation:
    """The answer due to one job: its words in order, and how it may end.

    Parameters
    ----------
    tag : int
    results : array [M, N] of integers
        Those of uint8 take a byte each, others four. Empty where the job never has any.
    statuses : set of Status
        How the job may end. One ended early has sent some of its words, right ones.
    config : Config
    """

    def __init__(self, tag, results, statuses, config):
        self.tag = tag
        self.statuses = statuses
        self.ended = None
        self._words = list(_words(results, config))
        self._count = 0

    def take(self, word) -> bool:
        """Compare the next word; True where it is the job's last."""
        if word.tag != self.tag:
            raise AssertionError(f"tag of a result must be {self.tag}, not {word.tag}")
        status = Status(word.status) if word.last else _DONE
        if status == _DONE:
            self._compare(word)
        elif Status.REJECTED in status and self._count:
            raise AssertionError(
                f"job {self.tag} must be rejected before its first result, not after {self._count}"
            )
        if word.last:
            if status not in self.statuses:
                allowed = " or ".join(repr(s) for s in self.statuses)
                raise AssertionError(f"job {self.tag} must end with {allowed}, not {status!r}")
            self.ended = status
        return bool(word.last)

    def _compare(self, word):
        if self._count == len(self._words):
            raise AssertionError(f"job {self.tag} must have {self._count} result words, not more")
        value, mask, row, col = self._words[self._count]
        if (word.data ^ value) & mask:
            raise AssertionError(
                f"job {self.tag}, word {self._count} (row {row}, from column {col} on)"
                f" must be {value:#x}, not {word.data & mask:#x}"
            )
        self._count += 1
        if word.last != (self._count == len(self._words)):
            raise AssertionError(
                f"last of job {self.tag} must come with word {len(self._words) - 1},"
                f" and is {word.last} with word {self._count - 1}"
            )


def _words(results, config):
    """Value, mask of the bits that count, row and column of the first result of each word."""
    size = 1 if results.dtype == np.uint8 else 4
    data, mask, places = bytearray(), bytearray(), []
    m, n = results.shape
    for top in range(0, m, config.rows):
        for left in range(0, n, config.cols):
            right = min(left + config.cols, n)
            padding = bytes((left - right) % config.lanes * size)
            for row in range(top, min(top + config.rows, m)):
                line = results[row, left:right]
                numbers = (int(x) & (1 << 8 * size) - 1 for x in line)
                data += b"".join(x.to_bytes(size, "little") for x in numbers)
                mask += b"\xff" * (len(line) * size) + padding
                data += padding
                places += [(row, col) for col in range(left, right + len(padding) // size)]
    for start in range(0, len(data), config.bytes_out):
        part = slice(start, start + config.bytes_out)
        value, bits = (int.from_bytes(x[part], "little") for x in (data, mask))
        yield value, bits, *places[start // size]
