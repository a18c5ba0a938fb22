"""A board on USB, which is a serial port without a baud rate: found by its identity."""

import os
from types import SimpleNamespace

import pytest
from products import multiplies
from rejects import rejects

from weft import Accelerator
from weft.cli import devices, main
from weft.host.link import Frame
from weft.host.opening import open_network_transport, open_transport
from weft.host.serial_port import is_usb
from weft.host.transport import TransportBusy, TransportClosed, TransportError
from weft.usb_ids import PRODUCT, PRODUCT_ID, VENDOR_ID

GUARD = 600  # seconds after which a test hangs


def port(path, serial="ulx3s-85f", **changes):
    """A port as pyserial describes the one of a board."""
    facts = dict(device=path, vid=VENDOR_ID, pid=PRODUCT_ID, product=PRODUCT, serial_number=serial)
    return SimpleNamespace(**facts | changes)


@pytest.fixture
def ports(monkeypatch):
    """The ports of this machine, at first none."""
    found = []
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: found)
    return found


@pytest.mark.parametrize("name, serial", [
    ("usb", "left"), ("usb:left", "left"), ("usb:left", "LEFT"), ("usb", None),
])
def test_a_board_is_found_by_its_identity(line, ports, name, serial):
    """Windows gives serial numbers in capitals."""
    ports += [port("/dev/ttyUSB0", vid=0x0403, pid=0x6015), port(line.path, serial)]
    with Accelerator(open_transport(name), timeout=GUARD) as accelerator:
        assert multiplies(accelerator)
        with rejects(TransportBusy, f"{line.path} is in use by another program"):
            open_transport(name)
    transport = open_transport(line.path)  # by its path, without a baud rate
    assert transport.baud is None
    transport.close()


def test_windows_does_not_tell_the_name_of_the_product():
    assert is_usb(port("COM3", product=None))
    assert not is_usb(port("COM3", product="Another test device"))
    assert not is_usb(port("COM3", vid=None, pid=None))


def test_rejects_a_name_that_is_not_one_board(ports):
    with rejects(TransportError, (
        "usb: no board with a Weft core is on USB; is it built with --link usb, loaded, and"
        " connected at the USB port of its FPGA? weft devices lists what is there"
    )):
        open_transport("usb")
    ports += [port("/dev/ttyACM1", "right"), port("/dev/ttyACM0", "left")]
    known = "usb:left (/dev/ttyACM0), usb:right (/dev/ttyACM1)"
    with rejects(TransportError, f"usb must name one board on USB, not 2: {known}"):
        open_network_transport("usb")
    with rejects(TransportError, f"usb:middle must be a board on USB; the boards are {known}"):
        open_transport("usb:middle")


def test_rejects_a_baud_rate(line, ports, capsys):
    ports.append(port(line.path))
    with rejects(TransportError, (
        f"--baud must be for a serial port: {line.path} is on USB without one"
    )):
        open_transport(line.path, baud=3_000_000)
    assert main(["selftest", "usb:left", "--baud", "9600"]) == 2
    assert "--baud must be for a serial port, not for usb:left" in capsys.readouterr().err


def test_unplugged_in_a_frame(line, ports):
    ports.append(port(line.path))
    accelerator = Accelerator(open_transport("usb"), timeout=GUARD)
    assert multiplies(accelerator)

    def cut(frame):
        line.act = lambda frame: None  # nothing follows, also if more frames have come
        os.write(line.master, Frame(0x81, 0, bytes(100)).encode()[:50])
        line.pull()

    line.act = cut
    for _ in range(2):
        with rejects(TransportClosed, f"{line.path} on USB was disconnected"):
            multiplies(accelerator)
    accelerator.close()


def test_serve_shares_a_board_on_usb(line, ports, monkeypatch, capsys):
    """Until its cable is pulled."""
    from weft.host import tcp

    ports.append(port(line.path, "left"))
    monkeypatch.setattr(tcp.TcpServer, "serve", lambda server: line.pull())
    assert main(["serve", "usb:left", "--port", "0"]) == 2
    outputs = capsys.readouterr()
    assert outputs.out.endswith(" is usb:left\n") and outputs.out.startswith("tcp://localhost:")
    assert "usb:left was disconnected; reconnect it and start again" in outputs.err


def test_devices_names_a_board_on_usb(line, ports, monkeypatch, capsys):
    ports.append(port(line.path))
    monkeypatch.setattr(devices, "LIMIT", 60)
    assert main(["devices", line.path]) == 0
    text = capsys.readouterr().out
    assert f"{VENDOR_ID:04x}:{PRODUCT_ID:04x}" in text and PRODUCT in text
    assert "product core, int8 array of" in text and text.rstrip().endswith("on USB")


def test_selftest_measures_the_rate_on_usb(line, ports, capsys):
    ports.append(port(line.path))
    assert main(["selftest", "usb"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "bytes/s to the core" in text and "bytes/s from it" in text
    assert "baud" not in text
