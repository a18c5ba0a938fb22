"""The cycle model: how long any commands take on any Config, to the cycle."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from weft.commands import HEADER_BYTES, Job, JobFlag, Load, LoadFlag
from weft.config import Config
from weft.geometry import operands
from weft.timing import CORRECTION_LATENCY, Delays

__all__ = ["Prediction", "predict"]

_ANNOUNCE = 2  # cycles from the sequencer's word of a tile to the collector's first look at it
_READY = 2  # cycles from a panel's last word to the first cycle in which a tile may use it


@dataclass(frozen=True)
class Prediction:
    """What the counters will have counted, and when jobs end.

    Attributes
    ----------
    cycles : int
        From the first command word taken to the last result word taken, both included: ``busy``.
    cold : int or None
        From the first word of a load to the last result word taken; None without a load.
    active, starved, stalled : int
    words_in, words_out : int
    ends : list of int
        For each job the cycle in which its last word is taken, the first command word's being 0.
    """

    cycles: int
    cold: int | None
    active: int
    starved: int
    stalled: int
    words_in: int
    words_out: int
    ends: list[int]


def predict(config: Config, commands: Iterable[Job | Load]) -> Prediction:
    """The cycles of ``commands`` on an idle core, words always offered and results always taken.

    Raises ValueError for a job that is never fed.
    """
    return _Model(config).run(commands)


@dataclass(eq=False)
class _Pushed:
    """A job in the table."""

    job: Job
    time: int  # the cycle after which the tiler may have it
    rejected: bool
    ready: list[list[int] | None] = field(default_factory=lambda: [None, None])
    end: int | None = None

    def conflicts(self, load):
        begin, pages = (
            (self.job.a_page, self.job.a_pages), (self.job.b_page, self.job.b_pages)
        )[load.operand]
        return load.page < begin + pages and begin < load.page + load.pages


class _Model:
    """The stations of the pipeline, each as the cycle in which it was last at work."""

    def __init__(self, config):
        self.config = config
        self.operands = operands(config)
        self.delays = Delays.of(config)
        self.jobs = []
        self.todo = deque()
        self.tiler_end = -1  # the last tile was taken
        self.given = -config.rows  # the last step that gave results
        self.released = []  # for each tile that gave results, the cycle of its last read
        self.collector = _Collector(self.delays, CORRECTION_LATENCY[config.multiplier])
        self.active = self.starved = self.stalled = self.words_out = 0

    def run(self, commands):
        header = max(1, HEADER_BYTES // self.config.bytes_in)
        time = words_in = 0  # the cycle in which the next word may be taken
        first_load = None
        busy = -1
        for command in commands:
            dispatch = time + header
            words_in += header
            if isinstance(command, Job):
                busy = self._push(command, dispatch)
                time = busy + 1
            else:
                first = self._admit(command, dispatch) + 1
                first_load = first if first_load is None else first_load
                words = self._load(command, first)
                words_in += words
                time = first + words
                busy = time - 1
        while self.todo:
            self._finish(self.todo[0])
        ends = [pushed.end for pushed in self.jobs]
        last = max([busy, *ends])
        cold = None if first_load is None or not ends else ends[-1] - first_load + 1
        return Prediction(
            last + 1, cold, self.active, self.starved, self.stalled, words_in, self.words_out, ends
        )

    def _push(self, job, time):
        """The cycle in which the table takes a job."""
        if len(self.jobs) >= self.config.jobs:
            time = max(time, self._finish(self.jobs[-self.config.jobs]) + 1)
        pushed = _Pushed(job, time, self._rejects(job))
        for operand, flag in enumerate((JobFlag.FEED_A, JobFlag.FEED_B)):
            if job.flags & flag:
                pushed.ready[operand] = []
        self.jobs.append(pushed)
        self.todo.append(pushed)
        return time

    def _rejects(self, job):
        a, b = self.operands
        kept = job.flags & (JobFlag.ACCUMULATE | JobFlag.KEEP)
        limits = (
            (job.m, a.pages * a.edge), (job.n, b.pages * b.edge),
            (job.k, min(a.words, b.words) * a.depth),
        )
        fits = all(0 < value <= limit for value, limit in limits)
        unknown = int(job.flags) >> len(JobFlag)
        several = kept and (job.m > a.edge or job.n > b.edge)
        return not fits or bool(unknown) or bool(several)

    def _admit(self, load, time):
        """The cycle in which nothing stands in a load's way any more."""
        feeds = bool(load.flags & LoadFlag.FEED)
        table = self.jobs[-self.config.jobs:]
        for pushed in table[:-1] if feeds else table:
            if pushed.conflicts(load):
                time = max(time, self._finish(pushed) + 1)
        return time

    def _load(self, load, first):
        """Note when the panels of a load are ready; returns its words."""
        geometry = self.operands[load.operand]
        panel = -(-load.words // geometry.group) * geometry.segments
        if load.flags & LoadFlag.FEED and self.jobs:
            ready = self.jobs[-1].ready[load.operand]
            if ready is not None:
                ready.extend(first + panel * (n + 1) - 1 + _READY for n in range(load.panels))
        return panel * load.panels

    def _finish(self, pushed):
        """The cycle in which a job ends, after those before it."""
        while pushed.end is None:
            self._compute(self.todo.popleft())
        return pushed.end

    def _compute(self, pushed):
        job, config = pushed.job, self.config
        time = max(pushed.time + 1, self.tiler_end) + 1  # the first tile may be on offer
        if pushed.rejected:
            self.tiler_end = time
            pushed.end = self.collector.chunk(time + _ANNOUNCE)
            self.words_out += 1
            return
        steps = -(-job.k // config.depth)
        keeps = bool(job.flags & JobFlag.KEEP)
        for i in range(0, job.m, config.rows):
            for j in range(0, job.n, config.cols):
                start = max(time, self._ready(pushed, 0, i), self._ready(pushed, 1, j))
                self.starved += start - time
                self.active += steps
                last = start + steps - 1
                if keeps:
                    end = self.collector.chunk(last + _ANNOUNCE)
                else:
                    last = self._gate(last)
                    rows, cols = min(config.rows, job.m - i), min(config.cols, job.n - j)
                    end = self._collect(last, rows, cols)
                time = last + 1
        self.tiler_end = time - 1
        pushed.end = end

    def _ready(self, pushed, operand, first):
        ready = pushed.ready[operand]
        if ready is None:
            return 0
        panel = first // self.operands[operand].edge
        if panel >= len(ready):
            what = f"panel {panel} of {'AB'[operand]}"
            raise ValueError(
                f"{what} must be fed to the job with tag {pushed.job.tag}, and is not"
            )
        return ready[panel]

    def _gate(self, last):
        """The last step of a tile, once its results have room and a way out."""
        full = len(self.released) - self.delays.room
        room = self.released[full] + 1 if full >= 0 else 0
        self.stalled += max(0, room - last)
        self.given = max(last, room, self.given + self.config.rows)
        return self.given

    def _collect(self, last, rows, cols):
        chunks = rows * -(-cols // self.config.lanes)
        self.words_out += chunks * self.delays.chunk_words
        end = self.collector.tile(last + self.delays.written, chunks)
        self.released.append(self.collector.read)
        return end


class _Collector:
    """The way of chunks from the result buffer to the result stream.

    A chunk is read, moves on when the station before the sender is free (with corrections: through
    two more stations, which move together), and is taken in ``words`` cycles.
    """

    def __init__(self, delays, correction):
        self.words = delays.chunk_words
        self.corrected = correction > 0
        self.read = -1  # cycle in which the last chunk was read,
        self.left = -1  # left the collector,
        self.shown = -1  # left for the sender
        self.taken = -1  # and was taken

    def tile(self, time, chunks):
        """Read ``chunks`` chunks from ``time`` on; the cycle in which the last word is taken."""
        one_by_one = self.corrected and self.words > 1
        for _ in range(chunks if one_by_one else 1):
            self.chunk(time, self.words)
        if not one_by_one:  # at one pace after the first
            self.read += (chunks - 1) * self.words
            self.left += (chunks - 1) * self.words
            self.shown += (chunks - 1) * self.words
            self.taken += (chunks - 1) * self.words
        return self.taken

    def chunk(self, time, words=1):
        """Read a chunk at ``time`` at the earliest; the cycle in which its last word is taken."""
        self.read = max(time, self.left)
        if self.corrected:
            # The stations move but while the sender has words left of the chunk before.
            self.left = self._moves(max(self.read + 1, self.shown))
            self.shown = self._moves(self.left + 1)
            self.taken = self.shown + words
        else:
            self.shown = self.read
            self.left = self.taken = self.read + words
        return self.taken

    def _moves(self, time):
        held = self.shown < time < self.taken
        return self.taken if held else time
