"""The loader stage of the cycle model: commands, the job table, the prediction, and its limits."""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from weft.commands import HEADER_BYTES, Job, JobFlag, Load, LoadFlag, Region
from weft.config import Config
from weft.cycles.array import ACTIVE, STALLED, STARVED, WORDS_IN, WORDS_OUT, FeedTimes, TileTiming
from weft.cycles.output import IdealOutput, OutputStage
from weft.cycles.repetition import OUTPUT_TO_LOADER
from weft.geometry import JobRules, memories, operands

__all__ = ["CycleLimits", "Model", "Prediction", "limits", "predict"]


CHECK_LATENCY = 3  # from a load's header to the first cycle in which the loader can take it
CONFLICT_LATENCY = 3  # from a job's last word to the first cycle in which it delays no load
RETIRE_LATENCY = 2  # from a job's last word to the first cycle in which its table entry is free
PANEL_LATENCY = 4  # from a panel's last word to the first cycle in which the panel is ready


@dataclass(frozen=True)
class Prediction:
    """The values of the counters, and the cycles in which jobs end.

    Attributes
    ----------
    cycles : int
        From the first command word taken to the last result word taken, both included; the counter
        ``busy``.
    cold : int or None
        From the first word of a load to the last result word taken; None without a load.
    active, starved, stalled : int
        The counters of the same names.
    words_in, words_out : int
        Words of the command stream and of the result stream.
    ends : list of int
        For each job the cycle in which its last word is taken; the first command word is taken in
        cycle 0.
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
    """The cycles of ``commands`` on an idle core.

    A command word is always valid, and the result stream is always ready.

    Raises ValueError for a job that no load feeds.
    """
    model = Model(config)
    jobs = [entry for entry in map(model.issue, commands) if entry]
    model.finish()
    totals = model.totals
    return Prediction(
        model.cycles, model.cold, totals[ACTIVE], totals[STARVED], totals[STALLED],
        totals[WORDS_IN], totals[WORDS_OUT], [entry.end for entry in jobs if entry.end is not None],
    )


@dataclass(eq=False)
class _Entry:
    """An entry of the job table.

    Attributes
    ----------
    job : Job
    time : int
        The cycle after which the tile generator may take it.
    rejected : bool
    feeds : list of FeedTimes or None
        For A and B; None if the operand is resident.
    end : int or None
        The cycle in which its last word is taken; None if it is not computed yet.
    """

    job: Job
    time: int
    rejected: bool
    feeds: list[FeedTimes | None] = field(default_factory=list)
    end: int | None = None

    def key(self, nonblocking):
        """The state that later commands depend on: its size, and the pages that loads check."""
        job = self.job
        pages_a = () if Region.A in nonblocking else (job.a_page, job.a_pages)
        pages_b = () if Region.B in nonblocking else (job.b_page, job.b_pages)
        if self.end is None:
            return job.m, job.n, job.k, int(job.flags), pages_a, pages_b, job.c_page, job.c_pages
        preloads = JobFlag.PRELOAD in job.flags
        return pages_a, pages_b, preloads and (job.c_page, job.c_pages)

    def conflicts(self, load):
        """Whether the load may write pages that the job uses."""
        job, operand = self.job, load.operand
        if operand == Region.A:
            begin, pages = job.a_page, job.a_pages
        elif operand in (Region.B, Region.PARAMETERS):  # parameters have the pages of B
            begin, pages = job.b_page, job.b_pages
        elif operand == Region.C:
            begin, pages = job.c_page, job.c_pages
            if JobFlag.PRELOAD not in job.flags:
                return False
        else:  # all jobs share the table
            return True
        return load.page < begin + pages and begin < load.page + load.pages


def _copy(entry):
    feeds = [feeds and FeedTimes([list(load) for load in feeds.loads]) for feeds in entry.feeds]
    return replace(entry, feeds=feeds)


class Model:
    """The core, which takes commands one after another.

    A job is computed when the next job arrives: then all loads that feed it are known.

    Parameters
    ----------
    config : Config
    nonblocking : set of Region
        Regions whose loads write only pages that no job in the table uses.
    output : type
        Class of the output stage.

    Attributes
    ----------
    totals : list of int
        Counts; `weft.cycles.array` has the indices.
    slack : Slack
    """

    def __init__(
        self, config: Config, nonblocking: Collection[Region] = (),
        output: type[OutputStage] = OutputStage,
    ):
        self._config = config
        self._nonblocking = nonblocking
        self._operands = operands(config)
        self._memories = memories(config)
        self._job_rules = JobRules(config)
        self._header_words = max(1, HEADER_BYTES // config.bytes_in)
        self._tiles = TileTiming(config, output)
        self.totals = self._tiles.totals
        self.slack = self._tiles.slack
        self._time = 0  # the next command word is taken; the clock of this stage
        self._first_load = None  # the first word of the first load was taken
        # The latest jobs; all of them except the last one are computed.
        self._table: deque = deque(maxlen=config.jobs)

    def issue(self, command: Job | Load) -> _Entry | None:
        """Take a command; returns the table entry of a job, None for a load."""
        self.totals[WORDS_IN] += self._header_words
        self._time += self._header_words
        if isinstance(command, Job):
            return self._push_job(command)
        self._load(command)
        return None

    def finish(self) -> None:
        """Compute the last job."""
        if self._table:
            self._compute(self._table[-1])

    @property
    def cycles(self) -> int:
        """From the first command word to the last result word of the computed jobs."""
        return max(self._time, self._table[-1].end + 1 if self._table else 0)

    @property
    def cold(self) -> int | None:
        """From the first word of a load to the last result word; None without a load or a job."""
        if self._first_load is None or not self._table:
            return None
        return self._table[-1].end - self._first_load + 1

    def key(self):
        """The state that later commands depend on; each time relative to the clock of its stage."""
        output, time = self._tiles.output.read, self._time
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
        return *self._tiles.key(), *entries

    def clocks(self):
        """The clock of each stage."""
        _, array, output = self._tiles.clocks()
        return self._time, array, output

    def advance(self, loader, array, output):
        """Add cycles to the times of each stage."""
        self._tiles.advance(0, array, output)
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
        table = [_copy(entry) for entry in self._table]
        return self._time, table, self._tiles.save()

    def restore(self, saved, cycles: int) -> None:
        """Return to a saved state, with ``cycles`` added to all times; the totals stay."""
        self._time, table, tiles = saved
        self._table.clear()
        self._table.extend(map(_copy, table))
        self._tiles.restore(tiles)
        self.advance(cycles, cycles, cycles)

    def _push_job(self, job):
        """Put a job in the table; the previous job has all of its loads now."""
        self.finish()
        time = self._time
        if len(self._table) == self._config.jobs:
            time = self._later(self._table[0].end + RETIRE_LATENCY)
        flags = JobFlag.FEED_A, JobFlag.FEED_B
        feeds = [FeedTimes([]) if job.flags & flag else None for flag in flags]
        entry = _Entry(job, time, self._job_rules.rejects(job), feeds)
        self._table.append(entry)
        self._time = time + 1
        return entry

    def _load(self, load):
        """Take the words of a load, as soon as no job uses the pages that it writes."""
        self._time += CHECK_LATENCY
        feeds = LoadFlag.FEED in load.flags
        # A load that feeds the last job does not wait for it.
        exempt = feeds and load.operand != Region.TABLE
        fed = self._table[-1] if exempt and self._table else None
        jobs = () if load.operand in self._nonblocking else self._table
        for entry in jobs:
            if entry is not fed and entry.conflicts(load):
                self._compute(entry)
                self._time = self._later(entry.end + CONFLICT_LATENCY)
        first = self._time + 1
        if self._first_load is None:
            self._first_load = first
        geometry = self._memories[load.operand]
        panel = -(-load.words // geometry.group) * geometry.segments
        if feeds and self._table and load.operand in (Region.A, Region.B):
            times = self._table[-1].feeds[load.operand]
            if times is not None:
                times.loads.append([first + panel - 1 + PANEL_LATENCY, panel, load.panels])
        self.totals[WORDS_IN] += panel * load.panels
        self._time = first + panel * load.panels

    def _later(self, output):
        """The later of a time of the output stage and the loader's clock."""
        return self.slack.later(OUTPUT_TO_LOADER, output, self._time)

    def _compute(self, entry):
        """Compute a job unless it is computed already; all earlier jobs are."""
        if entry.end is not None:
            return
        job = entry.job
        if entry.rejected:
            self._tiles.reject(job, entry.time)
        else:
            sizes = (job.m, job.n)
            panels = [o.panels(size) for o, size in zip(self._operands, sizes, strict=True)]
            self._check_fed(entry, panels)
            self._tiles.run(job, entry.time, entry.feeds)
        entry.end = self._tiles.output.end

    @staticmethod
    def _check_fed(entry, panels):
        """Raise ValueError for the first panel, in the order of tiles, that no load feeds."""
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


