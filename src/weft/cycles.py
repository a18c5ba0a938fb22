"""The cycle model: how long any commands take on any Config, to the cycle."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from weft.commands import (
    HEADER_BYTES,
    Job,
    JobFlag,
    Load,
    LoadFlag,
    Region,
    known,
)
from weft.config import Config
from weft.geometry import memories, operands
from weft.outlet import Kind, Outlet
from weft.timing import Delays

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

    No sums are kept in it.

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
        if load.operand == Region.TABLE:  # it is everybody's
            return True
        job = self.job
        if load.operand == Region.C and JobFlag.PRELOAD not in job.flags:
            return False
        begin, pages = {
            Region.A: (job.a_page, job.a_pages),
            Region.B: (job.b_page, job.b_pages),
            Region.PARAMETERS: (job.b_page, job.b_pages),  # they lie where B lies
            Region.C: (job.c_page, job.c_pages),
        }[load.operand]
        return load.page < begin + pages and begin < load.page + load.pages


class _Model:
    """The stations of the pipeline, each as the cycle in which it was last at work."""

    def __init__(self, config):
        self.config = config
        self.operands = operands(config)
        self.memories = memories(config)
        self.delays = Delays.of(config)
        self.slots = self.delays.slots
        self.known = known(config)
        self.jobs = []
        self.todo = deque()
        self.tiler_end = -1  # the last tile was taken
        self.passes = deque([-1, -1], 2)  # the last two passes were taken by the sequencer
        self.kept = False  # a pass left its sums in the array: slots go on being counted,
        self.phase = 0  # the first of them in this cycle
        self.given = -self.delays.pass_rows  # the last round that gave results began
        self.released = []  # for each pass that gave results, the cycle of its last read
        self.outlet = Outlet(config, self.delays)
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
        unknown = int(job.flags) & ~int(self.known)
        several = kept and (job.m > a.edge or job.n > self.delays.slots * b.edge)
        both = JobFlag.ACCUMULATE in job.flags and JobFlag.PRELOAD in job.flags
        return not fits or bool(unknown) or bool(several) or both

    def _admit(self, load, time):
        """The cycle in which nothing stands in a load's way any more."""
        feeds = bool(load.flags & LoadFlag.FEED) and load.operand != Region.TABLE
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
        kind = Kind.of(self.delays, job.flags)
        if pushed.rejected:
            self.phase = start = self._gather([time], time)[0]
            pushed.end = self.outlet.chunk(start + _ANNOUNCE, kind.ending)
            self._taken(start)
            self.words_out += 1
            return
        tiles = [
            (min(config.rows, job.m - i), min(config.cols, job.n - j),
             max(self._ready(pushed, 0, i), self._ready(pushed, 1, j)))
            for i in range(0, job.m, config.rows) for j in range(0, job.n, config.cols)
        ]
        rounds = steps = -(-job.k // config.depth)
        if JobFlag.PRELOAD in job.flags and JobFlag.BROADCAST not in job.flags:
            rounds += config.rows
        chunks = 0
        for first in range(0, len(tiles), self.slots):
            part = tiles[first : first + self.slots]
            start, time = self._gather([ready for _, _, ready in part], time)
            self.active += steps * len(part)
            last = start + (rounds - 1) * self.slots  # the last round begins
            self.kept = JobFlag.KEEP in job.flags
            if self.kept:
                for slot in range(len(part)):
                    pushed.end = self.outlet.chunk(last + slot + _ANNOUNCE, kind.ending)
            else:
                last = self._gate(last)
                chunks += self._drain(pushed, part, last + self.slots - 1, kind)
            self.phase = last
            self._taken(last + self.slots - 1)
            time = time or last + 1
        self.words_out += -(-chunks * config.lanes * kind.bytes // config.bytes_out)

    def _gather(self, ready, time):
        """First step of a pass of tiles, and the cycle in which the next tile may be taken.

        The first of them is at the tiler's end at ``time``. With one slot the pass is the tile,
        and is taken when it has been computed.
        """
        before, last = self.passes
        if self.slots == 1:
            start = max(time, ready[0])
            self.starved += start - time
            return start, None
        for there in ready:
            self.starved += max(0, there - time)
            self.tiler_end = max(time, there, before + 1)
            time = self.tiler_end + 1
        start = max(time, last + 1)
        if self.kept:
            start += (self.phase - start) % self.slots
        return start, time

    def _taken(self, end):
        """The sequencer is done with a pass."""
        self.passes.append(end)
        if self.slots == 1:
            self.tiler_end = end

    def _drain(self, pushed, tiles, end, kind):
        """The chunks of a pass of which the last step was at ``end``."""
        written, total = end + self.delays.written, 0
        for slot, (rows, cols, _) in enumerate(tiles):
            count = -(-cols // self.config.lanes)
            total += rows * count
            if self.slots == 1:
                pushed.end = self.outlet.chunks(written, rows * count, kind)
                continue
            for row in range(rows):
                there = written + row * self.slots + slot
                for _ in range(count):
                    pushed.end = self.outlet.chunk(there, kind)
        self.released.append(self.outlet.read)
        return total

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
        """The start of the last round, once its results have room and a way out."""
        full = len(self.released) - self.delays.room
        room = self.released[full] + 1 if full >= 0 else 0
        self.stalled += self._turns(room - last)
        self.given = last + self._turns(max(room, self.given + self.delays.pass_rows) - last)
        return self.given

    def _turns(self, cycles):
        """``cycles``, if there are any, as whole turns of all slots."""
        return max(0, -(-cycles // self.slots)) * self.slots
