"""Transports to an IP core through its registers, polled; its FIFO ports carry the streams."""

import mmap
import os
import time
from collections import deque
from typing import Protocol

from weft.commands import Status
from weft.config import Config
from weft.host.transport import Packet, TransportClosed, TransportError, TransportTimeout
from weft.ip import Ip
from weft.register_map import fifo_ports, registers
from weft.register_types import SPACE
from weft.registers import REGISTERS, decode

__all__ = [
    "LiteXRegisters", "MappedRegisters", "MmioTransport", "RegisterAccess", "RegisterTransport",
    "field_bits", "field_value", "map_file",
]

# Every IP core that has one of these registers or ports has it at the same address.
_IPS = [Ip(config=Config(), bus=bus) for bus in ("axi", "dma")]
_ADDRESS = {register.name: register.address for ip in _IPS for register in registers(ip)}
_ADDRESS |= {port.name: port.address for ip in _IPS for port in fifo_ports(ip)}
_FIELDS = {
    (register.name, field.name): field
    for ip in _IPS for register in registers(ip) for field in register.fields
}
_BURST = 64  # stream words of commands written between two looks at the results


def field_value(register: str, field: str, value: int) -> int:
    """Return a bit field of the ``value`` of a register."""
    place = _FIELDS[register, field]
    return value >> place.low & (1 << place.width) - 1


def field_bits(register: str, *names: str) -> int:
    """Return the value of a register whose bit fields ``names``, one bit each, are 1."""
    return sum(1 << _FIELDS[register, name].low for name in names)


def map_file(path: str, size: int, offset: int) -> mmap.mmap:
    """Return a part of a file, mapped to read and write.

    Raises
    ------
    ValueError
        If ``offset`` is not a multiple of the page size.
    TransportError
        If the file cannot be opened or mapped.
    """
    if offset % mmap.PAGESIZE:
        raise ValueError(f"offset must be a multiple of {mmap.PAGESIZE}, not {offset:#x}")
    try:
        file = os.open(path, os.O_RDWR | os.O_SYNC)
        try:
            return mmap.mmap(file, size, offset=offset)
        finally:
            os.close(file)
    except (OSError, ValueError) as error:
        raise TransportError(f"{path} was not mapped at {offset:#x}: {error}") from error


class RegisterAccess(Protocol):
    """32-bit accesses to the register space of a core, by byte address from its start."""

    def read(self, address: int) -> int:
        """Return the word at ``address``."""

    def write(self, address: int, value: int) -> None:
        """Write a word."""

    def close(self) -> None:
        """Release the register space. Closing twice has no effect."""


