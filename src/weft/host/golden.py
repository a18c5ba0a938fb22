"""A transport with a core of numpy behind it: command bytes in, what hardware would answer out."""

import struct
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from weft.commands import HEADER_BYTES, VERSION, Job, JobFlag, Load, LoadFlag, Opcode, Status
from weft.config import Config
from weft.geometry import memories
from weft.golden import activate, add_bias, matmul, scaled
from weft.host.packing import ENTRY
from weft.host.transport import Packet, TransportClosed, TransportError, TransportTimeout
from weft.registers import COUNTERS, describe

__all__ = ["GoldenTransport"]

_FEEDS = (JobFlag.FEED_A, JobFlag.FEED_B)
_PARAMETERS, _TABLE = 2, 3
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

    What the core leaves undefined (a load outside the buffer, parameters that are none) is refused
    with `TransportError`.
    """

    def __init__(self, config: Config):
        self._config = config
        self._operands = memories(config)
        self._memory = [np.zeros((o.words, o.edge, o.depth), np.int8) for o in self._operands]
        self._flags = JobFlag.ACCUMULATE | JobFlag.KEEP | _FEEDS[0] | _FEEDS[1]
        for flag, _ in zip((JobFlag.REQUANTIZE, JobFlag.TABLE), self._operands[2:], strict=False):
            self._flags |= flag
        self._kept = np.zeros((config.rows, config.cols), np.int32)
        self._kept_rows = np.zeros(config.rows, np.int64)  # sums of the rows of A
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
            if self._possible(load):
                end = size + self._payload_bytes(load)
                if len(self._stream) < end or not self._may_load(load):
                    return False
                self._load(load, self._stream[size:end])
                size = end
            else:
                self._counters["errors"] += 1
        else:
            self._counters["errors"] += 1
        del self._stream[:size]
        return True

    def _queue(self, job, destination):
        a, b = self._operands[:2]
        limits = (a.pages * a.edge, b.pages * b.edge, min(a.words, b.words) * a.depth)
        sizes = (job.m, job.n, job.k)
        handed_on = bool(job.flags & (JobFlag.ACCUMULATE | JobFlag.KEEP))
        rejected = (
            any(not 0 < size <= limit for size, limit in zip(sizes, limits, strict=True))
            or destination != 0
            or bool(int(job.flags) & ~int(self._flags))
            or handed_on and (job.m > a.edge or job.n > b.edge)
        )
        self._latest = _Waiting(job, rejected)
        if not rejected:
            for side, flag in enumerate(_FEEDS):
                if flag in job.flags:
                    self._latest.missing[side] = self._operands[side].panels(sizes[side])
        self._jobs.append(self._latest)

    def _possible(self, load):
        """Whether the header is one of a load at all."""
        known = load.operand < len(self._operands)
        pages, words = (max(getattr(o, of) for o in self._operands) for of in ("pages", "words"))
        return known and 0 < load.panels <= pages and 0 < load.words <= words

    def _payload_bytes(self, load):
        operand = self._operands[load.operand]
        return load.panels * -(-load.words // operand.group) * operand.segments * operand.stream

    def _may_load(self, load):
        """Whether no job yet to run, but for the one that the load feeds, uses a page of it."""
        if load.operand == _TABLE:  # it is everybody's
            return not self._jobs
        pages = range(load.page, load.page + load.pages)
        for waiting in self._jobs:
            if waiting.rejected or (LoadFlag.FEED in load.flags and waiting is self._latest):
                continue
            job = waiting.job
            # Parameters lie where B lies.
            first, span = (job.b_page, job.b_pages) if load.operand else (job.a_page, job.a_pages)
            if max(first, pages.start) < min(first + span, pages.stop):
                return False
        return True

    def _load(self, load, payload):
        operand, memory = self._operands[load.operand], self._memory[load.operand]
        if load.page + load.pages > operand.pages or load.words > load.pitch * operand.page:
            raise TransportError(
                f"a load must lie within {operand.pages} pages, not {load.panels} panels of "
                f"{load.words} words every {load.pitch} pages from page {load.page} on"
            )
        lines = np.frombuffer(bytes(payload), np.int8)
        lines = lines.reshape(load.panels, -1, operand.segments * operand.stream)
        words = lines[:, :, : operand.group * operand.word_bytes]
        words = words.reshape(load.panels, -1, operand.edge, operand.depth)
        for panel in range(load.panels):
            start = (load.page + panel * load.pitch) * operand.page
            memory[start : start + load.words] = words[panel, : load.words]
        if LoadFlag.FEED in load.flags and self._latest in self._jobs:
            missing = self._latest.missing
            if load.operand < _PARAMETERS:
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
        carries_on = JobFlag.ACCUMULATE in job.flags
        sums = matmul(a, b.T, start=self._kept[: job.m, : job.n] if carries_on else None)
        rows = a.sum(1, dtype=np.int64) + (self._kept_rows[: job.m] if carries_on else 0)
        if JobFlag.KEEP in job.flags:
            self._kept[: job.m, : job.n], self._kept_rows[: job.m] = sums, rows
            self._counters["finished"] += 1
        elif JobFlag.REQUANTIZE in job.flags:
            self._answer(job.tag, Status(0), self._layout(self._finish(job, sums, rows)))
        else:
            self._answer(job.tag, Status(0), self._layout(sums))
        return True

    def _finish(self, job, sums, rows):
        """Sums to bytes, by the parameters of B's panels and the table."""
        config, geometry = self._config, self._operands[_PARAMETERS]
        starts = [
            (job.b_page + panel * job.b_pitch) * geometry.page
            for panel in range(-(-job.n // config.cols))
        ]
        chunks = -(-config.cols // config.lanes)
        entries = np.concatenate([
            self._memory[_PARAMETERS][start : start + chunks].view(ENTRY).reshape(-1)[: config.cols]
            for start in starts
        ])[: job.n]
        acc = add_bias(sums, entries["bias"])
        if config.b_zero_point != "none":
            zero = entries["b_zero"].astype(np.int64)
            acc = (acc - rows[:, None] * zero).astype(np.int32)  # wraps
        given = {"multiplier": entries["multiplier"], "shift": entries["shift"]}
        if config.requantize == "onnx":
            given = {"scale": entries["multiplier"].view(np.float32)}
        try:
            y = scaled(acc, **given, mode=config.requantize).astype(np.int64) + entries["zero"]
        except ValueError as error:
            raise TransportError(f"of a job's parameters, {error}") from error
        y = np.clip(y, entries["low"], entries["high"]).astype(np.uint8)
        return activate(y, self._memory[_TABLE].reshape(-1)) if JobFlag.TABLE in job.flags else y

    def _operand(self, side, size, k, page, pitch):
        """[size, k] values out of the buffer."""
        operand = self._operands[side]
        words = operand.panel_words(k)
        starts = [(page + i * pitch) * operand.page for i in range(operand.panels(size))]
        if starts[-1] + words > operand.words:
            raise TransportError(
                f"a job's operand must lie within {operand.words} words, not {starts[-1] + words}"
            )
        panels = [self._memory[side][start : start + words] for start in starts]
        # panel, word, edge, depth -> panel, edge, word, depth
        stacked = np.stack(panels).transpose(0, 2, 1, 3)
        return stacked.reshape(len(panels) * operand.edge, -1)[:size, :k]

    def _layout(self, results):
        """Results in the order of the stream: tile by tile, its rows cut into padded chunks."""
        config, out = self._config, []
        for i in range(0, results.shape[0], config.rows):
            for j in range(0, results.shape[1], config.cols):
                tile = results[i : i + config.rows, j : j + config.cols]
                padding = -tile.shape[1] % config.lanes
                tile = np.pad(tile, ((0, 0), (0, padding)))
                out.append(tile.astype(tile.dtype.newbyteorder("<")).tobytes())
        data = b"".join(out)
        return data + bytes(-len(data) % config.bytes_out)

    def _answer(self, tag, status, data=None):
        # The one word of a job that ended without results carries none.
        data = bytes(self._config.bytes_out) if data is None else data
        self._packets.append(Packet(tag, True, status, data))
        self._counters["words_out"] += len(data) // self._config.bytes_out
        self._counters["finished"] += 1
