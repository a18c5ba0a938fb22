"""The transport to a board on a serial port."""

import errno
import threading
from contextlib import suppress

from weft.frames import MAX_WRITE
from weft.hints import to_install
from weft.host.board import BoardTransport
from weft.host.transport import TransportBusy, TransportError, TransportTimeout

__all__ = ["RATES", "SerialPort", "SerialTransport", "find", "open_exclusively"]

RATES = 3_000_000, 2_000_000, 1_000_000  # baud rates of boards, the most common first
_PROBE_TIMEOUT = 3.0  # seconds until a board must answer the first request
_POLL = 0.2  # seconds between two checks whether the port was closed
_WRITE_TIMEOUT = 5.0  # seconds until a port that accepts no bytes is an error
_BITS = 10  # bits per byte on the wire


class SerialPort:
    """A serial port, opened exclusively: 8 data bits, no parity, 1 stop bit.

    It is both the reader and the writer of a `weft.host.link.FramedTransport`.

    Parameters
    ----------
    path : str
        Name of the port, such as ``/dev/ttyUSB1`` or ``COM3``.
    baud : int
        Baud rate.

    Raises
    ------
    ValueError
        If ``baud`` is less than 1.
    TransportError
        If the port does not exist, cannot be opened or is in use, or pyserial is not installed.
    """

    def __init__(self, path: str, baud: int):
        self._port = open_exclusively(path, baud, _POLL, _WRITE_TIMEOUT)
        self._read_lock, self._write_lock = threading.Lock(), threading.Lock()
        self._open = True

    def read1(self, count: int) -> bytes:
        """Return the available bytes, at least one; b"" once the port is closed."""
        while self._open:
            with self._read_lock:
                if self._open and (data := self._read(count)):
                    return data
        return b""

    read = read1

    def write(self, data) -> int:
        """Write all of ``data``; OSError if the port accepts no bytes."""
        with self._write_lock:
            if not self._open:
                raise OSError("the port is closed")
            return self._port.write(data)

    def flush(self) -> None:
        """Do nothing: written bytes are sent at once."""

    def close(self) -> None:
        """Release the port. Closing twice has no effect."""
        self._open = False
        with self._read_lock, self._write_lock:  # never close the port during a read or write
            self._port.close()

    def _read(self, count):
        return self._port.read(max(1, min(count, self._port.in_waiting)))


class SerialTransport(BoardTransport):
    """A `Transport` to a board on a serial port.

    Parameters
    ----------
    path : str
        Name of the port, such as ``/dev/ttyUSB1`` or ``COM3``.
    baud : int
        Baud rate for which the board was built.

    Attributes
    ----------
    baud : int

    Raises
    ------
    TransportError
        If the port cannot be opened, or no Weft core answers on it.
    """

    def __init__(self, path: str, baud: int):
        port = SerialPort(path, baud)
        self.baud = baud
        # Ten frames on the wire, and the latency of adapters and operating systems.
        timeout = 0.25 + 10 * MAX_WRITE * _BITS / baud
        super().__init__(port, port, name=f"{path} at {baud} baud", timeout=timeout)
        try:
            self.probe(_PROBE_TIMEOUT + 2 * timeout)
        except BaseException:
            self.close()
            raise


def open_exclusively(path: str, baud: int, read_timeout: float, write_timeout: float):
    """Open a port that no other program uses, with an empty input buffer, by pyserial.

    The timeouts are those of a read and a write, in seconds. Raises as `SerialPort` does.
    """
    if baud < 1:
        raise ValueError(f"baud must be 1 or more, not {baud}")
    try:
        import serial
    except ImportError:
        raise TransportError(
            f"pyserial must be 3.5 or newer, and is not installed; {to_install(extra='serial')}"
        ) from None
    try:
        port = serial.Serial(
            path, baud, timeout=read_timeout, write_timeout=write_timeout, exclusive=True
        )
    except (OSError, ValueError) as error:
        raise _open_error(path, baud, error) from error
    # Otherwise USB adapters buffer received bytes for up to 16 ms. Not all have this setting.
    with suppress(AttributeError, OSError, ValueError):
        port.set_low_latency_mode(True)
    port.reset_input_buffer()
    return port


def find(path: str) -> SerialTransport:
    """Open a port at the first baud rate of `RATES` at which a board answers.

    Raises TransportError if the port cannot be opened, or no Weft core answers at any rate.
    """
    last: TransportError
    for baud in RATES:
        try:
            return SerialTransport(path, baud)
        except TransportTimeout as error:
            last = error
        except TransportError as error:
            if not isinstance(error.__cause__, ValueError):  # else the port lacks this rate
                raise
            last = error
    rates = ", ".join(map(str, RATES[:-1]))
    raise TransportTimeout(f"no answer at {rates} baud either; {last}") from last


def _open_error(path, baud, error):
    """Return the error of a port that cannot be opened: why, and what to do."""
    code = getattr(error, "errno", None)
    if code in (errno.EBUSY, errno.EWOULDBLOCK) or "exclusively lock" in str(error):
        return TransportBusy(f"{path} is in use by another program")
    return TransportError(_open_text(path, baud, error, code))


def _open_text(path, baud, error, code):
    text = str(error)
    if isinstance(error, ValueError):
        return f"baud must be a rate that {path} supports, not {baud}: {text}"
    if code == errno.ENOENT:
        return f"{path} is not a serial port of this machine: {_ports()}"
    if code in (errno.EACCES, errno.EPERM):
        return f"no permission to open {path}: {_permission_hint(path)}"
    return f"cannot open {path} as a serial port: {text}"


def _ports():
    from serial.tools.list_ports import comports

    found = ", ".join(sorted(port.device for port in comports()))
    return f"available ports are {found}" if found else "no port is available"


def _permission_hint(path):
    """Return how a user gets access to a device."""
    try:
        import grp
        import os

        group = grp.getgrgid(os.stat(path).st_gid).gr_name
    except (ImportError, KeyError, OSError):
        return "another program may use it, or an administrator must allow it"
    return f"its group is {group}; type: sudo usermod -aG {group} $USER, and log in again"
