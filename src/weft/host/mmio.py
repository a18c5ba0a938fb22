"""The registers of an IP core: their names, the ways to them, and transports over them.

`RegisterTransport` is the base of all these transports. `MmioTransport` moves the streams of a
product core through its FIFO ports, polled.
"""

import mmap
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol

from weft.commands import Status
from weft.config import Config
from weft.host.transport import Commands, Packet, TransportClosed, TransportError, TransportTimeout
from weft.ip import Ip
from weft.register_map import fifo_ports, registers
from weft.registers import REGISTERS, SPACE, Field, FifoPort, Register, decode

__all__ = [
    "LiteXRegisters", "MappedRegisters", "MmioTransport", "ProductTransport", "RegisterAccess",
    "RegisterNames", "RegisterReader", "RegisterTransport", "map_file", "progress",
]


class RegisterAccess(Protocol):
    """32-bit accesses to the register space of a core, by byte address from its start."""

    def read(self, address: int) -> int:
        """Return the word at ``address``."""

    def write(self, address: int, value: int) -> None:
        """Write a word."""

    def close(self) -> None:
        """Release the register space. Closing twice has no effect."""


class RegisterNames:
    """Registers and FIFO ports by their names.

    Attributes
    ----------
    address : dict of int
        Of registers and FIFO ports.
    """

    def __init__(self, registers: Iterable[Register], ports: Iterable[FifoPort]):
        self.address = {port.name: port.address for port in ports}
        self._fields: dict[tuple[str, str], Field] = {}
        for register in registers:
            self.address[register.name] = register.address
            self._fields |= {(register.name, field.name): field for field in register.fields}

    def value(self, register: str, field: str, word: int) -> int:
        """Return a bit field of the value ``word`` of a register."""
        bits = self._fields[register, field]
        return word >> bits.low & (1 << bits.width) - 1

    def bits(self, register: str, *fields: str) -> int:
        """Return the value of a register whose bit fields ``fields``, one bit each, are 1."""
        return sum(1 << self._fields[register, name].low for name in fields)


class RegisterReader:
    """Reads the registers of an IP core while another program uses it.

    A `RegisterTransport` resets the core first; this does not, and has no commands.

    Parameters
    ----------
    access : RegisterAccess
    """

    fresh = True  # so that a session sends nothing to resynchronize with the core

    def __init__(self, access: RegisterAccess):
        self._access = access

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        """Return the values of ``count`` of the core's registers, from word ``address`` on."""
        return [self._access.read(4 * n) for n in range(address, address + count)]

    def close(self) -> None:
        """Release the registers."""
        self._access.close()


