"""Opens transports by name: a serial port, another machine, an IP core, or the golden model."""

import re

from weft.config import Config
from weft.design import NETWORK
from weft.host.board import BoardTransport
from weft.host.mmio import MappedRegisters, MmioTransport
from weft.host.network_mmio import NetworkMmioTransport
from weft.host.serial_port import SerialTransport, find
from weft.host.tcp import TcpTransport
from weft.host.transport import Transport, TransportError
from weft.registers import IDENTITY, kind_of

__all__ = ["NAMES", "open_network_transport", "open_registers", "open_transport"]

NAMES = (
    "a serial port (/dev/ttyUSB1, COM3), tcp://host:port, uio:/dev/uio0, mem:0x43c00000 or golden"
)


def open_transport(
    name: str, config: Config | None = None, *, baud: int | None = None
) -> Transport | NetworkMmioTransport:
    """Open the transport with a name.

    Parameters
    ----------
    name : str
        A serial port (``/dev/ttyUSB1``, ``COM3``); ``tcp://host:port``; the registers of an IP core
        with FIFO ports or of a network core, as ``uio:`` and a UIO device or ``mem:`` and a
        physical address; or ``golden``.
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
        return _ip_transport(registers)
    if name.startswith("/") or re.fullmatch(r"COM\d+", name, re.IGNORECASE):
        return SerialTransport(name, baud) if baud else find(name)
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
        return NetworkMmioTransport(registers)
    transport = open_transport(name)
    if not isinstance(transport, BoardTransport):
        transport.close()
        raise ValueError(
            "a network core must be at a serial port, tcp://host:port, uio:/dev/uio0 or"
            f" mem:0x43c00000, not {name}"
        )
    return transport


def _ip_transport(registers):
    """Return the transport to the core whose registers these are."""
    try:
        kind = kind_of([registers.read(4 * n) for n in range(len(IDENTITY))])
    except ValueError as error:
        registers.close()
        raise TransportError(f"the registers do not describe a Weft core: {error}") from error
    return (NetworkMmioTransport if kind == NETWORK else MmioTransport)(registers)


def open_registers(name: str) -> MappedRegisters | None:
    """Return the registers that a name starting with ``uio:`` or ``mem:`` means, else None."""
    if name.startswith("uio:/"):
        return MappedRegisters(name.removeprefix("uio:"))
    if match := re.fullmatch(r"mem:(0x[0-9a-fA-F]{1,16}|\d{1,20})", name):
        return MappedRegisters("/dev/mem", int(match[1], 0))
    return None
