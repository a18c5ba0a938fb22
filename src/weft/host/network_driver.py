"""The driver of a network core: its memory, and the lists that it executes."""

import contextlib
import dataclasses
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.frames import MAX_CHECK, MAX_DATA
from weft.host.memory_test import quick_test
from weft.host.network_frames import MemoryLayout, NetworkTransport, status_of
from weft.host.opening import open_network_transport
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError, TransportTimeout
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import ListReport, NetworkState, join, split
from weft.network_core.register_map import REGISTERS, decode
from weft.sdram import SdramPhase

__all__ = ["NetworkDriver"]

_LAYOUT = {field.name for field in dataclasses.fields(MemoryLayout)}
_DESCRIBED = REGISTERS.index("net_status")  # registers before it do not change


class NetworkDriver:
    """Writes and reads the memory of a network core, and runs lists on it.

    Addresses are the addresses of lists (`weft.network_core.descriptors`). The driver uses the core
    exclusively until it is closed. It is also a context manager that closes the transport at its
    end. Threads may share it: calls wait for each other.

    After a `TransportError` or an interrupt (Ctrl-C) a running list is aborted, and the next call
    restarts the connection. The memory has the data of all calls of `write` that returned; loads
    must be repeated, because the buffers of weights and parameters count as empty.

    Parameters
    ----------
    transport : NetworkTransport or str
        Connection to the core, or its name: a serial port (``/dev/ttyUSB1``, ``COM3``),
        ``tcp://host:port``, or the registers of an IP core: ``uio:`` and a UIO device, or ``mem:``
        and a physical address.
    config : NetworkCoreConfig, optional
        Expected NetworkCoreConfig; by default the one in the core's registers is accepted.
    timeout : float
        Maximum seconds without progress in each wait for the core.

    Attributes
    ----------
    config : NetworkCoreConfig
        NetworkCoreConfig of the core.
    program_bytes : int
        Bytes of the program memory that lists may use; 0 without one.
    program_sent, program_found : int
        Bytes that calls of `write_program` have sent, and that they have found in the memory, of
        data that they compare.
    watch : callable or None
        Called in `write_program`, after each piece that is compared, with the part of its data,
        from 0 to 1, that the memory has.
    uses : int
        How often `write`, `write_program` or `run` were called: `NetworkCoreRunner` has it, too.

    Raises
    ------
    AcceleratorError
        If the core is not one for networks, or has not the expected NetworkCoreConfig.
    TransportError
        If the connection fails, or the named transport cannot be opened.
    ValueError
        If ``transport`` is a name of another form.
    """

    def __init__(
        self, transport: NetworkTransport | str, config: NetworkCoreConfig | None = None, *,
        timeout: float = 10.0,
    ):
        self._lock = threading.RLock()
        self._timeout = timeout
        self.uses = 0
        self.program_sent = self.program_found = 0
        self.watch: Callable[[float], None] | None = None
        self._tested = False  # the program memory
        self._needs_restart = True
        self._inside = False  # of a transaction
        with contextlib.ExitStack() as undo:
            if isinstance(transport, str):
                transport = open_network_transport(transport)
                undo.callback(transport.close)
            self._transport = transport
            self.config = self._identify(config)
            self.program_bytes: int = self._transport.open_program(self.config)
            undo.pop_all()

    def __enter__(self) -> "NetworkDriver":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> None:
        """Close the transport."""
        with self._lock:
            self._transport.close()

    def write(
        self, address: int, data: bytes, *, run: int = 0, pitch: int = 0, pixels: int = 0,
        row_step: int = 0,
    ) -> None:
        """Write bytes to the memory; return when the core has accepted them.

        Parameters
        ----------
        address : int
            Of the first vector.
        data : bytes
            With ``run`` 0 whole vectors that follow each other; else rows of ``pixels`` pixels of
            ``run`` bytes. The rest of the last vector of a pixel becomes 0.
        run : int
            Bytes of a pixel, at most 255.
        pitch : int
            Vectors from pixel to pixel, at most 255; not less than a pixel has.
        pixels : int
            Pixels of a row, at most 65,535.
        row_step : int
            Address step from the last pixel of a row to the next row.

        Raises
        ------
        ValueError
            If the layout is not valid, or a vector lies outside of the memory.
        TransportError
            If the connection failed.
        """
        layout = MemoryLayout(run, pitch, pixels, row_step)
        parts = list(self._parts(address, layout, bytes(data)))
        with self._transaction():
            self.uses += 1
            self._queue(parts)
            self._transport.flush(self._timeout)

    def read(self, address: int, count: int) -> bytes:
        """Return ``count`` bytes of the memory, from the first one of a vector on.

        Raises ValueError if they are not in the memory, TransportError if the connection failed.
        """
        depth, banks = self.config.array.depth, self.config.banks
        first = join(address, banks)
        self._check_inside(first, first + -(-count // depth) - 1)
        piece = MAX_DATA // depth * depth
        with self._transaction():
            return b"".join(
                self._read(split(first + start // depth, banks), min(piece, count - start))
                for start in range(0, count, piece)
            )

    def write_program(self, address: int, data: bytes, *, compare: bool = True) -> None:
        """Write bytes to the program memory, from the first one of a vector on.

        Data of over ``write_bytes`` of the core are compared first: over a link, the CRC of each
        piece of at most 64 KiB. A piece that the memory has is not sent. So a call that follows a
        broken one goes on where that has ended. A piece that was sent is compared, too. Before the
        first one is sent, the memory is tested: `weft.host.memory_test.quick_test`.

        Parameters
        ----------
        address : int
            Of the first vector.
        data : bytes
        compare : bool
            Without this, the bytes are sent, and nothing is compared or tested.

        Raises
        ------
        ValueError
            If the bytes are not in the program memory.
        AcceleratorError
            If the memory fails a test, or does not keep what is written.
        TransportError
            If the connection failed.
        """
        first, data = self._program_byte(address, len(data)), bytes(data)
        with self._transaction():
            self.uses += 1
            compare = compare and len(data) > self.config.write_bytes
            for start in range(0, len(data), MAX_CHECK):
                piece = data[start : start + MAX_CHECK]
                self._write_piece(first + start, piece, compare)
                if compare and self.watch:
                    self.watch((start + len(piece)) / len(data))

    def read_program(self, address: int, count: int) -> bytes:
        """Return ``count`` bytes of the program memory, from the first one of a vector on.

        Raises ValueError if they are not in the program memory.
        """
        first = self._program_byte(address, count)
        with self._transaction():
            return self._transport.read_program(first, count, self._timeout)

    def run(
        self, list_address: int, log_address: int, *, timeout: float = 60.0,
        beside: Callable[[], None] | None = None, writes: Iterable[Mapping[str, Any]] = (),
    ) -> ListReport:
        """Execute a list, and wait for its end.

        While it runs, ``beside`` is called. It may write and read memory that the list does not
        use. If it raises an exception, the list is aborted.

        ``writes`` are arguments of `write`. The list begins after these writes, without a wait
        for an answer between them.

        Raises
        ------
        ValueError
            If `write` refuses one of ``writes``; the list does not begin.
        TransportTimeout
            If the list has not ended after ``timeout`` seconds; it is aborted.
        TransportError
            If the connection failed, or the core was reset.
        """
        parts = [
            part for write in writes for part in self._parts(
                write["address"],
                MemoryLayout(**{name: write[name] for name in _LAYOUT & write.keys()}),
                bytes(write["data"]),
            )
        ]
        deadline = time.monotonic() + timeout
        with self._transaction():
            self.uses += 1
            self._queue(parts)
            self._transport.start_list(list_address, log_address)
            try:
                self._transport.flush(self._timeout)
                if beside:
                    beside()
                return self._wait_for_list(timeout, deadline)
            except BaseException:
                with contextlib.suppress(TransportError):
                    self._transport.abort(self._timeout)
                raise

    def status(self) -> tuple[NetworkState, ListReport]:
        """Return the state of the core, and the report of its running or last list, without result.
        """
        with self._transaction():
            state, report, *_ = self._status()
            return state, report

    def abort(self) -> None:
        """End the running list, if any; the buffers of weights and parameters count as empty."""
        with self._transaction():
            self._transport.abort(self._timeout)

    @contextlib.contextmanager
    def _transaction(self):
        """Context for frames and the wait for their answers; the next one recovers from a failure.
        """
        with self._lock:
            if self._inside:  # beside a list
                yield
                return
            if self._needs_restart:
                self._transport.restart_lists(self._timeout)
            self._needs_restart = self._inside = True
            try:
                yield
            finally:
                self._inside = False
            self._needs_restart = False

    def _identify(self, config):
        """Return the Design in the core's registers; AcceleratorError if it is not ``config``."""
        try:
            found = decode(self._transport.read(0, _DESCRIBED, self._timeout))
        except ValueError as error:
            raise AcceleratorError(
                f"the core's registers do not describe a network core: {error}"
            ) from error
        if config is not None and found != config:
            have, want = _fields(found), _fields(config)
            differences = "".join(
                f"\nthe core's {name} must be {want[name]}, not {have[name]}"
                for name in want if want[name] != have[name]
            )
            raise AcceleratorError(
                f"the network core must be {config.array.name} with hash {config.hash:08x},"
                f" not {found.array.name} with hash {found.hash:08x}{differences}"
            )
        return found

    def _parts(self, address, layout, data):
        """Yield address, layout and data of each part that the core takes at once."""
        run, pitch, pixels = layout.run, layout.pitch, layout.pixels
        depth, banks, room = self.config.array.depth, self.config.banks, self.config.write_bytes
        first = join(address, banks)
        if not run:
            vectors = -(-len(data) // depth)
            if not (self.config.resident and self._is_loaded(first, vectors)):
                self._check_inside(first, first + vectors - 1)
            piece = room // depth * depth
            for start in range(0, len(data), piece):
                part = data[start : start + piece]
                yield split(first + start // depth, banks), MemoryLayout(), part
            return
        size = -(-run // depth)
        if not (run <= 255 and size <= pitch <= 255 and 1 <= pixels < 1 << 16):
            raise ValueError(
                f"run, pitch and pixels must be in 1..255, {size}..255 and 1..65535,"
                f" not {run}, {pitch} and {pixels}"
            )
        if len(data) % (row := run * pixels):
            raise ValueError(f"data must be whole rows of {row} bytes, not {len(data)} bytes")
        step = join(layout.row_step, banks) + (pixels - 1) * pitch  # from row to row
        rows = len(data) // row
        for y in {0, max(0, rows - 1)}:
            self._check_inside(first + y * step, first + y * step + (pixels - 1) * pitch + size - 1)
        together = max(1, room // row)  # rows in a frame
        piece = together * row if row <= room else room // run * run
        for y in range(0, rows, together):
            part = data[y * row : (y + together) * row]
            for start in range(0, len(part), piece):
                number, some = first + y * step + start // run * pitch, part[start : start + piece]
                count = min(pixels, len(some) // run)
                yield split(number, banks), dataclasses.replace(layout, pixels=count), some

    def _queue(self, parts):
        """Send writes, without a wait until the core has accepted them."""
        for part in parts:
            self._transport.write_memory(*part)

    def _is_loaded(self, first, vectors):
        """Whether vectors lie in a memory of weights, parameters or ADD, which hosts may write."""
        region, place = divmod(first, self.config.region)
        sizes = self.config.regions
        return 0 < region < len(sizes) and place + vectors <= sizes[region]

    def _check_inside(self, first, last):
        """Raise ValueError if the vectors ``first`` to ``last`` are not in the memory."""
        if not 0 <= first <= last + 1 <= self.config.vectors:
            raise ValueError(
                f"vectors must be in 0..{self.config.vectors - 1}, not {first}..{last}"
            )

    def _program_byte(self, address, count):
        """Return the first byte of an access to the program memory."""
        size = self.program_bytes
        if not size:
            raise ValueError("the core must have a program memory")
        first = join(address, self.config.banks) * self.config.array.depth
        if not 0 <= first <= first + count <= size:
            raise ValueError(
                f"bytes of the program memory must be in 0..{size - 1}, not"
                f" {first}..{first + count - 1}"
            )
        return first

    def program_has(self, address: int, data: bytes) -> bool:
        """Return whether the program memory has these bytes, at most `weft.frames.MAX_CHECK`.

        Over a link their CRC is compared. Raises as `read_program`.
        """
        first = self._program_byte(address, len(data))
        with self._transaction():
            return self._has(first, data)

    def move_sdram_phase(self, steps: int) -> SdramPhase | None:
        """Make the clock of a board's SDRAM later by 0 or 1 steps, and return its phase.

        After a step the contents of the SDRAM may be lost. None, with 0 steps, if the clock cannot
        move. Raises TransportError if the connection failed.
        """
        if not self.program_bytes:
            return None
        with self._transaction():
            return self._transport.move_sdram_phase(steps, self._timeout)

    def _has(self, first, data):
        crc = self._transport.program_crc(first, len(data), self._timeout)
        if crc is None:
            return self._transport.read_program(first, len(data), self._timeout) == data
        return crc == zlib.crc32(data)

    def _write_piece(self, first, piece, compare):
        """Write a piece of a program, unless it is there."""
        if compare and self._has(first, piece):
            self.program_found += len(piece)
            return
        if compare:
            self._test_memory()
        self._transport.write_program(first, piece, self._timeout)
        if not compare:
            return
        self.program_sent += len(piece)
        if not self._has(first, piece):
            raise AcceleratorError(
                "the program memory does not keep what is written: bytes"
                f" {first:,}..{first + len(piece) - 1:,} are wrong; weft selftest tests the memory"
            )

    def _test_memory(self):
        """Test the program memory once; AcceleratorError if it fails."""
        if self._tested:
            return
        for name, check in quick_test(self):
            _, failure = check()
            if failure:
                raise AcceleratorError(f"the program memory fails its test: {name}: {failure}")
        self._tested = True

    def _read(self, address, count):
        return self._transport.read_memory(address, count, self._timeout)

    def _status(self):
        """Return state, report without result, and address and bytes of the result."""
        count = len(REGISTERS) - _DESCRIBED
        status, cycles, *result = self._transport.read(_DESCRIBED, count, self._timeout)
        return *status_of(status, cycles), *result

    def _wait_for_list(self, timeout, deadline):
        """Return the report of the list; if DONE is lost, read it from the registers."""
        while (ended := self._transport.list_end()) is None:
            state, report, result, count = self._status()
            if state == NetworkState.IDLE:
                raise TransportError("the core was reset while a list ran")
            if state == NetworkState.DONE:
                return dataclasses.replace(report, result=self._read(result, count))
            if state != NetworkState.RUNNING:
                return report
            if time.monotonic() > deadline:
                raise TransportTimeout(f"the list did not end within {timeout:g} s")
        return ended


def _fields(config):
    """Return the values of all fields of a NetworkCoreConfig, by name."""
    fields = dataclasses.asdict(config)
    return fields.pop("array") | fields
