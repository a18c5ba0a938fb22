"""Commands in the cycle model: loads, the table of jobs, and what all of them take."""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from weft.commands import HEADER_BYTES, Job, JobFlag, Load, LoadFlag, Region, supported_flags
from weft.config import Config
from weft.cycles.array import ACTIVE, STALLED, STARVED, WORDS_IN, WORDS_OUT
from weft.cycles.repetition import OUTPUT_TO_LOADER
from weft.cycles.tiles import Feeds, TileTiming
from weft.geometry import memories, operands

__all__ = ["Model", "Prediction", "predict"]

CHECK = 3  # cycles from a load's header to the first cycle in which it can be handed over
RETIRED = 3  # cycles from a job's last word to the first in which it cannot delay a load
FREED = 2  # cycles from a job's last word to the first in which the table has its place free
READY = 4  # cycles from a panel's last word to the first cycle in which a tile has it


@dataclass(frozen=True)
class Prediction:
    """What the counters count, and when jobs end.

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

    It computes times, not sums.

    Raises ValueError for a job that is never fed.
    """
    model = Model(config)
    jobs = [entry for entry in map(model.take, commands) if entry]
    model.settle()
    totals = model.totals
    return Prediction(
        model.cycles, model.cold, totals[ACTIVE], totals[STARVED], totals[STALLED],
        totals[WORDS_IN], totals[WORDS_OUT], [entry.end for entry in jobs],
    )


@dataclass(eq=False)
class _Entry:
    """A job in the table.

    Attributes
    ----------
    time : int
        The cycle after which the tile generator may take it.
    fed : list of Feeds or None
        For A and B; None if the operand is resident.
    end : int or None
        The cycle in which its last word is taken; None if it has not been computed yet.
    """

    job: Job
    time: int
    rejected: bool
    feeds: list[Feeds | None] = field(default_factory=list)
    end: int | None = None

    def key(self, nonblocking):
        """What of it other commands depend on: its size, and pages where loads wait for it."""
        job = self.job
        pages_a = () if Region.A in nonblocking else (job.a_page, job.a_pages)
        pages_b = () if Region.B in nonblocking else (job.b_page, job.b_pages)
        if self.end is None:
            return job.m, job.n, job.k, int(job.flags), pages_a, pages_b, job.c_page, job.c_pages
        preloads = JobFlag.PRELOAD in job.flags
        return pages_a, pages_b, preloads and (job.c_page, job.c_pages)

    def conflicts(self, load):
        """Whether the load may write what the job uses."""
        job, operand = self.job, load.operand
        if operand == Region.A:
            begin, pages = job.a_page, job.a_pages
        elif operand in (Region.B, Region.PARAMETERS):  # parameters lie where B lies
            begin, pages = job.b_page, job.b_pages
        elif operand == Region.C:
            begin, pages = job.c_page, job.c_pages
            if JobFlag.PRELOAD not in job.flags:
                return False
        else:  # all jobs share the table
            return True
        return load.page < begin + pages and begin < load.page + load.pages


def _copied(entry):
    feeds = [feeds and Feeds([list(load) for load in feeds.loads]) for feeds in entry.feeds]
    return replace(entry, feeds=feeds)


