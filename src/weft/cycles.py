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
from weft.timing import STEP_LATENCY, Delays

__all__ = ["Prediction", "predict"]

_CHECK = 3  # cycles that a load's header is looked at before it is handed over
_RETIRED = 3  # cycles from a job's last word to the first in which no load need mind it
_ANNOUNCE = 2 + STEP_LATENCY  # from the decision on a tile's end to the collector's look at it
_LOOK = 2  # cycles from the pull of a job to its first tile's leaving the walker
_READY = 4  # cycles from a panel's last word to the first cycle in which a tile has it


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
        self.walked = -1  # the last tile left the walker,
        self.there = -1  # had its panels,
        self.queued = -1  # and left for the queue
        self.tiles = deque([-1, -1], 2)  # the last two tiles were taken out of the queue
        self.passes = deque([-1, -1], 2)  # the last two passes were taken by the sequencer
        self.kept = False  # a pass left its sums in the array: slots go on being counted,
        self.phase = 0  # the first of them in this cycle
        self.folded = config.drain == "folded"
        self.turn = self.delays.pass_rows + self.folded  # at least, from results to results
        self.given = -self.turn  # the last round that gave results began, or sums were flushed
        self.undrained = False  # there are sums in the array that somebody kept
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
                first = self._admit(command, dispatch + _CHECK) + 1
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
            time = max(time, self._finish(self.jobs[-self.config.jobs]) + 2)
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
                time = max(time, self._finish(pushed) + _RETIRED)
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
        self.walked = max(pushed.time + 1, self.there) + _LOOK - 1
        kind = Kind.of(self.delays, job.flags)
        if pushed.rejected:
            self.phase = start = self._pass([0])
            pushed.end = self.outlet.chunk(start + _ANNOUNCE, kind.ending)
            self._done(start)
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
            start = self._pass([ready for _, _, ready in part])
            if self.folded:
                start = self._unfold(start, JobFlag.ACCUMULATE in job.flags)
            self.active += steps * len(part)
            last = start + (rounds - 1) * self.slots  # the last round begins
            self.kept = self.undrained = JobFlag.KEEP in job.flags
            if self.kept:
                for slot in range(len(part)):
                    pushed.end = self.outlet.chunk(last + slot + _ANNOUNCE, kind.ending)
            else:
                last = self._gate(last)
                chunks += self._drain(pushed, part, last + self.slots - 1, kind)
            self.phase = last
            self._done(last + self.slots - 1)
        self.words_out += -(-chunks * config.lanes * kind.bytes // config.bytes_out)

    def _pass(self, ready):
        """First step of a pass of tiles, of which each has its panels from a cycle on.

        With one slot the pass is the tile, and is taken when it has been computed; else its tiles
        are gathered, while the pass before is computed.
        """
        before, last = self.passes
        for there in ready:
            offered = self._offer(there)
            if self.slots == 1:
                return offered
            self.tiles.append(max(offered, before + 1))
        start = max(self.tiles[-1] + 1, last + 1)
        if self.kept:
            start += (self.phase - start) % self.slots
        return start

    def _unfold(self, start, accumulates):
        """The first step, where results leave through the sums: the ones before, or kept ones."""
        start = max(start, self.given + self.turn)
        if self.undrained and not accumulates:
            self.given = start + 1
            start = self.given + self.turn
        return start

    def _offer(self, ready):
        """The cycle from which on the next tile is on offer: through walker, station and queue."""
        second, first = self.tiles
        self.walked = max(self.walked, self.queued) + 1
        self.there = max(self.walked + 1, ready)
        self.starved += max(0, self.there - max(self.walked, first) - 1)
        self.queued = max(self.there, second + 1)
        return max(self.queued, first) + 1

    def _done(self, end):
        """The sequencer is done with a pass."""
        self.passes.append(end)
        if self.slots == 1:
            self.tiles.append(end)

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
        self.given = last + self._turns(max(room, self.given + self.turn) - last)
        return self.given

    def _turns(self, cycles):
        """``cycles``, if there are any, as whole turns of all slots."""
        return max(0, -(-cycles // self.slots)) * self.slots
