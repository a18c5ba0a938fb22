"""Transports that answer at once: a golden core, and products as lists of a network core."""

import dataclasses
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from weft.commands import HEADER_BYTES, Job, JobFlag, Load, LoadFlag, Region, Status
from weft.config import Config
from weft.design import PRODUCT
from weft.geometry import JobRules
from weft.host.golden_core import CORES, GoldenCore, IntegerCore
from weft.host.list_products import ListProducts
from weft.host.transport import Command, Packet, TransportClosed, TransportError, TransportTimeout
from weft.network_core.config import NetworkCoreConfig
from weft.registers import COUNTERS, REGISTERS, describe

__all__ = ["EmulatedTransport", "GoldenTransport", "ListTransport", "product_config"]

_FEEDS = (JobFlag.FEED_A, JobFlag.FEED_B)
_CYCLES = frozenset({"busy", "active", "starved", "stalled"})  # counters of cycles


@dataclass(eq=False)  # compared by identity: two jobs may be equal
class _PendingJob:
    """A job in the queue, and the number of panels of A and of B that it waits for."""

    job: Job
    rejected: bool
    missing: list[int] = field(default_factory=lambda: [0, 0])
    loads: list[Load] = field(default_factory=list)

    @property
    def ready(self):
        return self.rejected or self.missing == [0, 0]


