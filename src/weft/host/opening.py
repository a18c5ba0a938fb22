"""Opens transports by name: a serial port, USB, TCP, an IP core, or the golden model."""

import mmap
import re
import time
from pathlib import Path

from weft.config import Config
from weft.design import NETWORK
from weft.host.board import BoardTransport
from weft.host.dma import DmaMemory, MappedMemory
from weft.host.mmio import (
    MappedRegisters,
    MmioTransport,
    RegisterNames,
    RegisterTransport,
    progress,
)
from weft.host.network_frames import REFUSED, MemoryLayout
from weft.host.serial_port import SerialTransport, find, usb_path
from weft.host.tcp import TcpTransport
from weft.host.transport import Transport, TransportError
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.register_map import REGISTERS, decode, network_fifo_ports, network_registers
from weft.registers import IDENTITY, kind_of

__all__ = [
    "NAMES", "NetworkMmioTransport", "check_name", "is_board", "open_network_transport",
    "open_registers", "open_transport",
]

_POLL = 0.2  # seconds in which `list_end` looks for the end of a list
_WRITE_STUCK = "the core wrote no data to its memory"
_READ_STUCK = "the core read no data of its memory"


class NetworkMmioTransport(RegisterTransport):
    """A `weft.host.network_frames.NetworkTransport` that polls registers.

    It begins with a soft reset, and lets lists use the whole memory. It has the parameters of
    `RegisterTransport`; ``timeout`` also limits the time without progress while data are written.

    Parameters
    ----------
    program : weft.host.dma.DmaMemory, optional
        The area that is the program memory, if the core has one. Its address is a multiple of the
        bytes of a beat, and no list reads or writes outside it.

    Raises
    ------
    ValueError
        If the core has a program memory and ``program`` is absent, too small or not aligned, or if
        it has none and ``program`` is given.
    """

    KIND = "a network core"
    NAMES = RegisterNames(network_registers(program=True), network_fifo_ports())
    CORE_REGISTERS = len(REGISTERS)
    DECODE = decode

    def __init__(self, access, timeout: float = 10.0, *, program: DmaMemory | None = None):
        self._timeout = timeout
        self._program = program
        super().__init__(access, timeout)

    def _describe(self, timeout):
        config = super()._describe(timeout)
        if config.program_words:
            _check_program(config, self._program)
        elif self._program is not None:
            raise ValueError("program must be absent: the core has no program memory")
        return config

    def kind_of_core(self, timeout: float) -> str:
        """Return `NETWORK` of `weft.design`: the registers are of no other core."""
        return NETWORK

    def write_program(self, offset: int, data: bytes, timeout: float) -> None:
        """Write bytes of the program memory."""
        self._program_memory().write(offset, data)

    def read_program(self, offset: int, size: int, timeout: float) -> bytes:
        """Return bytes of the program memory."""
        return self._program_memory().read(offset, size)

    def program_crc(self, offset: int, size: int, timeout: float) -> None:
        """Return None: this memory is the one of the host."""

    def move_sdram_phase(self, steps: int, timeout: float) -> None:
        """Return None: this memory is the one of the host."""

    def _program_memory(self):
        self._check()
        if self._program is None:
            raise ValueError("the core must have a program memory")
        return self._program

    def open_program(self, config: NetworkCoreConfig) -> int:
        """Return the bytes of the program memory that lists may use; 0 without one."""
        if not self._config.program_words:
            return 0
        return _program_limit(self._config, self._program) * _row(self._config)

    def close(self) -> None:
        """Release the registers and the program memory."""
        super().close()
        if self._program is not None:
            self._program.close()

    def restart_lists(self, timeout: float) -> None:
        """Reset the core, but not its memory."""
        self._check()
        self._reset(timeout)

    def _reset(self, timeout):
        super()._reset(timeout)
        self._write("base", 0)
        self._write("limit", self._config.words)
        if self._config.program_words:
            self._write("program_base", self._program.address)
            self._write("program_limit", _program_limit(self._config, self._program))

    def write_memory(self, address: int, layout: MemoryLayout, data: bytes) -> None:
        """Write bytes to the memory; the core may still store the last ones."""
        self._check()
        if data:
            self._transfer("memory_write", address, layout, len(data))
            self._write_words(data)

    def flush(self, timeout: float) -> None:
        """Wait until the memory has all data."""
        self._wait("memory_busy", timeout, _WRITE_STUCK)

    def read_memory(self, address: int, count: int, timeout: float) -> bytes:
        """Return ``count`` bytes of the memory."""
        self._transfer("memory_read", address, MemoryLayout(), count)
        found = bytearray()
        last_move = time.monotonic()
        while len(found) < count:
            level = self._read("read_fifo_level")
            for _ in range(level):
                found += self._read("read_fifo").to_bytes(4, "little")
            last_move = progress(level > 0, last_move, timeout, _READ_STUCK)
        return bytes(found[:count])

    def start_list(self, list_address: int, log_address: int) -> None:
        """Start a list when the memory has the data of all writes."""
        self._check()
        self.flush(self._timeout)
        self._write("list_address", list_address)
        self._write("log_address", log_address)
        self._write("irq_status", self.NAMES.bits("irq_status", "refused"))
        self._write("control", self.NAMES.bits("control", "start"))

    def list_end(self) -> None:
        """Return when the list has ended, or does not end soon: `NetworkDriver` reads its state.

        Raises TransportError if the core did not start it.
        """
        deadline = time.monotonic() + _POLL
        while self._read("status") & self.NAMES.bits("status", "list_busy"):
            if time.monotonic() > deadline:
                return
        if self._read("irq_status") & self.NAMES.bits("irq_status", "refused"):
            raise TransportError(REFUSED)

    def _transfer(self, register, address, layout, count):
        """Start a transfer, when the one before has ended."""
        self._wait("memory_busy", self._timeout, _WRITE_STUCK)
        self._write("memory_address", address)
        self._write("memory_layout", layout.run | layout.pitch << 8 | layout.pixels << 16)
        self._write("memory_row_step", layout.row_step)
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
            last_move = progress(count > 0, last_move, self._timeout, _WRITE_STUCK)


