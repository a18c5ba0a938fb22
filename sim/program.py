"""Commands for a core, and the words that it must answer with, after ``docs/interfaces.md``."""

from dataclasses import dataclass, field

import numpy as np

from weft.commands import Job, JobFlag, Load, LoadFlag, Status
from weft.config import PAGE_WORDS

__all__ = ["Answer", "Program"]

NONE = LoadFlag(0)


@dataclass
class Answer:
    """The words due to a job: each as (data, mask), what the mask leaves out being padding."""

    tag: int
    words: list[tuple[int, int]] = field(default_factory=list)
    status: Status = Status(0)

    def check(self, taken, *, statuses=None):
        """Raise AssertionError where ``taken``, all of the job's words, are not these.

        A job that ended with another of ``statuses`` has sent some of them, and one word more.
        """
        last = taken[-1]
        assert not any(word["last"] for word in taken[:-1]), "last comes too early"
        assert last["last"], "the last word must be marked"
        assert {word["tag"] for word in taken} == {self.tag}, f"the tag must be {self.tag}"
        allowed = {self.status} if statuses is None else statuses
        ended = last["status"]
        assert ended in allowed, f"job {self.tag} must not end with status {ended}"
        results = taken[:-1] if last["status"] else taken
        due = len(self.words)
        fits = len(results) <= due if last["status"] else len(results) == due
        assert fits, f"job {self.tag} must have {due} words, not {len(results)}"
        for n, (word, (value, mask)) in enumerate(zip(results, self.words, strict=False)):
            assert word["data"] & mask == value, f"job {self.tag}, word {n}"


class Program:
    """A run of commands that grows: stream words to send, answers to expect.

    Operands are [lines, K] arrays: rows of A, columns of B. Where they lie is the caller's to say.

    Attributes
    ----------
    words : list of int
        Of the command stream.
    answers : list of `Answer`
        Of the jobs that answer, in order.
    """

    def __init__(self, config):
        self.config = config
        self.words = []
        self.answers = []
        self._kept = None

    def load(self, side, lines, page=0, flags=NONE):
        """Load the panels of ``lines`` into pages from ``page`` on, one behind the other."""
        config = self.config
        edge, width = (config.rows, config.cols)[side], config.bytes_in
        words = -(-lines.shape[1] // config.depth)
        pitch = -(-words // PAGE_WORDS)
        panels = -(-lines.shape[0] // edge)
        self._header(Load(side, page, pitch, panels, words, flags))
        size = edge * config.depth
        share = 1
        while share * 2 * size <= width and share < PAGE_WORDS:
            share *= 2
        padded = np.zeros((panels * edge, words * config.depth), np.int8)
        padded[: lines.shape[0], : lines.shape[1]] = lines
        for panel in range(panels):
            rows = padded[panel * edge : (panel + 1) * edge]
            split = [
                rows[:, word * config.depth : (word + 1) * config.depth].tobytes()
                for word in range(words)
            ]
            for first in range(0, words, share):
                self._send(b"".join(split[first : first + share]))

    def job(self, a, b, pages=(0, 0), flags=JobFlag(0), tag=0):
        """A job on operands that lie where `load` put them."""
        config = self.config
        pitches = [-(-x.shape[1] // (PAGE_WORDS * config.depth)) for x in (a, b)]
        spans = [
            pitch * -(-x.shape[0] // edge)
            for pitch, x, edge in zip(pitches, (a, b), (config.rows, config.cols), strict=True)
        ]
        self._header(Job(
            *(a.shape[0], b.shape[0], a.shape[1]),
            *(pages[0], pitches[0], spans[0]),
            *(pages[1], pitches[1], spans[1]),
            tag=tag, flags=flags,
        ))
        sums = a.astype(np.int64) @ b.astype(np.int64).T
        if JobFlag.ACCUMULATE in flags:
            sums = sums + self._kept[: sums.shape[0], : sums.shape[1]]
        if JobFlag.KEEP in flags:
            self._kept = sums
        else:
            self.answers.append(Answer(tag, list(self._results(sums))))

    def multiply(self, a, b, *, pages=(0, 0), fed=(), flags=JobFlag(0), tag=0):
        """Load both operands, those ``fed`` behind the header of the job, and run it."""
        for side, lines in enumerate((a, b)):
            if side not in fed:
                self.load(side, lines, pages[side])
        feeds = sum((JobFlag(1 << side) for side in fed), JobFlag(0))
        self.job(a, b, pages, flags | feeds, tag)
        for side in fed:
            self.load(side, (a, b)[side], pages[side], LoadFlag.FEED)

    def reject(self, tag=0, **fields):
        """A job of one result that the core must refuse for its ``fields``."""
        names = ("m", "n", "k", "a_page", "a_pitch", "a_pages", "b_page", "b_pitch", "b_pages")
        self._header(Job(**{**dict.fromkeys(names, 1), **fields}, tag=tag))
        self.answers.append(Answer(tag, status=Status.REJECTED))

    def send(self, data):
        """Bytes that are whatever the caller likes."""
        self._send(data)

    def _header(self, command):
        self._send(command.pack())

    def _send(self, data):
        width = self.config.bytes_in
        for start in range(0, len(data), width):
            self.words.append(int.from_bytes(data[start : start + width], "little"))

    def _results(self, sums):
        """The words of all results: tiles, rows, chunks."""
        config = self.config
        rows, cols, lanes = config.rows, config.cols, max(1, config.bytes_out // 4)
        for i in range(0, sums.shape[0], rows):
            for j in range(0, sums.shape[1], cols):
                for row in sums[i : i + rows, j : j + cols]:
                    for first in range(0, len(row), lanes):
                        yield from self._chunk(row[first : first + lanes])

    def _chunk(self, values):
        data = b"".join((int(value) & 0xFFFFFFFF).to_bytes(4, "little") for value in values)
        width = self.config.bytes_out
        for start in range(0, len(data), width):
            part = data[start : start + width]
            yield int.from_bytes(part, "little"), (1 << 8 * len(part)) - 1
