"""Opens transports by name: a serial port, USB, TCP, an IP core, or the golden model."""

import mmap
import re
from pathlib import Path

from weft.config import Config
from weft.design import NETWORK
from weft.host.board import BoardTransport
from weft.host.dma import MappedMemory
from weft.host.mmio import MappedRegisters, MmioTransport
from weft.host.network_mmio import NetworkMmioTransport
from weft.host.serial_port import SerialTransport, find, usb_path
from weft.host.tcp import TcpTransport
from weft.host.transport import Transport, TransportError
from weft.network_core.register_map import REGISTERS, decode
from weft.registers import IDENTITY, kind_of

__all__ = ["NAMES", "open_network_transport", "open_registers", "open_transport"]

NAMES = (
    "a serial port (/dev/ttyUSB1, COM3), usb, usb:SERIAL, tcp://host:port, uio:/dev/uio0,"
    " mem:0x43c00000 or golden"
)
_UIO = Path("/sys/class/uio")  # where Linux describes the maps of UIO devices


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
    if name == "golden":
        from weft.host.golden import GoldenTransport

        return GoldenTransport(config or Config())
    if name.startswith("tcp:"):
        ipv6 = r"\[[0-9a-fA-F:.]+(?:%[\w.-]+)?\]"
        match = re.fullmatch(rf"tcp://({ipv6}|[^:/\[\]]+):(\d{{1,5}})/?", name)
        if not match or int(match[2]) >= 1 << 16:
            raise ValueError(f"transport must be tcp://host:port, not {name!r}")
        return TcpTransport(match[1].strip("[]"), int(match[2]))
    if registers := open_registers(name):
        return _ip_transport(registers, name)
    if name.startswith("/") or re.fullmatch(r"COM\d+", name, re.IGNORECASE):
        return find(name, baud)
    if re.fullmatch(r"usb(:.+)?", name):
        return SerialTransport(usb_path(name), None)
    raise ValueError(f"transport must be {NAMES}, not {name!r}")


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
    if match := re.fullmatch(r"mem:(0x[0-9a-fA-F]{1,16}|\d{1,20})", name):
        return MappedRegisters("/dev/mem", int(match[1], 0))
    return None
