"""Commands for a core and the expected result words, by ``docs/interfaces.md``."""

from dataclasses import dataclass, field

import numpy as np

from weft.commands import Job, JobFlag, Load, LoadFlag, Region, Status
from weft.config import PAGE_WORDS
from weft.golden import clamp, matmul, matmul_bf16, scaled, to_bfloat16

__all__ = ["ExpectedResults", "Scenario"]

NO_FLAGS = LoadFlag(0)


@dataclass
class ExpectedResults:
    """The expected words of a job, each as (data, mask); bits outside of the mask are padding."""

    tag: int
    words: list[tuple[int, int]] = field(default_factory=list)
    status: Status = Status(0)

    def check(self, received, *, statuses=None):
        """Raise AssertionError unless ``received``, all words of the job, match.

        A job that ends with another one of ``statuses`` may send fewer words, and one more word
        with the status.
        """
        last = received[-1]
        assert not any(word["last"] for word in received[:-1]), "last is set too early"
        assert last["last"], "last must be set in the last word"
        assert {word["tag"] for word in received} == {self.tag}, f"the tag must be {self.tag}"
        allowed = {self.status} if statuses is None else statuses
        status = last["status"]
        assert status in allowed, f"job {self.tag} must not end with status {status}"
        results = received[:-1] if status else received
        count = len(self.words)
        complete = len(results) <= count if status else len(results) == count
        assert complete, f"job {self.tag} must have {count} words, not {len(results)}"
        for n, (word, (value, mask)) in enumerate(zip(results, self.words, strict=False)):
            assert word["data"] & mask == value, f"job {self.tag}, word {n}"


