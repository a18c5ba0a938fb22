"""A session with a core: sends jobs, collects their results, recovers after a failure."""

import contextlib
import dataclasses
import time
from random import randrange
from typing import Any

from weft.commands import Job, Status, result
from weft.config import Config
from weft.design import LANGUAGE, PRODUCT
from weft.host.opening import open_transport
from weft.host.packing import result_bytes
from weft.host.planner import tags
from weft.host.recovery import AcceleratorError, resync
from weft.host.stats import Stats
from weft.host.transport import Commands, Transport
from weft.registers import COUNTERS, REGISTERS, decode

__all__ = ["AcceleratorError", "CoreSession", "product_transport", "refuse_language_core"]

_COMPLETE = Status(0)
_PATIENCE = 0.1  # seconds without a word taken until `CoreSession.wait_for_words` gives up


class CoreSession:
    """Jobs, results and registers of one core behind a transport.

    Parameters
    ----------
    transport : Transport
    config : Config or None
        Expected Config of the core; None: accept the Config in the core's registers.
    timeout : float
        Maximum seconds without progress in each wait.

    Attributes
    ----------
    config : Config
        Config of the core.
    tags : iterator of int
        Tags for the next jobs.
    epoch : int
        Counts how often the contents of the core's buffers became unknown. In a transaction, those
        before it count; `contents` counts a failure at once.

    Raises
    ------
    AcceleratorError
        If the core's registers do not describe a Config, or not ``config``.
    """

    def __init__(self, transport: Transport, config: Config | None, timeout: float):
        self._transport = transport
        self._timeout = timeout
        self.config = self._describe(config)
        # A core that another client used may still send that client's results.
        self.tags = tags() if transport.fresh else tags(randrange(1 << 16))
        self._needs_resync = not transport.fresh
        self.epoch = 0

    @classmethod
    def open(cls, transport: Transport | str, config: Config | None, timeout: float):
        """Return a session over a transport or its name, as in `weft.host.opening`.

        A network core executes the jobs as lists. On an error, a transport that was opened
        here is closed. Raises TypeError if ``transport`` is neither.
        """
        if not isinstance(transport, str):
            asks = hasattr(transport, "kind_of_core")
            if not asks and not callable(getattr(transport, "receive", None)):
                hint = "; ListTransport(runner) is one" if hasattr(transport, "run") else ""
                raise TypeError(
                    "transport must be a weft.host.transport.Transport, or the name of one, not"
                    f" {transport!r}{hint}"
                )
            return cls(product_transport(transport, timeout), config, timeout)
        with contextlib.ExitStack() as undo:
            opened = open_transport(transport, config)
            undo.callback(opened.close)
            session = cls(product_transport(opened, timeout), config, timeout)
            undo.pop_all()
            return session

    @property
    def contents(self) -> int:
        """`epoch` in the next transaction; ask outside of one."""
        return self.epoch + self._needs_resync

    def close(self) -> None:
        """Close the transport."""
        self._transport.close()

    @contextlib.contextmanager
    def transaction(self, cache):
        """Context for commands and the wait for their results.

        If it fails, the next transaction first resynchronizes the core and clears ``cache``, since
        the contents of the core's buffers are then unknown.
        """
        if self._needs_resync:
            cache.clear()
            self.epoch += 1
            resync(self._transport, self.config, self.barrier, self._timeout)
        self._needs_resync = True
        yield
        self._needs_resync = False

    def send(self, commands: Commands) -> None:
        """Send commands."""
        self._transport.send(commands)

    def barrier(self) -> Job:
        """Return an empty job; the core answers it in order, with status REJECTED."""
        return Job(0, 0, 0, 0, 0, 0, 0, 0, 0, tag=next(self.tags))

    def collect(self, job: Job, status: Status = _COMPLETE) -> bytes:
        """Return the result bytes of ``job``; its status must be ``status``, by default complete.

        Raises AcceleratorError for another tag, status or number of bytes.
        """
        number = result(self.config, job.flags)
        size = result_bytes(job.m, job.n, self.config, number.bytes)
        return self.receive(job.tag, size, status)

    def receive(self, tag: int, size: int, status: Status = _COMPLETE) -> bytes:
        """Return the ``size`` result bytes of the job with ``tag``, as `collect` does."""
        data = []
        while True:
            packet = self._transport.receive(self._timeout)
            if packet.tag != tag:
                raise AcceleratorError(
                    f"expected results of job {tag}, received results of job {packet.tag}"
                )
            data.append(packet.data)
            if packet.last:
                break
        if packet.status != status:
            want, got = (s.name or "complete" for s in (status, packet.status))
            raise AcceleratorError(f"job {tag} ended with status {got}, expected {want}")
        joined = b"".join(data)
        if not status and len(joined) != size:
            text = f"expected {size} bytes of results of job {tag}, received {len(joined)}"
            raise AcceleratorError(text)
        return joined

    def counters(self) -> dict[str, int]:
        """Return the current values of the counters, by the names in `weft.registers.COUNTERS`."""
        start = REGISTERS.index(next(iter(COUNTERS)))
        words = self._transport.read(start, len(COUNTERS), self._timeout)
        return dict(zip(COUNTERS, words, strict=True))

    def wait_for_words(self, before: dict[str, int], words: int) -> bool:
        """Wait until the core has taken ``words`` command words since the counters were ``before``.

        Returns False if it takes no more words for a while: a transport may send them later.
        """
        taken, deadline = -1, 0.0
        while taken < words:
            now = (self.counters()["words_in"] - before["words_in"]) % (1 << 32)
            if now > taken:
                taken, deadline = now, time.monotonic() + _PATIENCE
            elif time.monotonic() > deadline:
                return False
        return True

    def stats_since(self, before: dict[str, int], *, macs: int, jobs: int) -> Stats:
        """Return the cost since the counters had the values ``before``."""
        after = self.counters()
        delta = {name: (after[name] - before[name]) % (1 << 32) for name in COUNTERS}
        return Stats(
            cycles=delta["busy"],
            macs=macs,
            peak=self.config.peak,
            bytes_in=delta["words_in"] * self.config.bytes_in,
            bytes_out=delta["words_out"] * self.config.bytes_out,
            active=delta["active"],
            starved=delta["starved"],
            stalled=delta["stalled"],
            jobs=jobs,
        )

    def _describe(self, config):
        """Return the Config in the core's registers; AcceleratorError if it is not ``config``."""
        count = REGISTERS.index(next(iter(COUNTERS)))
        try:
            found = decode(self._transport.read(0, count, self._timeout))
        except ValueError as error:
            text = f"the core's registers do not describe a Config: {error}"
            raise AcceleratorError(text) from error
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


def product_transport(transport: Any, timeout: float) -> Transport:
    """Return ``transport``, or one that executes products as lists if a network core answers.

    A transport that can reach either kind is asked: it has ``kind_of_core(timeout)``. Raises
    TransportError if the connection fails, AcceleratorError for a language core.
    """
    if refuse_language_core(transport, timeout) == PRODUCT:
        return transport
    from weft.host.emulated import ListTransport
    from weft.host.network_driver import NetworkDriver

    return ListTransport(NetworkDriver(transport, timeout=timeout), timeout=timeout)


def refuse_language_core(transport: Any, timeout: float) -> str:
    """Return the kind of the core; AcceleratorError for a language core.

    A transport that cannot reach other kinds has a product core.
    """
    ask = getattr(transport, "kind_of_core", None)
    kind = PRODUCT if ask is None else ask(timeout)
    if kind == LANGUAGE:
        raise AcceleratorError(
            f"the core must be a product core or a network core, not a {LANGUAGE}, which writes"
            " text with language models only: weft run MODEL --on PORT; weft program loads another"
            " bitstream"
        )
    return kind
