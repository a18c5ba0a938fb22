"""Transports to an IP core through its registers, polled; its FIFO ports carry the streams."""

import mmap
import os
import time
from collections import deque

from weft.commands import Status
from weft.config import Config
from weft.host.register_transport import (
    RegisterAccess,
    RegisterNames,
    RegisterTransport,
    progress,
)
from weft.host.transport import Packet, TransportError
from weft.host.wire import Commands
from weft.ip import Ip
from weft.register_map import fifo_ports, registers
from weft.register_types import SPACE
from weft.registers import REGISTERS, decode

__all__ = [
    "LiteXRegisters", "MappedRegisters", "MmioTransport", "ProductTransport", "map_file",
]

# Every bus that has one of their registers or ports has it at the same address.
_IPS = [Ip(config=Config(), bus=bus) for bus in ("axi", "dma")]
_BURST = 64  # stream words of commands written between two looks at the results


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
    fresh = True


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
        size, view = self._config.bytes_in, bytes(words)
        if len(view) % size:
            raise ValueError(f"commands must be whole words of {size} bytes, not {len(view)} bytes")
        self._commands.extend(view[n : n + size] for n in range(0, len(view), size))
        self._write_commands()

    def receive(self, timeout: float) -> Packet:
        """Return all results of the next job that ends.

        Raises TransportTimeout if no word moves for ``timeout`` seconds.
        """
        self._check()
        last_move, value = time.monotonic(), self.NAMES.value
        while True:
            moved = self._write_commands()
            level = self._read("result_level")
            words = value("result_level", "words", level)
            complete = value("result_level", "complete", level)
            tag = value("result_tag", "tag", self._read("result_tag")) if complete else 0
            for _ in range(words):
                self._results += self._read("result_fifo").to_bytes(4, "little")
            if complete:
                data, self._results = bytes(self._results), bytearray()
                return Packet(tag, True, Status(value("result_level", "status", level)), data)
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
