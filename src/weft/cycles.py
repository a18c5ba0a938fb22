"""The cycle model: how long any commands take on any Config, to the cycle."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from weft.commands import HEADER_BYTES, Job, JobFlag, Load, LoadFlag
from weft.config import Config
from weft.geometry import memories, operands
from weft.timing import CORRECTION_LATENCY, Delays

__all__ = ["Prediction", "predict"]

_ANNOUNCE = 2  # cycles from the sequencer's word of a tile to the collector's first look at it
_READY = 2  # cycles from a panel's last word to the first cycle in which a tile may use it
_STATIONS = 4  # in which a chunk may wait: buffer, collector, both of the corrector


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
        if load.operand == 3:  # the table is everybody's
            return True
        job = self.job
        # Parameters lie where B lies.
        begin, pages = (job.a_page, job.a_pages) if load.operand == 0 else (job.b_page, job.b_pages)
        return load.page < begin + pages and begin < load.page + load.pages


class _Model:
    """The stations of the pipeline, each as the cycle in which it was last at work."""

    def __init__(self, config):
        self.config = config
        self.operands = operands(config)
        self.memories = memories(config)
        self.delays = Delays.of(config)
        self.jobs = []
        self.todo = deque()
        self.tiler_end = -1  # the last tile was taken
        self.given = -config.rows  # the last step that gave results
        self.released = []  # for each tile that gave results, the cycle of its last read
        self.collector = _Collector(config, self.delays)
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
        known = 4 + sum((len(self.memories) > 2, len(self.memories) > 3))
        unknown = int(job.flags) >> known
        several = kept and (job.m > a.edge or job.n > b.edge)
        return not fits or bool(unknown) or bool(several)

    def _admit(self, load, time):
        """The cycle in which nothing stands in a load's way any more."""
        feeds = bool(load.flags & LoadFlag.FEED) and load.operand < 3
        table = self.jobs[-self.config.jobs:]
        for pushed in table[:-1] if feeds else table:
            if pushed.conflicts(load):
                time = max(time, self._finish(pushed) + 1)
        return time

    def _load(self, load, first):
        """Note when the panels of a load are ready; returns its words."""
        geometry = self.memories[load.operand]
        panel = -(-load.words // geometry.group) * geometry.segments
        if load.flags & LoadFlag.FEED and self.jobs and load.operand < 2:
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
            narrow = bool(job.flags & JobFlag.REQUANTIZE)
            pushed.end = self.collector.chunks(time + _ANNOUNCE, 1, narrow, words=1)
            self.words_out += 1
            return
        steps = -(-job.k // config.depth)
        keeps = bool(job.flags & JobFlag.KEEP)
        narrow = bool(job.flags & JobFlag.REQUANTIZE)
        chunks = 0
        for i in range(0, job.m, config.rows):
            for j in range(0, job.n, config.cols):
                start = max(time, self._ready(pushed, 0, i), self._ready(pushed, 1, j))
                self.starved += start - time
                self.active += steps
                last = start + steps - 1
                if keeps:
                    pushed.end = self.collector.chunks(last + _ANNOUNCE, 1, narrow, words=1)
                else:
                    last = self._gate(last)
                    rows, cols = min(config.rows, job.m - i), min(config.cols, job.n - j)
                    count = rows * -(-cols // config.lanes)
                    chunks += count
                    pushed.end = self.collector.chunks(last + self.delays.written, count, narrow)
                    self.released.append(self.collector.read)
                time = last + 1
        self.tiler_end = time - 1
        size = chunks * config.lanes * (1 if narrow else 4)
        self.words_out += -(-size // config.bytes_out)

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


class _Collector:
    """The way of chunks from the result buffer to the result stream.

    A chunk is read, moves on when the station before the sender or the finisher is free (with
    corrections: through two more stations, which move together), and then either is taken in some
    ``words`` cycles or goes through the finisher, which takes one a cycle. The sender takes a raw
    chunk when the finisher is empty.
    """

    def __init__(self, config, delays):
        self.words = delays.chunk_words
        self.finish = delays.finish if config.requantize != "none" else None
        self.corrected = CORRECTION_LATENCY[config.multiplier] > 0
        self.read = -1  # cycle in which the last chunk was read,
        self.left = -1  # left the collector,
        self.shown = -1  # came before the sender,
        self.gone = -1  # and left for good
        self.finished = -1  # the last one out of the finisher was taken

    def chunks(self, time, count, narrow, words=None):
        """Read chunks from ``time`` on; the cycle in which the last word is taken."""
        narrow = narrow and self.finish is not None
        words = 1 if narrow else words or self.words
        # At one pace once every station has had its first; but corrected ones are read in bursts.
        first = count if self.corrected and words > 1 else min(count, _STATIONS)
        for _ in range(first):
            self._chunk(time, narrow, words)
        more = (count - first) * words
        self.read += more
        self.left += more
        self.shown += more
        self.gone += more
        self.finished += more * narrow
        return self.finished if narrow else self.gone

    def _chunk(self, time, narrow, words):
        self.read = max(time, self.left)
        if self.corrected:
            # The stations move but while the one before the sender is held.
            self.left = self._moves(max(self.read + 1, self.shown))
            self.shown = self._moves(self.left + 1)
        else:
            self.shown = self.read
        if narrow:
            self.gone = self.shown + 1
            self.finished = self.gone + self.finish
        else:
            self.gone = max(self.shown, self.finished) + words
        if not self.corrected:
            self.left = self.gone

    def _moves(self, time):
        held = self.shown < time < self.gone
        return self.gone if held else time