class Model:
    """The core: it takes commands one by one.

    Parameters
    ----------
    config : Config
    nonblocking : set of Region
        What is only loaded to pages that no job in the table uses.

    Attributes
    ----------
    totals : list of int
        What is counted: `weft.cycles.array` has the indices.
    margins : Margins
    """

    def __init__(self, config: Config, nonblocking: Collection[Region] = ()):
        self._config = config
        self._nonblocking = nonblocking
        self._operands = operands(config)
        self._memories = memories(config)
        self._known = supported_flags(config)
        self._header = max(1, HEADER_BYTES // config.bytes_in)
        self._pipeline = TileTiming(config)
        self.totals = self._pipeline.totals
        self.margins = self._pipeline.margins
        self._time = 0  # the next command word is taken
        self._first_load = None  # the first word of a load was taken
        self._table = deque(maxlen=config.jobs)  # the last jobs, of which all but one are computed

    def take(self, command: Job | Load) -> _Entry | None:
        """Take a command; a job's entry in the table."""
        self.totals[WORDS_IN] += self._header
        self._time += self._header
        if isinstance(command, Job):
            return self._push(command)
        self._load(command)
        return None

    def settle(self) -> None:
        """Compute the last job."""
        if self._table:
            self._compute(self._table[-1])

    @property
    def cycles(self) -> int:
        """From the first command word to the last result word, of what is settled."""
        return max(self._time, self._table[-1].end + 1 if self._table else 0)

    @property
    def cold(self) -> int | None:
        """From the first word of a load to the last result word; None without a load or a job."""
        if self._first_load is None or not self._table:
            return None
        return self._table[-1].end - self._first_load + 1

    def key(self):
        """All that later commands depend on: times are relative to those of their stations."""
        output, time = self._pipeline.output.read, self._time
        entries = []
        for entry in self._table:
            if entry.end is None:
                loads = [
                    feeds and tuple((first - time, *rest) for first, *rest in feeds.loads)
                    for feeds in entry.feeds
                ]
                entries.append((entry.key(self._nonblocking), entry.time - time, *loads))
            else:
                entries.append((entry.key(self._nonblocking), entry.end - output))
        return *self._pipeline.key(), *entries

    def clocks(self):
        _, array, output = self._pipeline.clocks()
        return self._time, array, output

    def advance(self, loader, array, output):
        self._pipeline.advance(0, array, output)
        self._time += loader
        for entry in self._table:
            if entry.end is not None:
                entry.end += output
                continue
            entry.time += loader
            for feeds in entry.feeds:
                if feeds:
                    feeds.advance(loader)

    def save(self):
        """The state, for `restore`."""
        table = [_copied(entry) for entry in self._table]
        return self._time, table, self._pipeline.save()

    def restore(self, saved, cycles: int) -> None:
        """Take a state that was saved, with ``cycles`` added to all times; totals stay."""
        self._time, table, pipeline = saved
        self._table.clear()
        self._table.extend(map(_copied, table))
        self._pipeline.restore(pipeline)
        self.advance(cycles, cycles, cycles)

    def _push(self, job):
        """Put a job in the table; the one before it has all of its loads."""
        self.settle()
        time = self._time
        if len(self._table) == self._config.jobs:
            time = self._later(self._table[0].end + FREED)
        fed = [Feeds([]) if job.flags & f else None for f in (JobFlag.FEED_A, JobFlag.FEED_B)]
        entry = _Entry(job, time, self._rejects(job), fed)
        self._table.append(entry)
        self._time = time + 1
        return entry

    def _rejects(self, job):
        a, b = self._operands
        kept = job.flags & (JobFlag.ACCUMULATE | JobFlag.KEEP)
        limits = (
            (job.m, a.pages * a.edge), (job.n, b.pages * b.edge),
            (job.k, min(a.words, b.words) * a.depth),
        )
        fits = all(0 < value <= limit for value, limit in limits)
        unknown = int(job.flags) & ~int(self._known)
        several = kept and (job.m > a.edge or job.n > self._pipeline.latencies.slots * b.edge)
        both = JobFlag.ACCUMULATE in job.flags and JobFlag.PRELOAD in job.flags
        return not fits or bool(unknown) or bool(several) or both

    def _load(self, load):
        """Write a load, when no job uses what it writes."""
        self._time += CHECK
        feeds = LoadFlag.FEED in load.flags
        # A load that feeds the last job does not wait for it.
        own = feeds and load.operand != Region.TABLE
        skipped = self._table[-1] if own and self._table else None
        jobs = () if load.operand in self._nonblocking else self._table
        for entry in jobs:
            if entry is not skipped and entry.conflicts(load):
                self._compute(entry)
                self._time = self._later(entry.end + RETIRED)
        first = self._time + 1
        if self._first_load is None:
            self._first_load = first
        geometry = self._memories[load.operand]
        panel = -(-load.words // geometry.group) * geometry.segments
        if feeds and self._table and load.operand in (Region.A, Region.B):
            fed = self._table[-1].feeds[load.operand]
            if fed is not None:
                fed.loads.append([first + panel - 1 + READY, panel, load.panels])
        self.totals[WORDS_IN] += panel * load.panels
        self._time = first + panel * load.panels

    def _later(self, output):
        return self.margins.later(OUTPUT_TO_LOADER, output, self._time)

    def _compute(self, entry):
        """Compute a job, if it is not yet: those before it are."""
        if entry.end is not None:
            return
        job = entry.job
        if entry.rejected:
            self._pipeline.reject(job, entry.time)
        else:
            sizes = (job.m, job.n)
            panels = [o.panels(size) for o, size in zip(self._operands, sizes, strict=True)]
            self._check_fed(entry, panels)
            self._pipeline.run(job, entry.time, entry.feeds)
        entry.end = self._pipeline.output.end

    @staticmethod
    def _check_fed(entry, panels):
        """Raise ValueError for the first panel, in the order of tiles, that no load brings."""
        a, b = (
            None if feeds is None or feeds.panels >= wanted else feeds.panels
            for feeds, wanted in zip(entry.feeds, panels, strict=True)
        )
        if a is not None and (a == 0 or b is None):
            missing = f"panel {a} of A"
        elif b is not None:
            missing = f"panel {b} of B"
        else:
            return
        raise ValueError(
            f"{missing} must be fed to the job with tag {entry.job.tag}, and is not"
        )
