"""The driver: matrix products of numpy arrays on a core behind any transport."""

import contextlib
import dataclasses
import functools
import time

import numpy as np

from weft.commands import Job, Load, Status
from weft.config import PAGE_WORDS, Config
from weft.geometry import operands
from weft.host.packing import pack, panel_slice, result_bytes, unpack
from weft.host.pages import Pages
from weft.host.planner import Planner, tags
from weft.host.product import Product
from weft.host.record import Record
from weft.host.resident import Resident
from weft.host.transport import Transport, TransportClosed, TransportError, TransportTimeout
from weft.host.values import Values, check_type
from weft.registers import COUNTERS, REGISTERS, decode

__all__ = ["Accelerator", "AcceleratorError"]

_MOST_JOBS = 1 << 14  # sent at once: far fewer than tags, so that a tag tells old results from new
_QUIET = 0.05  # seconds without results after which recovery gives another abort
_COMPLETE = Status(0)


class AcceleratorError(RuntimeError):
    """The core is not what it should be, or did not do what it was asked to."""


class Accelerator:
    """A core and the numbers it multiplies.

    Also a context manager that closes the transport.

    Parameters
    ----------
    transport : Transport
    config : Config, optional
        What the core must be; taken from its registers where absent.
    timeout : float
        Seconds of silence, at most, wherever something is awaited.

    Raises
    ------
    AcceleratorError
        Where the core's description is none, or not ``config``.
    """

    def __init__(self, transport: Transport, config: Config | None = None, *, timeout=60.0):
        self._transport = transport
        self._timeout = timeout
        self.config = self._describe(config)
        self._operands = operands(self.config)
        self._pages = [Pages(operand.pages) for operand in self._operands]
        self._tags = tags()
        self._failed = False

    def __enter__(self) -> "Accelerator":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the transport."""
        self._transport.close()

    def counters(self) -> dict[str, int]:
        """The hardware's counters as they stand, by the names of `weft.registers.COUNTERS`."""
        start = REGISTERS.index(next(iter(COUNTERS)))
        words = self._transport.read(start, len(COUNTERS), self._timeout)
        return dict(zip(COUNTERS, words, strict=True))

    def load(self, matrix, side: str = "b") -> Resident:
        """Load B [K, N] (or, with ``side="a"``, A [M, K]) to stay until freed.

        Raises TypeError or ValueError for what is no matrix of int8 or uint8, and ValueError where
        it does not fit in the free pages in a row.
        """
        if side not in ("a", "b"):
            raise ValueError(f"side must be 'a' or 'b', not {side!r}")
        matrix = check_type(side, matrix)
        if matrix.ndim != 2 or 0 in matrix.shape:
            rule = "a matrix of 1 x 1 or more"
            raise ValueError(f"{side} must be {rule} to be loaded, not of shape {matrix.shape}")
        values = Values.of(matrix, 0).values
        lines = values if side == "a" else values.T
        index = "ab".index(side)
        operand, pages = self._operands[index], self._pages[index]
        panels, pitch = operand.panels(lines.shape[0]), operand.panel_pages(lines.shape[1])
        page = pages.hold(panels * pitch)
        if page is None:
            size = f"{matrix.shape[0]} x {matrix.shape[1]}"
            room = f"{pages.free()[1]} pages of {PAGE_WORDS} words that are free in a row"
            raise ValueError(f"{side} of {size} must fit in the {room}, not need {panels * pitch}")
        load = Load(index, page, pitch, panels, operand.panel_words(lines.shape[1]))
        try:
            with self._exchange():
                # The core answers the empty job once it has taken all of the load.
                barrier = self._barrier()
                self._transport.send(
                    self._header(load) + pack(lines, operand) + self._header(barrier)
                )
                self._collect(barrier, Status.REJECTED)
        except BaseException:
            pages.release(page)
            raise
        sums = lines.sum(-1, dtype=np.int64)
        return Resident(side, matrix.shape, matrix.dtype, sums, page, self, pages.release)

    def matmul(self, a, b, *, a_zero_point=None, b_zero_point=None, record: bool = False):
        """``(a - a_zero_point) @ (b - b_zero_point)``, exact, as int32.

        Shapes are those of `numpy.matmul`: vectors, matrices, batches that broadcast.

        Parameters
        ----------
        a, b : array of int8 or uint8, or Resident
        a_zero_point : int or array, optional
            In the range of a's type; one number, or one for each row of a.
        b_zero_point : int or array, optional
            In the range of b's type; one number, or one for each column of b.
        record : bool
            Give ``(array, Record)`` rather than the array.

        Raises
        ------
        TypeError, ValueError
            For what cannot be multiplied without a wrong sum, before anything is sent.
        AcceleratorError, TransportError
            Where the core or the way to it failed; the result is lost, the next call is sound.
        """
        product = Product(a, b, a_zero_point, b_zero_point, self)
        raw = np.zeros(product.raw_shape, np.int32)
        spent = self._run(product, raw, record) if raw.size and product.k else None
        result = product.finish(raw)
        if not record:
            return result
        return result, spent or Record(0, 0, self.config.peak, 0, 0, 0, 0, 0, 0)

    def _run(self, product, raw, record):
        """Fill ``raw`` [batch, M, N]; the Record if asked for."""
        steps = self._plan(product)
        with self._exchange():
            before = self.counters() if record else None
            for start in range(0, len(steps), _MOST_JOBS):
                part = steps[start : start + _MOST_JOBS]
                self._transport.send(self._commands(product, part))
                for index, step in part:
                    if step.answers:
                        data = self._collect(step.job)
                        tile = unpack(data, step.job.m, step.job.n, self.config)
                        raw[index, step.rows, step.cols] = tile
            if record:
                return self._record(before, self.counters(), raw.size * product.k, len(steps))

    def _plan(self, product):
        """The steps of all products of the batch, each with its index."""
        planner = Planner(self.config, [pages.free() for pages in self._pages], self._tags)
        _, m, n = product.raw_shape
        return [
            (index, step)
            for index in range(product.raw_shape[0])
            for step in planner.plan(m, n, product.k, a_page=product.a_page, b_page=product.b_page)
        ]

    def _commands(self, product, steps):
        """The bytes of some steps: each job's header, then its loads with what they carry."""

        @functools.lru_cache(maxsize=2)
        def packed(side, index):
            return memoryview(pack(product.lines(side, index), self._operands[side]))

        parts = []
        for index, step in steps:
            parts.append(self._header(step.job))
            for feed in step.feeds:
                load, operand = feed.load, self._operands[feed.load.operand]
                where = panel_slice(
                    operand, product.k, feed.panel, load.panels, feed.word, load.words
                )
                parts += [self._header(load), packed(load.operand, index)[where]]
        return b"".join(parts)

    def _header(self, command):
        return command.pack().ljust(self.config.bytes_in, b"\0")

    def _barrier(self):
        """A job of nothing: the core answers it in its turn, as REJECTED."""
        return Job(0, 0, 0, 0, 0, 0, 0, 0, 0, next(self._tags))

    def _collect(self, job, status=_COMPLETE):
        """The bytes of one job's results, which must end with ``status``: none for complete."""
        data = []
        while True:
            packet = self._transport.receive(self._timeout)
            if packet.tag != job.tag:
                raise AcceleratorError(f"results must be those of job {job.tag}, not {packet.tag}")
            data.append(packet.data)
            if packet.last:
                break
        if packet.status != status:
            want, got = (s.name or "complete" for s in (status, packet.status))
            raise AcceleratorError(f"job {job.tag} must end {want}, not {got}")
        data = b"".join(data)
        size = result_bytes(job.m, job.n, self.config)
        if not status and len(data) != size:
            text = f"results of job {job.tag} must be {size} bytes, not {len(data)}"
            raise AcceleratorError(text)
        return data

    @contextlib.contextmanager
    def _exchange(self):
        """Around whatever is sent and awaited: what fails in it is cleared away before the next."""
        if self._failed:
            self._settle()
        self._failed = True
        yield
        self._failed = False

    def _settle(self):
        """End whatever the core still has from a failed exchange, and drop its results.

        An empty job is queued last; aborts end those before it that wait for what will never come.
        """
        barrier = self._barrier()
        self._transport.send(self._header(barrier))
        deadline = time.monotonic() + self._timeout
        quiet = True
        while True:
            try:
                if quiet:
                    self._transport.abort(self._timeout)
                quiet = False
                packet = self._transport.receive(min(_QUIET, self._timeout))
                if packet.tag == barrier.tag and packet.last and packet.status:
                    return
            except TransportClosed:
                raise
            except TransportError as error:
                if time.monotonic() > deadline:
                    raise AcceleratorError(
                        f"the core must come to rest within {self._timeout:g} s of an abort, "
                        "not stay at work: it must be reset"
                    ) from error
                quiet = isinstance(error, TransportTimeout)

    def _record(self, before, after, macs, jobs):
        spent = {name: (after[name] - before[name]) % (1 << 32) for name in COUNTERS}
        return Record(
            cycles=spent["busy"],
            macs=macs,
            peak=self.config.peak,
            bytes_in=spent["words_in"] * self.config.bytes_in,
            bytes_out=spent["words_out"] * self.config.bytes_out,
            active=spent["active"],
            starved=spent["starved"],
            stalled=spent["stalled"],
            jobs=jobs,
        )

    def _describe(self, config):
        """The Config that the core's registers tell, held against the one that is wanted."""
        count = REGISTERS.index(next(iter(COUNTERS)))
        try:
            found = decode(self._transport.read(0, count, self._timeout))
        except ValueError as error:
            raise AcceleratorError(f"the core does not describe itself: {error}") from error
        if config is not None and found != config:
            have, want = dataclasses.asdict(found), dataclasses.asdict(config)
            raise AcceleratorError(
                "\n".join(
                    f"the core's {name} must be {want[name]}, not {have[name]}"
                    for name in want
                    if want[name] != have[name]
                )
            )
        return found
