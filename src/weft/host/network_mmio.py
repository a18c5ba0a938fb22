"""The transport to a core for networks behind a bus: its frames become accesses to registers."""

import struct
import time

from weft.chip.register_map import network_fifo_ports, network_registers
from weft.chip.registers import REGISTERS, decode
from weft.frames import WRITE_FIELDS, FrameType
from weft.host.link import Frame
from weft.host.mmio import RegisterAccess
from weft.host.transport import TransportClosed, TransportError, TransportTimeout

__all__ = ["NetworkMmioTransport"]

_REGISTERS = {register.name: register for register in network_registers()}
_ADDRESS = {register.name: register.address for register in _REGISTERS.values()}
_ADDRESS |= {port.name: port.address for port in network_fifo_ports()}
_POLL = 0.2  # seconds in which `receive_list` looks for the end of a list
_WRITE_STUCK = "the core wrote no data to its memory"


class NetworkMmioTransport:
    """Executes the frames of `weft.host.network_driver.NetworkDriver` on registers, polled.

    It begins with a soft reset, and lets lists use the whole memory.

    Parameters
    ----------
    access : RegisterAccess
        The registers; the transport closes them.
    timeout : float
        Maximum seconds for the soft reset, and without progress while data are written.

    Raises
    ------
    TransportError
        If the registers are not the ones of a core for networks; nothing is written then.
    TransportTimeout
        If the core does not leave its reset.
    """

    def __init__(self, access: RegisterAccess, timeout: float = 10.0):
        self._access = access
        self._timeout = timeout
        self._closed = False
        self._number = 0  # of frames so far
        try:
            self._check_core()
            self.restart(timeout)
        except BaseException:
            self.close()
            raise

    def restart(self, timeout: float, empty: FrameType = FrameType.WRITE) -> None:
        """Reset the core, but not its memory; ``empty`` is for the link only."""
        self._check()
        self._write("control", _bit("control", "reset"))
        self._wait("reset_busy", timeout, "the core did not leave its reset")
        words = self._access.read(4 * REGISTERS.index("words"))
        self._write("base", 0)
        self._write("limit", words)

    def post(self, frame_type: FrameType, payload: bytes) -> int:
        """Execute a WRITE or START frame; return a number for it."""
        self._check()
        self._number += 1
        if frame_type == FrameType.START:
            for name, value in zip(
                ("list_address", "log_address"), struct.unpack("<2I", payload), strict=True
            ):
                self._write(name, value)
            self._write("irq_status", _bit("irq_status", "refused"))
            self._write("control", _bit("control", "start"))
        elif len(payload) > WRITE_FIELDS:
            self._transfer("memory_write", payload[:WRITE_FIELDS], len(payload) - WRITE_FIELDS)
            self._write_words(payload[WRITE_FIELDS:])
        return self._number

    def flush(self, timeout: float) -> None:
        """Wait until the memory has all data of the WRITE frames."""
        self._wait("memory_busy", timeout, _WRITE_STUCK)

    def request(
        self, frame_type: FrameType, payload: bytes, answer_type: FrameType, timeout: float
    ) -> bytes:
        """Return the bytes of a READ_MEMORY frame."""
        address, count = struct.unpack("<2I", payload)
        self._transfer("memory_read", struct.pack("<3I", address, 0, 0), count)
        found = bytearray()
        last_move = time.monotonic()
        while len(found) < count:
            level = self._read("read_fifo_level")
            for _ in range(level):
                found += self._read("read_fifo").to_bytes(4, "little")
            last_move = _progress(level, last_move, timeout, "the core read no data of its memory")
        return bytes(found[:count])

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        """Return the values of ``count`` of the core's registers, from word ``address`` on."""
        self._check()
        return [
            self._access.read(4 * n) if n < len(REGISTERS) else 0
            for n in range(address, address + count)
        ]

    def abort(self, timeout: float) -> None:
        """Abort the running list."""
        self._check()
        self._write("control", _bit("control", "abort"))

    def receive_list(self, number: int) -> Frame | None:
        """Return an ERROR frame if the core did not start the list of the last START frame.

        Returns None if the list has ended, or does not end soon: `NetworkDriver` reads its state.
        """
        deadline = time.monotonic() + _POLL
        while self._read("status") & _bit("status", "list_busy"):
            if time.monotonic() > deadline:
                return None
        if self._read("irq_status") & _bit("irq_status", "refused"):
            return Frame(FrameType.ERROR, number % 256, b"busy")
        return None

    def close(self) -> None:
        """Release the registers. Closing twice has no effect."""
        if not self._closed:
            self._closed = True
            self._access.close()

    def _check_core(self):
        """Raise TransportError if the registers do not describe a core for networks."""
        try:
            decode(self.read(0, REGISTERS.index("NET_STATUS"), self._timeout))
        except ValueError as error:
            raise TransportError(
                f"the registers do not describe a core for networks: {error}"
            ) from error

    def _transfer(self, register, fields, count):
        """Start a transfer, when the one before has ended."""
        self._wait("memory_busy", self._timeout, _WRITE_STUCK)
        names = "memory_address", "memory_layout", "memory_row_step"
        for name, value in zip(names, struct.unpack("<3I", fields), strict=True):
            self._write(name, value)
        self._write(register, count)

    def _write_words(self, data):
        """Write the data of a transfer, as WRITE_FIFO has space."""
        words = [
            int.from_bytes(data[start : start + 4], "little") for start in range(0, len(data), 4)
        ]
        first, last_move = 0, time.monotonic()
        while first < len(words):
            count = min(self._read("write_fifo_free"), len(words) - first)
            for word in words[first : first + count]:
                self._write("write_fifo", word)
            first += count
            last_move = _progress(count, last_move, self._timeout, _WRITE_STUCK)

    def _wait(self, field, timeout, text):
        """Wait until a field of STATUS is 0."""
        self._check()
        start = time.monotonic()
        while self._read("status") & _bit("status", field):
            _progress(0, start, timeout, text)

    def _check(self):
        if self._closed:
            raise TransportClosed("the registers of the core are closed")

    def _read(self, name):
        return self._access.read(_ADDRESS[name])

    def _write(self, name, value):
        self._access.write(_ADDRESS[name], value)


def _bit(register, field):
    """The value of a register whose only bit is the one of a field."""
    return 1 << next(f.low for f in _REGISTERS[register].fields if f.name == field)


def _progress(moved, last_move, timeout, text):
    """Return the time of the last progress; TransportTimeout if it is too long ago."""
    now = time.monotonic()
    if moved:
        return now
    if now - last_move > timeout:
        raise TransportTimeout(f"{text} for {timeout:g} s")
    return last_move
