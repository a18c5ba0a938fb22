"""Tests of the serial transport: a pty with real pyserial, and errors of ports."""

import contextlib
import os
import sys
import time
from types import SimpleNamespace

import pytest
from products import multiplies
from rejects import rejects
from tiers import quick

from weft import Accelerator, Config
from weft.host import serial_port
from weft.host.opening import open_transport
from weft.host.serial_port import RATES, SerialPort, SerialTransport
from weft.host.transport import TransportBusy, TransportClosed, TransportError, TransportTimeout

GUARD = 600  # seconds after which a test hangs


@pytest.fixture(autouse=True)
def late(monkeypatch):
    """Allow late answers: the machine may be slow."""
    monkeypatch.setattr(serial_port, "_PROBE_TIMEOUT", GUARD)


@pytest.fixture
def soon(monkeypatch):
    """Time out soon."""
    monkeypatch.setattr(serial_port, "_PROBE_TIMEOUT", 0.3)


def test_products_over_a_port(line):
    with Accelerator(line.path, line.config) as accelerator:
        assert multiplies(accelerator) and multiplies(accelerator)
    with Accelerator(line.path) as accelerator:  # the port was let go
        assert multiplies(accelerator)


def test_rejects_a_port_that_does_not_exist(monkeypatch):
    monkeypatch.setattr("serial.tools.list_ports.comports", list)
    with rejects(TransportError, (
        "/dev/ttyWeft7 is not a serial port of this machine: no port is available"
    )):
        Accelerator("/dev/ttyWeft7")


def test_lists_the_available_ports(monkeypatch):
    ports = [SimpleNamespace(device=name) for name in ("/dev/ttyUSB1", "/dev/ttyUSB0")]
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: ports)
    with pytest.raises(TransportError, match=": available ports are /dev/ttyUSB0, /dev/ttyUSB1$"):
        SerialTransport("/dev/ttyWeft7", 115200)


def test_rejects_a_port_without_permission(monkeypatch, line):
    import serial

    def denied(*args, **kwargs):
        raise serial.SerialException(13, "could not open port: Permission denied")

    monkeypatch.setattr(serial, "Serial", denied)
    with pytest.raises(TransportError) as error:
        SerialTransport(line.path, 115200)
    start = f"no permission to open {line.path}: its group is "
    assert str(error.value).startswith(start)
    assert "sudo usermod -aG" in str(error.value)


def test_rejects_a_second_client(line):
    with Accelerator(line.path) as accelerator:
        with rejects(TransportBusy, f"{line.path} is in use by another program"):
            SerialTransport(line.path, 115200)
        assert multiplies(accelerator)


def test_rejects_a_file_that_is_no_port(tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(TransportError, match="^cannot open .* as a serial port: "):
        SerialTransport(str(path), 115200)


@pytest.mark.parametrize("noise, received", quick(1, [
    (b"login: WF", "9 other bytes"), (b"", "nothing"),
]))
def test_rejects_another_device(line, soon, monkeypatch, noise, received):
    line.silent = True
    real = SerialTransport.probe

    def probe(transport, timeout):
        os.write(line.master, noise)
        while transport.received < len(noise):
            time.sleep(0.001)
        real(transport, timeout)

    monkeypatch.setattr(SerialTransport, "probe", probe)
    with pytest.raises(TransportTimeout) as error:
        SerialTransport(line.path, 115200)
    assert str(error.value).startswith(f"no answer from a Weft core at {line.path} at 115200 baud")
    assert f", received {received};" in str(error.value)


@pytest.mark.parametrize("rate", quick(1, [1_000_000, 12_000_000]))
def test_finds_the_baud_rate_of_a_board(line, monkeypatch, rate):
    """The board answers at one rate only."""
    real = SerialPort.__init__

    def opened(self, path, baud):
        line.silent = baud != rate
        monkeypatch.setattr(serial_port, "_PROBE_TIMEOUT", 0.1 if line.silent else GUARD)
        real(self, path, baud)

    monkeypatch.setattr(SerialPort, "__init__", opened)
    transport = open_transport(line.path)
    assert transport.baud == rate
    with Accelerator(transport) as accelerator:
        assert multiplies(accelerator)


def test_skips_a_baud_rate_that_the_port_does_not_support(line, monkeypatch):
    import serial

    real = serial.Serial

    def opened(path, baud, **options):
        if baud == RATES[0]:
            raise ValueError("Invalid baud rate")
        return real(path, baud, **options)

    monkeypatch.setattr(serial, "Serial", opened)
    with contextlib.closing(open_transport(line.path)) as transport:
        assert transport.baud == RATES[1]


@pytest.mark.slow
def test_rejects_a_port_without_an_answer_at_any_rate(line, soon):
    line.silent = True
    with pytest.raises(TransportTimeout) as error:
        Accelerator(line.path)
    rates = ", ".join(map(str, RATES[:-1]))
    assert str(error.value).startswith(
        f"no answer at {rates} baud either; no answer from a Weft core at {line.path}"
    )


def test_reports_a_disconnected_cable(line):
    accelerator = Accelerator(line.path, timeout=GUARD)
    assert multiplies(accelerator)
    line.give = line.pull
    for _ in range(2):
        text = f"{line.path} at 3000000 baud was disconnected"
        with rejects(TransportClosed, text):
            multiplies(accelerator)
    accelerator.close()


def test_rejects_a_core_of_another_config(line):
    with pytest.raises(RuntimeError, match="^the core's rows must be 4, not 3$"):
        Accelerator(line.path, Config(rows=4, cols=5, depth=2, a_words=64, b_words=64))
    with Accelerator(line.path) as accelerator:  # it let go of the port
        assert multiplies(accelerator)


def test_rejects_a_machine_without_pyserial(monkeypatch, in_checkout):
    monkeypatch.setitem(sys.modules, "serial", None)
    with rejects(TransportError, (
        "pyserial must be 3.5 or newer, and is not installed;"
        " type: make setup, or: pip install -e '.[serial]'"
    )):
        SerialTransport("/dev/ttyUSB1", 115200)


@pytest.mark.parametrize("name", ["ttyUSB1", "tcp:/x:1", "tcp://x", "tcp://x:70000", "", "COM"])
def test_rejects_an_invalid_transport_name(name):
    with pytest.raises(ValueError, match="^transport must be .*, not "):
        Accelerator(name)


def test_opens_golden_by_name():
    config = Config(rows=3)
    assert Accelerator("golden", config).config == config
    assert Accelerator("golden").config == Config()