class MappedRegisters:
    """Registers in a file that maps memory: ``/dev/uio0``, or ``/dev/mem`` at an address.

    Parameters
    ----------
    path : str
        The file.
    offset : int
        Position of the register space in the file: its physical address in ``/dev/mem``, 0 in a
        UIO device. A multiple of the page size.

    Raises
    ------
    ValueError
        If ``offset`` is not a multiple of the page size.
    TransportError
        If the file cannot be opened or mapped.
    """

    def __init__(self, path: str, offset: int = 0):
        self._map = map_file(path, SPACE, offset)
        # Items of this view are read and written with one access of 32 bits each.
        self._words = memoryview(self._map).cast("I")

    def read(self, address: int) -> int:
        """Return the word at ``address``."""
        return self._words[address // 4]

    def write(self, address: int, value: int) -> None:
        """Write a word."""
        self._words[address // 4] = value

    def close(self) -> None:
        """Unmap the registers."""
        self._words.release()
        self._map.close()


class LiteXRegisters:
    """Registers behind LiteX's ``RemoteClient``, which ``litex_server`` connects to a SoC.

    Parameters
    ----------
    client : RemoteClient
        An open client; it has ``read(address)``, ``write(address, value)`` and ``close()``.
    base : int
        Bus address of the register space.
    """

    def __init__(self, client, base: int):
        self._client, self._base = client, base

    def read(self, address: int) -> int:
        """Return the word at ``address``."""
        return self._client.read(self._base + address)

    def write(self, address: int, value: int) -> None:
        """Write a word."""
        self._client.write(self._base + address, value)

    def close(self) -> None:
        """Close the client."""
        self._client.close()


class RegisterTransport:
    """The part of a transport that any IP core has: its registers, soft reset and abort.

    It begins with a soft reset, so nothing of an earlier client is left.

    Parameters
    ----------
    access : RegisterAccess
        The registers; the transport closes them.
    timeout : float
        Maximum seconds for the soft reset.

    Raises
    ------
    TransportError
        If the first register is not a core's, or the core does not leave its reset.
    """

    fresh = True

    def __init__(self, access: RegisterAccess, timeout: float = 10.0):
        self._access = access
        self._closed = False
        try:
            self._config = self._describe()
            self._reset(timeout)
        except BaseException:
            self.close()
            raise

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        """Return the values of ``count`` of the core's registers, from word ``address`` on."""
        self._check()
        return [
            self._access.read(4 * n) if n < len(REGISTERS) else 0
            for n in range(address, address + count)
        ]

    def abort(self, timeout: float) -> None:
        """Abort the running job."""
        self._check()
        self._write("control", field_bits("control", "abort"))

    def close(self) -> None:
        """Release the registers."""
        if not self._closed:
            self._closed = True
            self._access.close()

    def _describe(self):
        words = [self._access.read(4 * n) for n in range(len(REGISTERS))]
        try:
            return decode(words)
        except ValueError as error:
            raise TransportError(f"the registers do not describe a Weft core: {error}") from error

    def _reset(self, timeout):
        self._write("control", field_bits("control", "reset"))
        start = time.monotonic()
        while field_value("status", "reset_busy", self._read("status")):
            if time.monotonic() - start > timeout:
                raise TransportTimeout(f"the core did not leave its reset within {timeout:g} s")

    def _check(self):
        if self._closed:
            raise TransportClosed("the registers of the core are closed")

    def _read(self, name):
        return self._access.read(_ADDRESS[name])

    def _write(self, name, value):
        self._access.write(_ADDRESS[name], value)


class MmioTransport(RegisterTransport):
    """A `weft.host.transport.Transport` over the FIFO ports of an IP core.

    The core must have them: its bus is ``axi``, ``wishbone`` or ``apb``. The transport polls; it
    needs no interrupt. It has the parameters of `RegisterTransport`.
    """

    def __init__(self, access: RegisterAccess, timeout: float = 10.0):
        super().__init__(access, timeout)
        self._commands: deque[bytes] = deque()  # stream words that wait for space
        self._results = bytearray()  # result words of the job that is being read

    def restart(self, timeout: float) -> None:
        """Discard the stream words that were not written yet."""
        self._check()
        self._commands.clear()

    def send(self, commands: bytes) -> None:
        """Queue stream words, and write as many of them as CMD_FIFO has space for."""
        self._check()
        size, view = self._config.bytes_in, bytes(commands)
        if len(view) % size:
            raise ValueError(f"commands must be whole words of {size} bytes, not {len(view)} bytes")
        self._commands.extend(view[n : n + size] for n in range(0, len(view), size))
        self._write_commands()

    def receive(self, timeout: float) -> Packet:
        """Return all results of the next job that ends.

        Raises TransportTimeout if no word moves for ``timeout`` seconds.
        """
        self._check()
        last_move = time.monotonic()
        while True:
            moved = self._write_commands()
            level = self._read("result_level")
            words = field_value("result_level", "words", level)
            complete = field_value("result_level", "complete", level)
            tag = field_value("result_tag", "tag", self._read("result_tag")) if complete else 0
            for _ in range(words):
                self._results += self._read("result_fifo").to_bytes(4, "little")
            if complete:
                data, self._results = bytes(self._results), bytearray()
                return Packet(tag, True, Status(field_value("result_level", "status", level)), data)
            if moved or words:
                last_move = time.monotonic()
            elif time.monotonic() - last_move > timeout:
                raise TransportTimeout(f"no result word arrived for {timeout:g} s")

    def _write_commands(self) -> bool:
        """Write stream words while there is space for whole ones; whether any was written."""
        if not self._commands:
            return False
        words = self._config.bytes_in // 4
        count = min(self._read("cmd_fifo_free") // words, len(self._commands), _BURST)
        for _ in range(count):
            word = self._commands.popleft()
            for n in range(words):
                self._write("cmd_fifo", int.from_bytes(word[4 * n : 4 * n + 4], "little"))
        return count > 0