class Scenario:
    """A sequence of commands: the words to send, and the results to expect.

    Operands are arrays [lines, K]: rows of A, columns of B. The caller chooses their pages.

    Attributes
    ----------
    words : list of int
        Words of the command stream.
    expected_results : list of `ExpectedResults`
        For each job that sends words, in order.
    """

    def __init__(self, config):
        self.config = config
        self.words = []
        self.expected_results = []
        self._kept = None
        self._columns = self._table = None

    def load(self, side, lines, page=0, flags=NO_FLAGS):
        """Load ``lines`` into consecutive panels from ``page`` on."""
        depth = self.config.depth
        edge = (self.config.rows, self.config.cols)[side]
        words = -(-lines.shape[1] // depth)
        pitch = -(-words // PAGE_WORDS)
        panels = -(-lines.shape[0] // edge)
        self._header(Load(side, page, pitch, panels, words, flags))
        padded = np.zeros((panels, edge, words, depth), lines.dtype)
        padded.reshape(panels * edge, -1)[: len(lines), : lines.shape[1]] = lines
        for panel in padded:
            self._panel([panel[:, word].tobytes() for word in range(words)], PAGE_WORDS)

    def load_parameters(self, columns, page=0, pitch=1):
        """Load epilogue parameters, a tuple for each column of B, with the page and pitch of B.

        All later jobs use them.
        """
        self._columns = columns
        cols, lanes = self.config.cols, self.config.lanes
        chunks = -(-cols // lanes)
        panels = -(-len(columns) // cols)
        self._header(Load(Region.PARAMETERS, page, pitch, panels, chunks))
        entry = self.config.data_type.parameter
        for first in range(0, len(columns), cols):
            entries = [entry.pack(*c) for c in columns[first : first + cols]]
            entries += [bytes(entry.size)] * (chunks * lanes - len(entries))
            words = [b"".join(entries[n : n + lanes]) for n in range(0, len(entries), lanes)]
            self._panel(words, 1 << (chunks - 1).bit_length())

    def load_table(self, entries):
        """Load the activation table."""
        self._table = entries
        self._header(Load(Region.TABLE, 0, 1, 1, len(entries)))
        self._panel([bytes([entry & 255]) for entry in entries], PAGE_WORDS)

    def load_c(self, c, page=0, gap=0):
        """Load ``c`` [M, N] or [1, N], with ``gap`` words between panels."""
        rows, cols = len(c), self.config.cols
        panels = -(-c.shape[1] // cols)
        self._header(Load(Region.C, page, rows + gap, panels, rows))
        padded = np.zeros((rows, panels * cols), c.dtype)
        padded[:, : c.shape[1]] = c
        for panel in padded.reshape(rows, panels, cols).transpose(1, 0, 2):
            self._panel([row.tobytes() for row in panel], 1)

    def job(self, a, b, pages=(0, 0), flags=JobFlag(0), tag=0, c=None, c_page=0, gap=0):
        """Send a job on operands that `load` and `load_c` have placed."""
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
            **self._c_fields(c, b, c_page, gap), tag=tag, flags=flags | self._c_flags(c),
        ))
        start = self._kept if JobFlag.ACCUMULATE in flags else c
        sums = self._product(a, b, start)
        if JobFlag.KEEP in flags:
            self._kept = sums
        else:
            results, size = self._epilogue(sums, a, flags)
            words = list(self._results(results, size))
            self.expected_results.append(ExpectedResults(tag, words))

    def multiply(self, a, b, *, pages=(0, 0), feed=(), flags=JobFlag(0), tag=0, **options):
        """Load both operands and send a job; operands in ``feed`` follow its header."""
        for side, lines in enumerate((a, b)):
            if side not in feed:
                self.load(side, lines, pages[side])
        feeds = sum((JobFlag(1 << side) for side in feed), JobFlag(0))
        self.job(a, b, pages, flags | feeds, tag, **options)
        for side in feed:
            self.load(side, (a, b)[side], pages[side], LoadFlag.FEED)

    def reject(self, tag=0, **fields):
        """Send a job of one result that the core must reject because of its ``fields``."""
        names = ("m", "n", "k", "a_page", "a_pitch", "a_pages", "b_page", "b_pitch", "b_pages")
        self._header(Job(**{**dict.fromkeys(names, 1), **fields}, tag=tag))
        self.expected_results.append(ExpectedResults(tag, status=Status.REJECTED))

    def send(self, data):
        """Send any bytes."""
        self._send(data)

    def _header(self, command):
        self._send(command.pack())

    def _send(self, data):
        width = self.config.bytes_in
        for start in range(0, len(data), width):
            self.words.append(int.from_bytes(data[start : start + width], "little"))

    def _panel(self, words, page):
        """Send the words of a panel, in groups that share a stream word if they fit."""
        group, size = 1, len(words[0])
        while group * 2 * size <= self.config.bytes_in and group < min(page, PAGE_WORDS):
            group *= 2
        for first in range(0, len(words), group):
            self._send(b"".join(words[first : first + group]))

    @staticmethod
    def _c_flags(c):
        """The flags for initial sums ``c``."""
        if c is None:
            return JobFlag(0)
        return JobFlag.PRELOAD | (JobFlag.BROADCAST if len(c) == 1 else JobFlag(0))

    def _c_fields(self, c, b, page, gap):
        """The header fields for ``c``."""
        if c is None:
            return {}
        pitch = len(c) + gap
        panels = -(-b.shape[0] // self.config.cols)
        return {"c_page": page, "c_pitch": pitch, "c_pages": pitch * panels}

    def _product(self, a, b, start):
        if self.config.dtype == "int8":
            return matmul(a, b.T, start=start)
        flush = self.config.flush_subnormals
        return matmul_bf16(a, b.T, start=start, flush_subnormals=flush)

    def _epilogue(self, sums, a, flags):
        """The results of sums with the parameters loaded last, and the bytes of a result."""
        if self.config.dtype == "bf16":
            if JobFlag.CLAMP in flags:
                sums = clamp(sums, *np.array(self._columns, np.float32).T)
            if JobFlag.ROUND in flags:
                return to_bfloat16(sums).view(np.uint16), 2
            return sums.view(np.uint32), 4
        if JobFlag.REQUANTIZE not in flags:
            return sums, 4
        return self._requantize(sums, a, JobFlag.TABLE in flags), 1

    def _requantize(self, sums, a, lookup):
        bias, multiplier, shift, b_zero, zero, low, high = np.array(self._columns, np.int64).T
        if self.config.b_zero_point != "none":
            sums = sums - a.sum(axis=1, dtype=np.int64)[:, None] * b_zero
        acc, mode = (sums + bias).astype(np.int32), self.config.requantize
        if mode == "onnx":
            y = scaled(acc, scale=multiplier.astype(np.uint32).view(np.float32), mode=mode)
        else:
            y = scaled(acc, multiplier, shift, mode=mode)
        y = np.clip(y.astype(np.int64) + zero, low, high) & 255
        return np.array(self._table)[y] if lookup else y

    def _results(self, results, size):
        """The result words, as (data, mask): by tiles, rows and chunks."""
        rows, cols, lanes = self.config.rows, self.config.cols, self.config.lanes
        data, mask = bytearray(), bytearray()
        for i in range(0, results.shape[0], rows):
            for j in range(0, results.shape[1], cols):
                for row in results[i : i + rows, j : j + cols]:
                    for value in row:
                        data += (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")
                    padding = -len(row) % lanes * size
                    mask += b"\xff" * (len(row) * size) + bytes(padding)
                    data += bytes(padding)
        width = self.config.bytes_out
        for start in range(0, len(data), width):
            yield tuple(int.from_bytes(x[start : start + width], "little") for x in (data, mask))
