"""A transport to an IP core with DMA: commands become descriptors and data in memory."""

import math
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from weft.commands import Job, JobFlag, Load, LoadFlag, Status, result
from weft.descriptors import ElementOrder, Fetch, Store, write_unit
from weft.geometry import JobRules
from weft.host.mmio import ProductTransport, RegisterAccess, map_file, progress
from weft.host.packing import pack_results
from weft.host.transport import Command, Packet, TransportError

__all__ = ["DmaMemory", "DmaTransport", "MappedMemory"]


class DmaMemory(Protocol):
    """Memory that the core and this program both access.

    Attributes
    ----------
    address : int
        Address of its first byte on the bus of the core.
    size : int
        Bytes.
    """

    address: int
    size: int

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from byte ``offset`` on."""

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes; the core reads them if it is told to do so afterwards."""

    def close(self) -> None:
        """Release the memory. Closing twice has no effect."""


class MappedMemory:
    """Memory in a file that maps it: ``/dev/udmabuf0``, ``/dev/mem``, or a map of a UIO device.

    Parameters
    ----------
    path : str
        The file.
    address : int
        Address of the memory on the bus of the core.
    size : int
        Bytes.
    offset : int
        Position of the memory in the file, a multiple of the page size: ``address`` in
        ``/dev/mem``, ``n * mmap.PAGESIZE`` for map n of a UIO device.

    Raises
    ------
    ValueError
        If ``offset`` is not a multiple of the page size, or ``size`` is not 1 or more.
    TransportError
        If the file cannot be opened or mapped.
    """

    def __init__(self, path: str, address: int, size: int, offset: int = 0):
        if size < 1:
            raise ValueError(f"size must be 1 or more, not {size}")
        self.address, self.size = address, size
        self._map = map_file(path, size, offset)

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from byte ``offset`` on."""
        return self._map[offset : offset + size]

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes."""
        self._map[offset : offset + len(data)] = data

    def close(self) -> None:
        """Unmap the memory."""
        self._map.close()


_WORDS = 13  # 32-bit words of a descriptor that are written; the others stay 0, as after a reset
_NAMES = ProductTransport.NAMES
_BUSY = _NAMES.bits("status", "busy", "dma_busy")
_DROPPED = _NAMES.bits("irq_status", "bad_descriptor", "bad_address")
_FAILED = _NAMES.bits("irq_status", "failed")


@dataclass
class _Command:
    """A command that waits for its descriptor.

    ``size`` counts the bytes of memory for the payload or the results.
    ``needs`` counts the bytes that must be free before: of a job, those of its operands too.
    """

    header: Job | Load
    payload: bytes = b""
    size: int = 0
    needs: int = 0

    @property
    def feeds(self):
        return isinstance(self.header, Load) and LoadFlag.FEED in self.header.flags