class RegisterTransport:
    """The registers of any IP core, its soft reset and abort; a subclass adds its data.

    It begins with a soft reset, so nothing of an earlier client is left. A subclass describes the
    kind of core: ``KIND`` for messages, ``NAMES``, ``CORE_REGISTERS``, which counts the core's own
    registers, and ``DECODE``, which makes the config of these registers or raises ValueError.

    Parameters
    ----------
    access : RegisterAccess
        The registers; the transport closes them.
    timeout : float
        Maximum seconds for the soft reset.

    Raises
    ------
    TransportError
        If the registers are not the ones of such a core; nothing is written then.
    TransportTimeout
        If the core does not leave its reset.
    """

    KIND: ClassVar[str]
    NAMES: ClassVar[RegisterNames]
    CORE_REGISTERS: ClassVar[int]
    DECODE: ClassVar[Callable[[list[int]], Any]]

    def __init__(self, access: RegisterAccess, timeout: float = 10.0):
        self._access = access
        self._closed = False
        try:
            self._config = self._describe(timeout)
            self._reset(timeout)
        except BaseException:
            self.close()
            raise

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        """Return the values of ``count`` of the core's registers, from word ``address`` on."""
        self._check()
        # The register port of a core answers 0 beyond its registers. A register access has no limit
        # of time, so ``timeout`` is only for other transports.
        return [
            self._access.read(4 * n) if n < self.CORE_REGISTERS else 0
            for n in range(address, address + count)
        ]

    def abort(self, timeout: float) -> None:
        """Abort the running job or list."""
        self._check()
        self._write("control", self.NAMES.bits("control", "abort"))

    def close(self) -> None:
        """Release the registers. Closing twice has no effect."""
        if not self._closed:
            self._closed = True
            self._access.close()

    def _describe(self, timeout):
        try:
            return type(self).DECODE(self.read(0, self.CORE_REGISTERS, timeout))
        except ValueError as error:
            raise TransportError(f"the registers do not describe {self.KIND}: {error}") from error

    def _reset(self, timeout):
        self._write("control", self.NAMES.bits("control", "reset"))
        self._wait("reset_busy", timeout, "the core did not leave its reset")

    def _wait(self, field, timeout, text):
        """Wait until a field of STATUS is 0."""
        self._check()
        start = time.monotonic()
        while self.NAMES.value("status", field, self._read("status")):
            progress(False, start, timeout, text)

    def _check(self):
        if self._closed:
            raise TransportClosed("the registers of the core are closed")

    def _read(self, name):
        return self._access.read(self.NAMES.address[name])

    def _write(self, name, value):
        self._access.write(self.NAMES.address[name], value)


def progress(moved: bool, last_move: float, timeout: float, text: str) -> float:
    """Return the time of the last progress; TransportTimeout if it is too long ago."""
    now = time.monotonic()
    if moved:
        return now
    if now - last_move > timeout:
        raise TransportTimeout(f"{text} for {timeout:g} s")
    return last_move


# Ways to the registers.

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


# These two buses together have all registers and FIFO ports of a product core. A register or a port
# has the same address on every bus.
_IPS = [Ip(config=Config(), bus=bus) for bus in ("axi", "dma")]


class ProductTransport(RegisterTransport):
    """The part of a `weft.host.transport.Transport` to an IP product core of any bus.

    It has the parameters of `RegisterTransport`.
    """

    KIND = "a Weft core"
    NAMES = RegisterNames(
        [register for ip in _IPS for register in registers(ip)], fifo_ports(_IPS[0])
    )
    CORE_REGISTERS = len(REGISTERS)
    DECODE = decode
    fresh = True  # after its soft reset, the core is idle


_BURST = 64  # stream words of commands written between two looks at the results


class MmioTransport(ProductTransport):
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

    def send(self, commands: Commands) -> None:
        """Queue commands, and write as many of their words as CMD_FIFO has space for."""
        self.send_words(commands.encode())

    def send_words(self, words: bytes) -> None:
        """Queue words of the command stream, and write as many as CMD_FIFO has space for."""
        self._check()
        size, data = self._config.bytes_in, bytes(words)
        if len(data) % size:
            raise ValueError(f"commands must be whole words of {size} bytes, not {len(data)} bytes")
        self._commands.extend(data[n : n + size] for n in range(0, len(data), size))
        self._write_commands()

    def receive(self, timeout: float) -> Packet:
        """Return all results of the next job that ends.

        Raises TransportTimeout if no word moves for ``timeout`` seconds.
        """
        self._check()
        last_move, value = time.monotonic(), self.NAMES.value
        while True:
            moved = self._write_commands()
            word = self._read("result_level")
            words = value("result_level", "words", word)
            complete = value("result_level", "complete", word)
            tag = value("result_tag", "tag", self._read("result_tag")) if complete else 0
            for _ in range(words):
                self._results += self._read("result_fifo").to_bytes(4, "little")
            if complete:
                data, self._results = bytes(self._results), bytearray()
                return Packet(tag, True, Status(value("result_level", "status", word)), data)
            last_move = progress(
                moved or words > 0, last_move, timeout, "no result word arrived"
            )

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
