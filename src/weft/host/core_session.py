"""Exchanges with a core: what is sent is answered, or cleared away before the next."""

import contextlib
import dataclasses
from random import randrange

from weft.commands import Job, Load, Status, result
from weft.config import Config
from weft.host.packing import result_bytes
from weft.host.planner import tags
from weft.host.recovery import AcceleratorError, padded, resync
from weft.host.stats import Stats
from weft.host.transport import Transport
from weft.registers import COUNTERS, REGISTERS, decode

__all__ = ["AcceleratorError", "CoreSession"]

_COMPLETE = Status(0)


class CoreSession:
    """One core behind a transport, as far as jobs, answers and registers go.

    Parameters
    ----------
    transport : Transport
    config : Config, optional
        What the core must be; taken from its registers where absent.
    timeout : float
        Seconds of silence, at most, wherever something is awaited.

    Attributes
    ----------
    config : Config
    tags : iterator of int
        For the next jobs.

    Raises
    ------
    AcceleratorError
        Where the core's description is none, or not ``config``.
    """

    def __init__(self, transport: Transport, config: Config | None, timeout: float):
        self._transport = transport
        self._timeout = timeout
        self.config = self._describe(config)
        # Another client may have left a core with answers of its own to give.
        self.tags = tags() if transport.fresh else tags(randrange(1 << 16))
        self._failed = not transport.fresh

    def close(self) -> None:
        """Let go of the transport."""
        self._transport.close()

    @contextlib.contextmanager
    def opened(self, shelf):
        """Around whatever is sent and awaited: what fails in it is cleared away before the next.

        What then is on the ``shelf`` nobody knows.
        """
        if self._failed:
            shelf.clear()
            resync(self._transport, self.config, self.barrier, self._timeout)
        self._failed = True
        yield
        self._failed = False

    def send(self, commands: bytes) -> None:
        """Send whole commands."""
        self._transport.send(commands)

    def header(self, command: Job | Load) -> bytes:
        """The words of a header."""
        return padded(command, self.config)

    def barrier(self) -> Job:
        """A job of nothing: the core answers it in its turn, as REJECTED."""
        return Job(0, 0, 0, 0, 0, 0, 0, 0, 0, tag=next(self.tags))

    def collect(self, job: Job, status: Status = _COMPLETE) -> bytes:
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
        number = result(self.config, job.flags)
        size = result_bytes(job.m, job.n, self.config, number.bytes)
        if not status and len(data) != size:
            text = f"results of job {job.tag} must be {size} bytes, not {len(data)}"
            raise AcceleratorError(text)
        return data

    def counters(self) -> dict[str, int]:
        """The hardware's counters as they stand, by the names of `weft.registers.COUNTERS`."""
        start = REGISTERS.index(next(iter(COUNTERS)))
        words = self._transport.read(start, len(COUNTERS), self._timeout)
        return dict(zip(COUNTERS, words, strict=True))

    def record(self, before: dict[str, int], *, macs: int, jobs: int) -> Stats:
        """What was spent since the counters stood as ``before``."""
        after = self.counters()
        spent = {name: (after[name] - before[name]) % (1 << 32) for name in COUNTERS}
        return Stats(
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
