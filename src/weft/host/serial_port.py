"""A board on a serial port."""

import errno
import threading
from contextlib import suppress

from weft.frames import MAX_PAYLOAD
from weft.hints import to_install
from weft.host.board import BoardTransport
from weft.host.transport import TransportError, TransportTimeout

__all__ = ["RATES", "SerialPort", "SerialTransport", "find"]

RATES = 3_000_000, 2_000_000, 1_000_000  # of boards, the commonest first
_PROBE_TIMEOUT = 3.0  # seconds within which a board answers the first question
_POLL = 0.2  # seconds after which a read looks whether the port was closed
_STUCK = 5.0  # seconds after which a port that takes nothing is broken
_BITS = 10  # of a byte on the wire


class SerialPort:
    """The bytes of a serial port, opened for this process alone; 8 data bits, no parity, one stop.

    It stands for both files of a `weft.host.link.FramedTransport`.

    Parameters
    ----------
    path : str
        ``/dev/ttyUSB1``, ``COM3``.
    baud : int

    Raises
    ------
    TransportError
        Where there is no such port, it may not be opened, or another process has it.
    """

    def __init__(self, path: str, baud: int):
        if baud < 1:
            raise ValueError(f"baud must be 1 or more, not {baud}")
        try:
            import serial
        except ImportError:
            raise TransportError(
                f"pyserial must be 3.5 or newer, and is not installed; {to_install(extra='serial')}"
            ) from None
        try:
            self._port = serial.Serial(
                path, baud, timeout=_POLL, write_timeout=_STUCK, exclusive=True
            )
        except (OSError, ValueError) as error:
            raise TransportError(_why(path, baud, error)) from error
        # Adapters otherwise keep what came for as long as 16 ms; not all of them can be told.
        with suppress(AttributeError, OSError, ValueError):
            self._port.set_low_latency_mode(True)
        self._port.reset_input_buffer()
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._open = True

    def read1(self, count: int) -> bytes:
        """What is there, a byte or more; nothing once the port was closed."""
        while self._open:
            with self._reading:
                if self._open and (data := self._read(count)):
                    return data
        return b""

    read = read1

    def write(self, data) -> int:
        """Write all of it; OSError where the port takes nothing."""
        with self._writing:
            if not self._open:
                raise OSError("the port is closed")
            return self._port.write(data)

    def flush(self) -> None:
        """Nothing: what is written goes out."""

    def close(self) -> None:
        """Let another process have the port. Closing twice is fine."""
        self._open = False
        with self._reading, self._writing:  # neither may find the port closed under its hands
            self._port.close()

    def _read(self, count):
        return self._port.read(max(1, min(count, self._port.in_waiting)))


class SerialTransport(BoardTransport):
    """The `Transport` to a board on a serial port.

    Parameters
    ----------
    path : str
    baud : int
        As the board was built for.

    Attributes
    ----------
    baud : int

    Raises
    ------
    TransportError
        Where the port cannot be had, or no Weft core answers on it.
    """

    def __init__(self, path: str, baud: int):
        port = SerialPort(path, baud)
        self.baud = baud
        # The time of ten frames, besides what adapters and operating systems add.
        timeout = 0.25 + 10 * MAX_PAYLOAD * _BITS / baud
        super().__init__(port, port, name=f"{path} at {baud} baud", timeout=timeout)
        try:
            self.probe(_PROBE_TIMEOUT + 2 * timeout)
        except BaseException:
            self.close()
            raise


def find(path: str) -> SerialTransport:
    """The transport to the board on a port, at the first of `RATES` at which one answers.

    Raises TransportError where the port cannot be had, or no Weft core answers at any of them.
    """
    for baud in RATES:
        try:
            return SerialTransport(path, baud)
        except TransportTimeout as error:
            last = error
        except TransportError as error:
            if not isinstance(error.__cause__, ValueError):  # else the port has no such rate
                raise
            last = error
    rates = ", ".join(map(str, RATES[:-1]))
    raise TransportTimeout(f"none answers at {rates} baud either; {last}") from last


def _why(path, baud, error):
    """What is wrong with a port that can't be opened, and what to do."""
    code = getattr(error, "errno", None)
    text = str(error)
    if isinstance(error, ValueError):
        return f"baud must be a rate that {path} has, not {baud}: {text}"
    if code == errno.ENOENT:
        return f"{path} must be a serial port of this machine: {_ports()}"
    if code in (errno.EACCES, errno.EPERM):
        return f"{path} must be open to this user, and is not: {_group(path)}"
    if code in (errno.EBUSY, errno.EWOULDBLOCK) or "exclusively lock" in text:
        return f"{path} must be free, and another program has it"
    return f"{path} must be a serial port that opens: {text}"


def _ports():
    from serial.tools.list_ports import comports

    found = ", ".join(sorted(port.device for port in comports()))
    return f"there are {found}" if found else "it has none"


def _group(path):
    """How a user gets at a device."""
    try:
        import grp
        import os

        group = grp.getgrgid(os.stat(path).st_gid).gr_name
    except (ImportError, KeyError, OSError):
        return "another program may have it, or it needs an administrator"
    return f"its group is {group}; type: sudo usermod -aG {group} $USER, and log in again"
