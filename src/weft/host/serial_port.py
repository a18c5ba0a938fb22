"""The transport to a board on a serial port, or on USB, where it is a serial port, too."""

import errno
import os
import threading
from contextlib import suppress

from weft.frames import MAX_WRITE
from weft.hints import to_install
from weft.host.board import BoardTransport
from weft.host.transport import TransportBusy, TransportError, TransportTimeout
from weft.usb_ids import PRODUCT, PRODUCT_ID, VENDOR_ID

__all__ = [
    "RATES", "SerialPort", "SerialTransport", "find", "is_usb", "open_exclusively", "usb_path",
]

# Baud rates of boards, the most common first. Only an FT2232H has the last two.
RATES = 3_000_000, 2_000_000, 1_000_000, 6_000_000, 12_000_000
_ANY_RATE = 115_200  # every driver has it; a device on USB ignores it
_PROBE_TIMEOUT = 3.0  # seconds until a board must answer the first request
_POLL = 0.2  # seconds between two checks whether the port was closed
_WRITE_TIMEOUT = 5.0  # seconds until a port that accepts no bytes is an error
_BITS = 10  # bits per byte on the wire
_USB_BITS = 8_000_000  # of a second on a bus of full speed, which other devices may share


class SerialPort:
    """A serial port, opened exclusively: 8 data bits, no parity, 1 stop bit.

    It is both the reader and the writer of a `weft.host.link.FramedTransport`.

    Parameters
    ----------
    path : str
        Name of the port, such as ``/dev/ttyUSB1`` or ``COM3``.
    baud : int or None
        Baud rate; None on USB, which has none.

    Raises
    ------
    ValueError
        If ``baud`` is less than 1.
    TransportError
        If the port does not exist, cannot be opened or is in use, or pyserial is not installed.
    """

    def __init__(self, path: str, baud: int | None):
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
    baud : int or None
        Baud rate for which the board was built; None for a board on USB.

    Attributes
    ----------
    baud : int or None

    Raises
    ------
    TransportError
        If the port cannot be opened, or no Weft core answers on it.
    """

    def __init__(self, path: str, baud: int | None):
        port = SerialPort(path, baud)
        self.baud = baud
        # Ten frames on the wire, and the latency of adapters and operating systems.
        timeout = 0.25 + 10 * MAX_WRITE * _BITS / (baud or _USB_BITS)
        name = f"{path} at {baud} baud" if baud else f"{path} on USB"
        super().__init__(port, port, name=name, timeout=timeout)
        try:
            self.probe(_PROBE_TIMEOUT + 2 * timeout)
        except BaseException:
            self.close()
            raise


def open_exclusively(path: str, baud: int | None, read_timeout: float, write_timeout: float):
    """Open a port that no other program uses, with an empty input buffer, by pyserial.

    The timeouts are those of a read and a write, in seconds. Raises as `SerialPort` does.
    """
    if baud is not None and baud < 1:
        raise ValueError(f"baud must be 1 or more, not {baud}")
    try:
        import serial
    except ImportError:
        raise TransportError(
            f"pyserial must be 3.5 or newer, and is not installed; {to_install(extra='serial')}"
        ) from None
    try:
        port = serial.Serial(
            path, baud or _ANY_RATE, timeout=read_timeout, write_timeout=write_timeout,
            exclusive=True,
        )
    except (OSError, ValueError) as error:
        raise _open_error(path, baud, error) from error
    # Otherwise USB adapters buffer received bytes for up to 16 ms. Not all have this setting.
    with suppress(AttributeError, OSError, ValueError):
        port.set_low_latency_mode(True)
    port.reset_input_buffer()
    return port


def is_usb(port) -> bool:
    """Whether a port, as pyserial describes it, is the USB connector of a board with a Weft core.

    Windows does not give the name of the product.
    """
    ids = getattr(port, "vid", None), getattr(port, "pid", None)
    return ids == (VENDOR_ID, PRODUCT_ID) and getattr(port, "product", None) in (None, PRODUCT)


def _usb_ports():
    try:
        from serial.tools.list_ports import comports
    except ImportError:
        raise TransportError(
            f"pyserial must be 3.5 or newer, and is not installed; {to_install(extra='serial')}"
        ) from None
    return sorted((port for port in comports() if is_usb(port)), key=lambda port: port.device)


def usb_path(name: str) -> str:
    """Return the port of the board that ``usb`` or ``usb:SERIAL`` names.

    Raises TransportError unless exactly one board on USB has this name.
    """
    wanted = name.partition(":")[2].lower()  # Windows gives serial numbers in capitals
    ports = _usb_ports()
    found = [port for port in ports if wanted in ("", (port.serial_number or "").lower())]
    if len(found) == 1:
        return found[0].device
    known = ", ".join(f"usb:{port.serial_number} ({port.device})" for port in ports)
    if len(found) > 1:
        raise TransportError(f"{name} must name one board on USB, not {len(found)}: {known}")
    if ports:
        raise TransportError(f"{name} must be a board on USB; the boards are {known}")
    raise TransportError(
        f"{name}: no board with a Weft core is on USB; is it built with --link usb, loaded, and"
        " connected at the USB port of its FPGA? weft devices lists what is there"
    )


def find(path: str, baud: int | None = None) -> SerialTransport:
    """Open a port: on USB, at ``baud``, or at the first rate of `RATES` at which a board answers.

    Raises TransportError if the port cannot be opened, or no Weft core answers at any rate.
    """
    if _on_usb(path):
        if baud:
            raise TransportError(f"--baud must be for a serial port: {path} is on USB without one")
        return SerialTransport(path, None)
    if baud:
        return SerialTransport(path, baud)
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


def _on_usb(path):
    real = os.path.realpath(path)
    return any(real == port.device or path == port.device for port in _usb_ports())


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

        group = grp.getgrgid(os.stat(path).st_gid).gr_name
    except (ImportError, KeyError, OSError):
        return "another program may use it, or an administrator must allow it"
    return f"its group is {group}; type: sudo usermod -aG {group} $USER, and log in again"