_FEEDS = JobFlag.FEED_A | JobFlag.FEED_B


@dataclass(frozen=True)
class CycleLimits:
    """Predicted cycles of the same commands on the core, and on cores with ideal parts.

    ================  ==========================================================================
    part              ideal
    ================  ==========================================================================
    load              all operands, parameters and tables are in the buffers before the start
    compute           a tile takes one array step, for any K
    drain             results leave the array and the core in the cycle in which they are ready
    ================  ==========================================================================

    No part can end earlier than its limit, so `cycles` is at least the maximum of `load`,
    `compute` and `drain`, and each of them is at least `latency`.

    Attributes
    ----------
    cycles : int
        The core as it is.
    load, compute, drain : int
        Only this part is as it is; the two others are ideal.
    latency : int
        All three parts are ideal. What remains are job headers, the time from one tile to the next,
        and pipelines.
    """

    cycles: int
    load: int
    compute: int
    drain: int
    latency: int

    @property
    def bound(self) -> str:
        """What bounds the commands: ``load``, ``compute``, ``drain`` or ``latency``.

        ``latency`` if more than half of the cycles remain when all parts are ideal; else the part
        with the highest limit.
        """
        if 2 * self.latency > self.cycles:
            return "latency"
        return max(("compute", "load", "drain"), key=lambda part: getattr(self, part))


def limits(config: Config, commands: Iterable[Job | Load]) -> CycleLimits:
    """The limits of ``commands`` on an idle core, with the rules of `weft.cycles.predict`."""
    commands = list(commands)
    one_step = [replace(c, k=1) if isinstance(c, Job) else c for c in commands]
    resident = [_resident(job) for job in commands if isinstance(job, Job)]
    both = [_resident(job) for job in one_step if isinstance(job, Job)]
    return CycleLimits(
        cycles=_cycles(config, commands),
        load=_cycles(config, one_step, ideal_output=True),
        compute=_cycles(config, resident, ideal_output=True),
        drain=_cycles(config, both),
        latency=_cycles(config, both, ideal_output=True),
    )


def _resident(job):
    return replace(job, flags=job.flags & ~_FEEDS)


def _cycles(config, commands, ideal_output=False):
    model = Model(config, output=IdealOutput) if ideal_output else Model(config)
    for command in commands:
        model.issue(command)
    model.finish()
    return model.cycles