class DmaTransport(ProductTransport):
    """A `weft.host.transport.Transport` to an IP core of bus ``dma``.

    Each load becomes a descriptor of order PACKED, with its payload in memory. Each job becomes a
    descriptor with space for its results in memory. The space is used from its start to its end;
    then the transport waits until the core is idle, and begins again at the start. The transport
    polls; it needs no interrupt.

    The registers tell the status of the job that ended last. If several jobs end between two polls
    and one of them failed, the earlier ones are reported as failed too, with the status of the last
    one, or ABORTED if that one did not fail.

    Parameters
    ----------
    access : RegisterAccess
        The registers; the transport closes them.
    memory : DmaMemory
        Memory for operands and results; the transport closes it.
    timeout : float
        Maximum seconds for the soft reset.

    Raises
    ------
    ValueError
        If the memory is not aligned to stream words, or not within 32-bit addresses.
    TransportError
        If the first register is not a core's, or the core does not leave its reset.
    """

    def __init__(self, access: RegisterAccess, memory: DmaMemory, timeout: float = 10.0):
        self._memory = memory
        super().__init__(access, timeout)
        try:
            self._check_memory()
        except BaseException:
            self.close()
            raise
        self._job_rules = JobRules(self._config)
        self._waiting: deque[_Command] = deque()
        # Jobs that were submitted and have not ended, with the offset of their results in memory.
        self._jobs: deque[tuple[Job, int]] = deque()
        self._packets: deque[Packet] = deque()
        self._used = 0  # bytes of the memory
        self._job_bytes = 0  # of memory that the latest job and its operands need
        self._jobs_done = 0

    def restart(self, timeout: float) -> None:
        """Discard all commands and results, with a soft reset: a dropped descriptor has no end."""
        self._check()
        self._reset(timeout)
        for queue in (self._waiting, self._jobs, self._packets):
            queue.clear()
        self._used = self._job_bytes = self._jobs_done = 0

    def send(self, commands: Iterable[Command]) -> None:
        """Queue commands, and submit as many of them as there is space for.

        Raises TransportError, before any of them is submitted, if the memory is too small for a
        load, or for a job with its operands and results.
        """
        self._check()
        found, job_bytes = [], self._job_bytes
        for header, data in commands:  # the core would skip words that are no command
            if isinstance(header, Job):
                found.append(self._job(header))
            elif header is not None and data:
                found.append(_Command(header, bytes(data), len(data), len(data)))
        try:
            self._count_needs(found)
        except TransportError:
            self._job_bytes = job_bytes
            raise
        self._waiting += found
        self._submit()

    def receive(self, timeout: float) -> Packet:
        """Return all results of the next job that ends.

        Raises TransportTimeout if no job ends and no descriptor is submitted for ``timeout``
        seconds, and TransportError if the core dropped a descriptor.
        """
        self._check()
        last_move = time.monotonic()
        while not self._packets:
            moved = self._collect()
            moved |= self._submit()
            last_move = progress(moved, last_move, timeout, "no job ended")
        return self._packets.popleft()

    def close(self) -> None:
        """Release the registers and the memory."""
        super().close()
        self._memory.close()

    def _check_memory(self):
        address, size, word = self._memory.address, self._memory.size, self._config.bytes_in
        if address % word:
            raise ValueError(f"address of memory must be a multiple of {word}, not {address:#x}")
        if not 0 <= address <= address + size <= 1 << 32:
            raise ValueError(
                f"memory must lie below 0x100000000, not {size:#x} bytes from {address:#x}"
            )

    def _job(self, job):
        """Return the command of a job, with the size of its results in memory."""
        if JobFlag.KEEP in job.flags or self._job_rules.rejects(job):
            return _Command(job)
        size = job.m * self._stride(job)
        return _Command(job, b"", size, size)

    def _stride(self, job):
        """Return the bytes from row to row of the results of a job in memory."""
        unit = write_unit(self._config, job.flags)
        return -(-job.n * result(self._config, job.flags).bytes // unit) * unit

    def _count_needs(self, commands):
        """Add the needs of the operands of each job to those of the job."""
        align, job = self._align(), None
        for command in commands:
            command.size = command.needs = -(-command.size // align) * align
            if command.feeds:
                self._job_bytes += command.size
                if job:
                    job.needs += command.size
            elif isinstance(command.header, Job):
                job, self._job_bytes = command, command.size
            most = max(command.size, self._job_bytes)
            if most > self._memory.size:
                raise TransportError(
                    f"memory must hold a job's operands and results, {most} bytes, not"
                    f" {self._memory.size} bytes"
                )

    def _align(self):
        """Return the alignment of operands and results in memory."""
        flags = (JobFlag(0), *self._config.data_type.epilogue_flags(self._config)[:1])
        return math.lcm(self._config.bytes_in, *(write_unit(self._config, f) for f in flags))

    def _submit(self) -> bool:
        """Submit descriptors while there is space for them; whether there were any."""
        if not self._waiting:
            return False
        submitted = 0
        for _ in range(self._read("desc_free")):
            if not self._waiting or not self._may_submit(self._waiting[0]):
                break
            command = self._waiting.popleft()
            if isinstance(command.header, Job):
                self._jobs.append((command.header, self._used))
            self._memory.write(self._used, command.payload)
            self._write_descriptor(command.header, self._memory.address + self._used)
            self._used += command.size
            submitted += 1
        return submitted > 0

    def _may_submit(self, command):
        """Whether a command may be submitted now; begins again at the start of a full memory.

        A job that the core rejects runs alone: its status is then that of LAST_JOB.
        """
        rejects = self._job_rules.rejects
        pending = [job for job, _ in self._jobs if JobFlag.KEEP not in job.flags]
        if any(rejects(job) for job in pending):
            return False
        if isinstance(command.header, Job) and rejects(command.header) and pending:
            return False
        if self._used + command.needs > self._memory.size:
            if pending or self._read("status") & _BUSY:
                return False
            self._used = 0
        return True

    def _write_descriptor(self, header, address):
        if isinstance(header, Load):
            data = Fetch(header, address, order=ElementOrder.PACKED).pack()
        else:
            stride = 0 if self._job_rules.rejects(header) else self._stride(header)
            data = Store(header, address, stride).pack()
        for n in range(_WORDS):
            word = int.from_bytes(data[4 * n : 4 * n + 4], "little")
            self._write(f"descriptor_{n}", word)
        self._write("doorbell", 1)

    def _collect(self) -> bool:
        """Queue the results of the jobs that have ended; whether any has."""
        done, last, events = self._ended()
        count = (done - self._jobs_done) % (1 << 32)
        self._jobs_done = done
        if events & _DROPPED:
            raise TransportError(
                "the core dropped a descriptor; does its window contain"
                f" {self._memory.address:#x} to {self._memory.address + self._memory.size - 1:#x}?"
            )
        if not count:
            return False
        tag = _NAMES.value("last_job", "tag", last)
        status = Status(_NAMES.value("last_job", "status", last))
        if tag not in [job.tag for job, _ in self._jobs]:
            raise TransportError(f"job {tag} ended, but was not submitted")
        failed = events & _FAILED
        while True:
            job, offset = self._jobs.popleft()
            if job.tag == tag:
                self._answer(job, offset, status)
                return True
            if JobFlag.KEEP not in job.flags:
                self._answer(job, offset, status or Status.ABORTED if failed else Status(0))

    def _ended(self):
        """Return JOBS_DONE, LAST_JOB, and the events of jobs up to this one, which are cleared.

        They belong together if no job ends while they are read; at most all submitted jobs can.
        """
        events = 0
        while True:
            done = self._read("jobs_done")
            new = self._read("irq_status") & (_DROPPED | _FAILED)
            if new:
                self._write("irq_status", new)
            events |= new
            last = self._read("last_job")
            if self._read("jobs_done") == done:
                return done, last, events

    def _answer(self, job, offset, status):
        """Queue the packet of a job that ended, with its results if it did not fail."""
        data = b""
        if not status:
            size, stride = result(self._config, job.flags).bytes, self._stride(job)
            rows = np.frombuffer(self._memory.read(offset, job.m * stride), np.uint8)
            rows = np.ascontiguousarray(rows.reshape(job.m, stride)[:, : job.n * size])
            data = pack_results(rows.view(f"<u{size}"), self._config)
        self._packets.append(Packet(job.tag, True, status, data))