class EmulatedTransport:
    """A `Transport` to a core whose commands `GoldenCore` executes. A subclass counts the cycles.

    `TransportError` reports commands whose effect on a core is undefined: a load outside the
    buffer, or invalid parameters.

    Parameters
    ----------
    core : GoldenCore
        Its Config is the one that the registers describe.
    """

    fresh = True

    def __init__(self, core: GoldenCore):
        self._core = core
        self._config = core.config
        self._operands = core.memories
        self._job_rules = JobRules(core.config)
        self._header_bytes = max(HEADER_BYTES, self._config.bytes_in)
        self._pages = max(operand.pages for operand in self._operands.values())
        self._words = max(operand.words for operand in self._operands.values())
        self._waiting: deque[Command] = deque()
        self._jobs: deque = deque()
        self._latest = None
        self._packets: deque[Packet] = deque()
        self._counters = dict.fromkeys(COUNTERS, 0)
        self._closed = False

    def _executed(self, commands: list[Job | Load]) -> None:
        """Take note of commands that the core has executed."""

    def _idle(self) -> None:
        """Take note that all commands until now have been executed."""

    def _count_cycles(self) -> None:
        """Update the counters of cycles."""
        raise NotImplementedError

    def restart(self, timeout: float) -> None:
        """Do nothing: commands are accepted when they are sent."""

    def send(self, commands: Iterable[Command]) -> None:
        self._check_open()
        words = self._counters["words_in"]
        for header, data in commands:
            size = len(data) + (0 if header is None else self._header_bytes)
            words += size // self._config.bytes_in
            self._waiting.append((header, data))
        self._counters["words_in"] = words
        self._run()

    def receive(self, timeout: float) -> Packet:
        self._check_open()
        if not self._packets:
            raise TransportTimeout(f"no results within {timeout:g} s")
        return self._packets.popleft()

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        self._check_open()
        if _CYCLES.intersection(REGISTERS[address : address + count]):
            self._count_cycles()
        words = describe(self._config) + [value % (1 << 32) for value in self._counters.values()]
        if not 0 <= address <= address + count <= len(words):
            span = f"{address}..{address + count - 1}"
            raise TransportError(f"registers read must lie in 0..{len(words) - 1}, not {span}")
        return words[address : address + count]

    def abort(self, timeout: float) -> None:
        self._check_open()
        if self._jobs:  # ready jobs have ended already, so the oldest job waits for operands
            self._answer(self._jobs.popleft().job.tag, Status.ABORTED)
            self._run()

    def close(self) -> None:
        self._closed = True

    def _check_open(self):
        if self._closed:
            raise TransportClosed("the transport is closed")

    def _run(self):
        """End jobs and take commands as long as possible."""
        while self._end_job() or self._take_command():
            pass
        if not self._jobs and not self._waiting:
            self._idle()

    def _take_command(self):
        """Take the next command if it may start; return whether it did."""
        if not self._waiting:
            return False
        header, data = self._waiting[0]
        if isinstance(header, Job):
            if len(self._jobs) == self._config.jobs:
                return False
            self._queue(header)
        elif header is not None and self.is_valid(header):
            if not self._can_load(header):
                return False
            self._load(header, data)
        else:
            self._counters["errors"] += max(1, len(data) // self._header_bytes)
        del self._waiting[0]
        return True

    def _queue(self, job):
        rejected = self._job_rules.rejects(job)
        self._latest = _PendingJob(job, rejected)
        if not rejected:
            for side, (flag, size) in enumerate(zip(_FEEDS, (job.m, job.n), strict=True)):
                if flag in job.flags:
                    self._latest.missing[side] = self._operands[side].panels(size)
        self._jobs.append(self._latest)

    def is_valid(self, load: Load) -> bool:
        """Return whether the header of a load is valid."""
        exists = load.operand in self._operands
        return exists and 0 < load.panels <= self._pages and 0 < load.words <= self._words

    def payload_bytes(self, load: Load) -> int:
        """Return the bytes of the payload of a valid load."""
        operand = self._operands[Region(load.operand)]
        return load.panels * -(-load.words // operand.group) * operand.segments * operand.stream

    def _can_load(self, load):
        """Return whether no pending job uses its pages, except the job that the load feeds."""
        if load.operand == Region.TABLE:  # every job may use it
            return not self._jobs
        pages = range(load.page, load.page + load.pages)
        for pending in self._jobs:
            if pending.rejected or (LoadFlag.FEED in load.flags and pending is self._latest):
                continue
            first, span = _span(pending.job, load.operand)
            if max(first, pages.start) < min(first + span, pages.stop):
                return False
        return True

    def _load(self, load, payload):
        self._core.load(load, payload)
        if LoadFlag.FEED in load.flags and self._latest in self._jobs:
            missing = self._latest.missing
            if load.operand in (Region.A, Region.B):
                missing[load.operand] = max(0, missing[load.operand] - load.panels)
            self._latest.loads.append(load)
        else:
            self._executed([load])

    def _end_job(self):
        """Run the oldest job if all its panels are loaded; return whether it did."""
        if not self._jobs or not self._jobs[0].ready:
            return False
        pending = self._jobs.popleft()
        job = pending.job
        if pending.rejected:
            self._answer(job.tag, Status.REJECTED)
            return True
        self._executed([job, *pending.loads])
        results = self._core.run(job)
        if results is None:
            self._counters["finished"] += 1
        else:
            self._answer(job.tag, Status(0), results)
        return True

    def _answer(self, tag, status, data=None):
        # A job that ended without results answers with one word without data.
        data = bytes(self._config.bytes_out) if data is None else data
        self._packets.append(Packet(tag, True, status, data))
        self._counters["words_out"] += len(data) // self._config.bytes_out
        self._counters["finished"] += 1


def _span(job, operand):
    """Return the first page and the number of pages that a job uses of an operand's buffer."""
    if operand == Region.A:
        return job.a_page, job.a_pages
    if operand == Region.C:
        return (job.c_page, job.c_pages) if JobFlag.PRELOAD in job.flags else (0, 0)
    return job.b_page, job.b_pages  # parameters have the addresses of B


_MAX_UNCOUNTED = 1 << 20  # maximum commands whose cycles are not counted yet: some 300 MiB


class GoldenTransport(EmulatedTransport):
    """A `Transport` to an exact model of a core; it answers at once.

    The cycle model gives the counters of cycles. It runs when they are read; until then the
    transport stores the commands, equal batches once.

    `TransportError` reports commands whose effect on a core is undefined: a load outside the
    buffer, or invalid parameters.

    Parameters
    ----------
    config : Config
        Config of the core.
    """

    def __init__(self, config: Config):
        if getattr(config, "kind", None) != PRODUCT:
            raise TypeError(f"config must be a weft.Config, not {config!r}")
        super().__init__(CORES[config.dtype](config))
        self._batch: list = []
        # Commands whose cycles are not counted yet: number of runs.
        self._batches: Counter = Counter()
        self._uncounted = 0  # commands in these batches

    def _executed(self, commands):
        self._batch += commands

    def _idle(self):
        if self._batch:
            self._defer(self._batch)
            self._batch = []

    def _defer(self, batch):
        """Store a batch; its cycles are counted when they are read."""
        commands = tuple(_untagged(command) for command in batch)
        if commands not in self._batches:
            self._uncounted += len(batch)
        self._batches[commands] += 1
        if self._uncounted > _MAX_UNCOUNTED:
            self._count_cycles()

    def _count_cycles(self):
        """Add the cycles of the stored batches to the counters."""
        from weft.cycles import predict

        for commands, times in self._batches.items():
            prediction = predict(self._config, list(commands))
            self._counters["busy"] += times * prediction.cycles
            for name in ("active", "starved", "stalled"):
                self._counters[name] += times * getattr(prediction, name)
        self._batches.clear()
        self._uncounted = 0


def _untagged(command):
    """Return a command; a job without its tag, which costs no cycles."""
    return command.tagged(0) if isinstance(command, Job) else command


_WORDS = 1 << 16  # of the emulated buffers, which are in this process


def product_config(config: NetworkCoreConfig) -> Config:
    """Return the Config of the product core that a network core stands for."""
    return dataclasses.replace(config.array, a_words=_WORDS, b_words=_WORDS)


class ListTransport(EmulatedTransport):
    """A `Transport` to a network core: ``Accelerator(ListTransport(NetworkDriver(port)))``.

    This process emulates the command stream and the operand buffers of a product core.
    The network core computes the products, as `ListProducts` describes. The host adds partial
    sums, and converts those to results.

    The counter ``busy`` has the cycles of all lists, as the core has counted them; of a model that
    does not count, the predicted ones, which are equal. ``active`` has the array steps, ``starved``
    all other cycles. The words of the streams are the emulated ones.

    Parameters
    ----------
    runner : NetworkDriver
        Or a model, as for `ListProducts`.
    timeout : float
        Maximum seconds of a list.

    Attributes
    ----------
    products : ListProducts
    """

    def __init__(self, runner, *, timeout: float = 60.0):
        self.products = ListProducts(runner, timeout=timeout)
        super().__init__(_ListCore(product_config(runner.config), self.products))

    def restart(self, timeout: float) -> None:
        """Discard the commands that were not executed."""
        self._waiting.clear()

    def close(self) -> None:
        super().close()
        self.products.close()

    def _count_cycles(self):
        counters = self.products.counters
        cycles, active = counters.cycles(), counters.steps
        self._counters |= {"busy": cycles, "active": active, "starved": cycles - active}


class _ListCore(IntegerCore):
    """The buffers of the emulated core; lists compute its sums and results."""

    def __init__(self, config: Config, products: ListProducts):
        super().__init__(config)
        self._products = products

    def sums(self, job, a, b, kept):
        total = self._products.sums(a, b)
        return total if kept is None else total + kept

    def run(self, job):
        partial = job.flags & (JobFlag.ACCUMULATE | JobFlag.KEEP)
        whole = JobFlag.REQUANTIZE in job.flags and not partial
        if not (whole and self._products.is_whole(job.m, job.k, job.n)):
            return super().run(job)
        a = self._operand(Region.A, job.m, job.k, job.a_page, job.a_pitch)
        b = self._operand(Region.B, job.n, job.k, job.b_page, job.b_pitch)
        return self._layout(self._products.results(a, b, self.entries(job)))
