"""A transport with a core of numpy behind it: command bytes in, what hardware would answer out."""

import struct
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from weft.commands import HEADER_BYTES, VERSION, Job, JobFlag, Load, LoadFlag, Opcode, Status
from weft.config import PAGE_WORDS, Config
from weft.geometry import operands
from weft.golden import matmul
from weft.host.transport import Packet, TransportClosed, TransportError, TransportTimeout
from weft.registers import COUNTERS, describe

__all__ = ["GoldenTransport"]

_ALL_FLAGS = JobFlag.FEED_A | JobFlag.FEED_B | JobFlag.ACCUMULATE | JobFlag.KEEP
_UNSETTLED = 256  # batches whose cycles nobody has asked for yet, at most


@dataclass(eq=False)  # found by identity: two jobs may be alike
class _Waiting:
    """A job in the queue, and the panels of A and of B that it still waits for."""

    job: Job
    rejected: bool
    missing: list[int] = field(default_factory=lambda: [0, 0])
    loads: list[Load] = field(default_factory=list)

    @property
    def ready(self):
        return self.rejected or self.missing == [0, 0]


class GoldenTransport:
    """The `Transport` to a core that is exact and takes no time; its cycles are the cycle model's.

    What the core leaves undefined (a load outside the buffer, sums handed on by more than one
    tile) is refused with `TransportError`.
    """

    def __init__(self, config: Config):
        self._config = config
        self._operands = operands(config)
        self._memory = [np.zeros((o.words, o.edge, o.depth), np.int8) for o in self._operands]
        self._kept = np.zeros((config.rows, config.cols), np.int32)
        self._stream = bytearray()
        self._jobs = deque()
        self._latest = None
        self._packets = deque()
        self._batch = []
        self._batches = []
        self._counters = dict.fromkeys(COUNTERS, 0)
        self._closed = False

    def send(self, commands: bytes) -> None:
        self._check_open()
        self._counters["words_in"] += len(commands) // self._config.bytes_in
        self._stream += commands
        self._run()

    def receive(self, timeout: float) -> Packet:
        self._check_open()
        if not self._packets:
            raise TransportTimeout(f"results must come within {timeout:g} s, not later")
        return self._packets.popleft()

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        self._check_open()
        self._settle()
        words = describe(self._config) + [value % (1 << 32) for value in self._counters.values()]
        if not 0 <= address <= address + count <= len(words):
            span = f"{address}..{address + count - 1}"
            raise TransportError(f"registers read must lie in 0..{len(words) - 1}, not {span}")
        return words[address : address + count]

    def abort(self, timeout: float) -> None:
        self._check_open()
        if self._jobs:  # a job that is ready has ended already, so the oldest one waits
            self._answer(self._jobs.popleft().job.tag, Status.ABORTED)
            self._run()

    def close(self) -> None:
        self._closed = True

    def _check_open(self):
        if self._closed:
            raise TransportClosed("the transport must be open, not closed")

    def _run(self):
        """Go on for as long as there is a job to end or a command to take."""
        while self._end_job() or self._take_command():
            pass
        if not self._jobs and not self._stream and self._batch:
            self._batches.append(self._batch)
            self._batch = []
            if len(self._batches) > _UNSETTLED:
                self._settle()

    def _settle(self):
        """Count the cycles of what has run since the last time."""
        from weft.cycles import predict

        for batch in self._batches:
            prediction = predict(self._config, batch)
            self._counters["busy"] += prediction.cycles
            for name in ("active", "starved", "stalled"):
                self._counters[name] += getattr(prediction, name)
        self._batches.clear()

    def _take_command(self):
        """Take the next command if all of it is here and nothing holds it; say whether."""
        size = max(HEADER_BYTES, self._config.bytes_in)
        if len(self._stream) < size:
            return False
        header = bytes(self._stream[:HEADER_BYTES])
        if header[1] == VERSION and header[0] == Opcode.JOB:
            if len(self._jobs) == self._config.jobs:
                return False
            self._queue(Job.unpack(header), destination=struct.unpack_from("<H", header, 6)[0])
        elif header[1] == VERSION and header[0] == Opcode.LOAD:
            load = Load.unpack(header)
            end = size + self._payload_bytes(load)
            if len(self._stream) < end or not self._may_load(load):
                return False
            self._load(load, self._stream[size:end])
            size = end
        else:
            self._counters["errors"] += 1
        del self._stream[:size]
        return True

    def _queue(self, job, destination):
        a, b = self._operands
        limits = (a.pages * a.edge, b.pages * b.edge, min(a.words, b.words) * a.depth)
        sizes = (job.m, job.n, job.k)
        rejected = (
            any(not 0 < size <= limit for size, limit in zip(sizes, limits, strict=True))
            or destination != 0
            or bool(int(job.flags) & ~int(_ALL_FLAGS))
        )
        self._latest = _Waiting(job, rejected)
        if not rejected:
            for side, flag in enumerate((JobFlag.FEED_A, JobFlag.FEED_B)):
                if flag in job.flags:
                    self._latest.missing[side] = self._operands[side].panels(sizes[side])
        self._jobs.append(self._latest)

    def _payload_bytes(self, load):
        if load.operand > 1:
            raise TransportError(f"a load's operand must be 0 or 1, not {load.operand}")
        operand = self._operands[load.operand]
        return load.panels * -(-load.words // operand.group) * operand.segments * operand.stream

    def _may_load(self, load):
        """Whether no job yet to run, but for the one that the load feeds, uses a page of it."""
        pages = range(load.page, load.page + load.pages)
        for waiting in self._jobs:
            if waiting.rejected or (LoadFlag.FEED in load.flags and waiting is self._latest):
                continue
            job = waiting.job
            first, span = ((job.a_page, job.a_pages), (job.b_page, job.b_pages))[load.operand]
            if max(first, pages.start) < min(first + span, pages.stop):
                return False
        return True

    def _load(self, load, payload):
        operand, memory = self._operands[load.operand], self._memory[load.operand]
        if load.page + load.pages > operand.pages or load.words > load.pitch * PAGE_WORDS:
            raise TransportError(
                f"a load must lie within {operand.pages} pages, not {load.panels} panels of "
                f"{load.words} words every {load.pitch} pages from page {load.page} on"
            )
        lines = np.frombuffer(bytes(payload), np.int8)
        lines = lines.reshape(load.panels, -1, operand.segments * operand.stream)
        words = lines[:, :, : operand.group * operand.word_bytes]
        words = words.reshape(load.panels, -1, operand.edge, operand.depth)
        for panel in range(load.panels):
            start = (load.page + panel * load.pitch) * PAGE_WORDS
            memory[start : start + load.words] = words[panel, : load.words]
        if LoadFlag.FEED in load.flags and self._latest in self._jobs:
            missing = self._latest.missing
            missing[load.operand] = max(0, missing[load.operand] - load.panels)
            self._latest.loads.append(load)
        else:
            self._batch.append(load)

    def _end_job(self):
        """End the oldest job if it has all that it was promised; say whether."""
        if not self._jobs or not self._jobs[0].ready:
            return False
        waiting = self._jobs.popleft()
        job = waiting.job
        if waiting.rejected:
            self._answer(job.tag, Status.REJECTED)
            return True
        self._batch += [job, *waiting.loads]
        a = self._operand(0, job.m, job.k, job.a_page, job.a_pitch)
        b = self._operand(1, job.n, job.k, job.b_page, job.b_pitch)
        handed_on = job.flags & (JobFlag.ACCUMULATE | JobFlag.KEEP)
        if handed_on and (job.m > self._config.rows or job.n > self._config.cols):
            text = f"a job with {handed_on.name} must be one tile, not {job.m} x {job.n}"
            raise TransportError(text)
        start = self._kept[: job.m, : job.n] if JobFlag.ACCUMULATE in job.flags else None
        sums = matmul(a, b.T, start=start)
        if JobFlag.KEEP in job.flags:
            self._kept[: job.m, : job.n] = sums
            self._counters["finished"] += 1
        else:
            self._answer(job.tag, Status(0), self._layout(sums))
        return True

    def _operand(self, side, size, k, page, pitch):
        """[size, k] values out of the buffer."""
        operand = self._operands[side]
        words = operand.panel_words(k)
        starts = [(page + i * pitch) * PAGE_WORDS for i in range(operand.panels(size))]
        if starts[-1] + words > operand.words:
            raise TransportError(
                f"a job's operand must lie within {operand.words} words, not {starts[-1] + words}"
            )
        panels = [self._memory[side][start : start + words] for start in starts]
        # panel, word, edge, depth -> panel, edge, word, depth
        stacked = np.stack(panels).transpose(0, 2, 1, 3)
        return stacked.reshape(len(panels) * operand.edge, -1)[:size, :k]

    def _layout(self, sums):
        """Results in the order of the stream: tile by tile, its rows cut into padded chunks."""
        config, out = self._config, []
        for i in range(0, sums.shape[0], config.rows):
            for j in range(0, sums.shape[1], config.cols):
                tile = sums[i : i + config.rows, j : j + config.cols]
                padding = -tile.shape[1] % config.lanes
                out.append(np.pad(tile, ((0, 0), (0, padding))).astype("<i4").tobytes())
        return b"".join(out)

    def _answer(self, tag, status, data=None):
        # The one word of a job that ended without results carries none.
        data = bytes(self._config.bytes_out) if data is None else data
        self._packets.append(Packet(tag, True, status, data))
        self._counters["words_out"] += len(data) // self._config.bytes_out
        self._counters["finished"] += 1
