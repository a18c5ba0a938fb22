"""``weft devices``: the serial ports and USB devices, and which of them answers as a Weft core."""

import errno
import json
import os
import threading
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

from weft.cli.machine import Machine, Problem
from weft.hints import to_install, visible

__all__ = ["DESCRIPTION", "HELP", "Found", "add", "aligned", "examine", "report", "run"]

HELP = "list serial ports and USB devices, and which one is a board with a Weft core"
DESCRIPTION = """\
List the serial ports, and the USB devices that have none: a board in its bootloader, a programmer,
a device without a driver. Each port is opened and asked for the registers of a Weft core, for one
second at most. A port that another program holds is not opened. Opening a port can restart a
device that is no board of yours: --no-ask opens none.

Below the list stands what is missing on this machine, and the line that mends it: drivers, rights,
settings.

  weft devices
  weft devices /dev/serial/by-id/usb-1BitSquared_iCEBreaker-if01-port0
  weft devices --no-ask --json
"""
LIMIT = 1.0  # seconds that a port has to answer
_CLOSING = 0.1  # of them, to close the port
_POLL = 0.02  # seconds of a read
_MAX_STRANGE = 4096  # bytes of one read: a port that sends without an end cannot hold us


def add(parser):
    """Add the arguments of ``weft devices``."""
    parser.add_argument(
        "ports", nargs="*", metavar="PORT", help="serial ports to list; default all"
    )
    parser.add_argument(
        "--no-ask", dest="ask", action="store_false", help="open no port and send nothing"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(args) -> int:
    """Run the command; return its exit code."""
    for port in args.ports:
        if os.name == "posix" and not Path(port).is_char_device():
            raise OSError(f"port must be a serial port of this machine, not {port}")
    devices, problems = examine(args.ports, args.ask)
    if args.json:
        found = {"devices": devices, "problems": problems}
        print(json.dumps({n: [asdict(row) for row in rows] for n, rows in found.items()}, indent=1))
    else:
        print("\n".join(report(devices, problems)))
    return 0


@dataclass(frozen=True)
class Found:
    """A serial port, or a USB device without one.

    Attributes
    ----------
    port : str
        ``/dev/ttyUSB1``; "" without a serial port.
    usb : str
        Vendor and product, ``0403:6010``; "" if it is not on USB.
    name, serial : str
        What the device says of itself.
    state : str
        ``core``, ``no core``, ``busy``, ``no access``, ``not asked``, ``bootloader`` or ``no
        port``.
    text : str
        The state in words.
    """

    port: str
    usb: str
    name: str
    serial: str
    state: str
    text: str


def report(devices: list[Found], problems: list[Problem]) -> list[str]:
    """The lines that say what was found."""
    if devices:
        rows = [("port", "USB", "name", "serial number", "what it is")]
        for one in devices:
            cells = one.port, one.usb, one.name, one.serial, one.text
            rows.append(tuple(visible(cell) or "-" for cell in cells))
        lines = aligned(rows)
    else:
        lines = ["no serial port, and no USB device that could be a board"]
    for problem in problems:
        lines += ["", visible(problem.text), f"    {problem.line}"]
    return lines


def aligned(rows) -> list[str]:
    """Rows of cells as lines with aligned columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def examine(only=(), ask: bool = True, root: Path = Path("/")):
    """The devices, as `Found`, and the problems of this machine, as `Problem`.

    Parameters
    ----------
    only : list of str
        The serial ports to list; empty for all ports and USB devices.
    ask : bool
        Open the ports and ask for the registers of a core.
    root : Path
        Folder with ``sys``, ``proc``, ``dev``, ``run`` and ``var``.
    """
    from weft.host.serial_port import is_usb

    machine = Machine(root)
    problems: list[Problem] = []
    ports = _ports(only, machine, problems)
    usb = {port.device for port in ports if is_usb(port)}
    answers = _ask_all([port.device for port in ports], ask, machine, usb)
    devices = [
        Found(
            port.device, f"{port.vid:04x}:{port.pid:04x}" if port.vid is not None else "",
            port.product or "", port.serial_number or "", *answers[port.device],
        ) for port in ports
    ]
    for port in ports:
        problems += machine.port_problems(port.device, *answers[port.device])
    if not only:
        for usb in machine.usb_devices():
            if not usb.ttys and (state := usb.state()):
                devices.append(Found("", usb.id, usb.read("product"), usb.read("serial"), *state))
            problems += usb.driver_problems()
        problems += machine.rights_problems()
    if ports:
        problems += machine.modem_manager_problems(ports)
    return devices, list(dict.fromkeys(problems))


def _ports(only, machine, problems):
    """The serial ports as pyserial describes them."""
    try:
        from serial.tools.list_ports import comports
        from serial.tools.list_ports_common import ListPortInfo
    except ImportError:
        hint = to_install(extra="serial").removeprefix("type: ")
        problems.append(Problem("pyserial is not installed: no serial port is listed", hint))
        return []
    known = {port.device: port for port in comports()}
    if only:
        return [known.get(os.path.realpath(p)) or known.get(p) or ListPortInfo(p) for p in only]
    return [known[name] for name in sorted(known) if not machine.is_absent(name)]


# -- a port ---------------------------------------------------------------------------------------


def _ask_all(paths, ask, machine, usb):
    """(state, text) of each port, of which ``usb`` are on USB; they are asked at the same time."""
    answers, asked = {}, []
    for path in paths:
        if holder := machine.holder(path):
            answers[path] = "busy", f"busy: {holder}"
        elif not ask:
            answers[path] = "not asked", "not asked"
        else:
            answers[path] = "no core", f"it did not open or answer within {LIMIT:g} s"
            asked.append(path)
    if asked:
        import_module("weft.host.board")  # before the clock starts
    end = time.monotonic() + LIMIT
    # Threads, and no wait without a limit: a driver can hold a call for ever.
    threads = [
        threading.Thread(
            target=_ask, args=(path, answers, end - _CLOSING, path in usb), daemon=True
        )
        for path in asked
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    return dict(answers)  # a thread that is late changes nothing


def _ask(path, answers, end, usb):
    """Put into ``answers`` what is at a port."""
    from weft.host.serial_port import RATES, open_exclusively
    from weft.host.transport import TransportBusy, TransportError

    rates = (None,) if usb else RATES
    try:
        port = open_exclusively(path, rates[0], _POLL, LIMIT / len(RATES))
    except TransportBusy:
        answers[path] = "busy", "busy: another program holds it"
        return
    except TransportError as error:
        denied = getattr(error.__cause__, "errno", None) in (errno.EACCES, errno.EPERM)
        answers[path] = ("no access", "you may not open it") if denied else ("no core", str(error))
        return
    except Exception as error:  # pyserial lets termios.error through, which is no OSError
        answers[path] = "no core", f"cannot open it: {error}"
        return
    try:
        answers[path] = _answer(port, rates, end)
    except Exception as error:  # the same
        answers[path] = "no core", f"it failed while it was asked: {error}"
    try:
        port.reset_output_buffer()  # otherwise the driver waits for a device that takes nothing
        port.close()
    except Exception as error:
        answers[path] = "no core", f"it failed while it was closed: {error}"


def _answer(port, rates, end):
    """(state, text) for the device at an open port."""
    received, tried = 0, []
    for n, baud in enumerate(rates):
        try:
            port.baudrate = baud or port.baudrate
        except ValueError:  # the port lacks this rate
            continue
        tried.append(baud)
        now = time.monotonic()
        words, count = _registers(port, 4, now + (end - now) / (len(rates) - n))
        received += count
        if words:
            return _describe(port, words, baud, end)
    heard = f", received {received} other bytes" if received else ""
    return "no core", f"no Weft core answered {_at(*tried)}{heard}"


def _describe(port, words, baud, end):
    from weft import registers
    from weft.design import LANGUAGE, NETWORK, PRODUCT, PerKind
    from weft.language_core import register_map as language
    from weft.language_core.config import WORD_BYTES
    from weft.network_core import register_map as network

    reads = {
        PRODUCT: (len(registers.REGISTERS) - len(registers.COUNTERS), registers.decode),
        NETWORK: (len(network.REGISTERS) - len(network.STATE), network.decode),
        LANGUAGE: (len(language.REGISTERS) - len(language.STATE), language.decode),
    }
    try:
        count, decode = reads[registers.kind_of(words)]
        words, _ = _registers(port, count, end)
        if not words:
            return "no core", f"a core answered {_at(baud)}, and then no more"
        design = decode(words)
    except ValueError as error:
        return "no core", f"it answers {_at(baud)}, but {error}"
    texts = PerKind(
        product=_array, network=_array,
        language=lambda design: f"{design.words:,} words of {WORD_BYTES} bytes",
    )
    rate = _at(baud).removeprefix("at ")
    return "core", f"{design.kind}, {texts.of(design)(design)}, {rate}"


def _array(design):
    array = design.array
    shape = "x".join(str(getattr(array, name)) for name in ("rows", "cols", "depth"))
    return f"{array.dtype} array of {shape}"


def _at(*rates):
    """Where a device was asked: at baud rates, or on USB, which has none."""
    if rates == (None,):
        return "on USB"
    return f"at {', '.join(f'{rate / 1e6:g}' for rate in rates)} Mbaud"


def _registers(port, count, end):
    """The first registers, or None if they do not arrive before ``end``; the bytes received."""
    from weft.frames import MAX_WRITE, FrameType
    from weft.host.board import MAX_ANSWER
    from weft.host.link import Frame, FrameDecoder

    decoder, received = FrameDecoder(MAX_ANSWER), 0
    request = Frame(FrameType.READ, 0x5A, b"\0\0" + count.to_bytes(2, "little"))
    # The zeros end a frame that another program left unfinished.
    port.write(bytes(MAX_WRITE + 16) + request.encode())
    while time.monotonic() < end:
        data = port.read(max(1, min(port.in_waiting, _MAX_STRANGE)))
        received += len(data)
        for item in decoder.feed(data):
            if not isinstance(item, Frame) or len(item.payload) != 4 * count:
                continue
            if (item.type, item.sequence) == (FrameType.REGISTERS, request.sequence):
                payload = item.payload
                words = [payload[n : n + 4] for n in range(0, len(payload), 4)]
                return [int.from_bytes(word, "little") for word in words], received
    return None, received