def _row(config):
    """Return the bytes of a word of all banks."""
    return config.banks * config.array.depth


def _program_limit(config, program):
    """Return the words of each bank that ``program`` holds."""
    return min(config.program_words, program.size // _row(config))


def _check_program(config, program):
    """Raise ValueError if ``program`` cannot be the program memory."""
    if program is None:
        raise ValueError(
            "program must be the memory of lists and weights, since the core has a program memory:"
            " NetworkMmioTransport(registers, program=...)"
        )
    if program.address % config.beat_bytes:
        raise ValueError(
            f"address of program must be a multiple of {config.beat_bytes}, not"
            f" {program.address:#x}"
        )
    if program.address + program.size > 1 << 32:
        raise ValueError(
            f"program must lie below 0x100000000, not {program.size:#x} bytes from"
            f" {program.address:#x}"
        )
    if program.size < _row(config):
        raise ValueError(f"program must have at least {_row(config)} bytes, not {program.size}")


NAMES = (
    "a serial port (/dev/ttyUSB1, COM3), usb, usb:SERIAL, tcp://host:port, uio:/dev/uio0,"
    " mem:0x43c00000 or golden"
)
_TCP = r"tcp://(\[[0-9a-fA-F:.]+(?:%[\w.-]+)?\]|[^:/\[\]]+):(\d{1,5})/?"  # host, port
_MEM = r"mem:(0x[0-9a-fA-F]{1,16}|\d{1,20})"
_UIO = Path("/sys/class/uio")  # where Linux describes the maps of UIO devices


def check_name(name: str) -> None:
    """Raise ValueError if ``name`` has none of the forms of `open_transport`; open nothing."""
    if name.startswith("tcp:"):
        match = re.fullmatch(_TCP, name)
        if not match or int(match[2]) >= 1 << 16:
            raise ValueError(f"transport must be tcp://host:port, not {name!r}")
    elif not is_board(name) and not re.fullmatch(rf"golden|uio:/(?s:.*)|{_MEM}", name):
        raise ValueError(f"transport must be {NAMES}, not {name!r}")


def is_board(name: str) -> bool:
    """Whether ``name`` is of a local board: a serial port, or USB."""
    return bool(re.fullmatch(r"(?s:/.*|(?i:COM\d+)|usb(:.+)?)", name))


def open_transport(
    name: str, config: Config | None = None, *, baud: int | None = None
) -> Transport | NetworkMmioTransport:
    """Open the transport with a name.

    Parameters
    ----------
    name : str
        A serial port (``/dev/ttyUSB1``, ``COM3``); ``usb``, or ``usb:`` and a serial number, for a
        board whose FPGA is on USB; ``tcp://host:port``; the registers of an IP core
        with FIFO ports or of a network core, as ``uio:`` and a UIO device or ``mem:`` and a
        physical address; or ``golden``. Map 1 of the UIO device is the program memory of a network
        core that has one.
    config : Config, optional
        Config of ``golden``; default ``Config()``.
    baud : int, optional
        Baud rate of a serial port; by default the first common rate at which a board answers.

    Returns
    -------
    Transport
        A NetworkMmioTransport if the registers belong to a network core.

    Raises
    ------
    ValueError
        If ``name`` has none of these forms.
    TransportError
        If the transport cannot be opened.
    """
    check_name(name)
    if name == "golden":
        from weft.host.emulated import GoldenTransport

        return GoldenTransport(config or Config())
    if match := re.fullmatch(_TCP, name):
        return TcpTransport(match[1].strip("[]"), int(match[2]))
    if registers := open_registers(name):
        return _ip_transport(registers, name)
    if name.startswith("usb"):
        return SerialTransport(usb_path(name), None)
    return find(name, baud)


def open_network_transport(name: str) -> BoardTransport | NetworkMmioTransport:
    """Open the transport to a network core: a serial port, TCP, ``uio:`` or ``mem:``.

    Raises
    ------
    ValueError
        If ``name`` has none of these forms.
    TransportError
        If the transport cannot be opened.
    """
    if registers := open_registers(name):
        return _network_transport(registers, name)
    transport = open_transport(name)
    if not isinstance(transport, BoardTransport):
        transport.close()
        raise ValueError(
            "a network core must be at a serial port, usb, tcp://host:port, uio:/dev/uio0 or"
            f" mem:0x43c00000, not {name}"
        )
    return transport


def _ip_transport(registers, name):
    """Return the transport to the core whose registers these are."""
    try:
        kind = kind_of([registers.read(4 * n) for n in range(len(IDENTITY))])
    except ValueError as error:
        registers.close()
        raise TransportError(f"the registers do not describe a Weft core: {error}") from error
    return _network_transport(registers, name) if kind == NETWORK else MmioTransport(registers)


def _network_transport(registers, name):
    """Return the transport to a network core; TransportError if its program memory is missing."""
    try:
        return NetworkMmioTransport(registers, program=_program_memory(registers, name))
    except ValueError as error:
        raise TransportError(
            f"{name}: {error}; the program memory of a core at uio: is map 1 of the device"
        ) from error


def _program_memory(registers, name):
    """Return the memory of a UIO device for the program memory of its core, if it has both."""
    try:
        config = decode([registers.read(4 * n) for n in range(len(REGISTERS))])
    except ValueError:
        return None  # the transport refuses the core
    device = Path(name.removeprefix("uio:"))
    facts = _UIO / device.name / "maps/map1"
    if not config.program_words or not name.startswith("uio:") or not facts.is_dir():
        return None
    try:
        address, size = (int((facts / part).read_text(), 0) for part in ("addr", "size"))
        return MappedMemory(str(device), address, size, mmap.PAGESIZE)
    except (OSError, ValueError, TransportError) as error:
        registers.close()
        raise TransportError(f"{name}: the program memory was not mapped: {error}") from error


def open_registers(name: str) -> MappedRegisters | None:
    """Return the registers that a name starting with ``uio:`` or ``mem:`` means, else None."""
    if name.startswith("uio:/"):
        return MappedRegisters(name.removeprefix("uio:"))
    if match := re.fullmatch(_MEM, name):
        return MappedRegisters("/dev/mem", int(match[1], 0))
    return None
