"""Machines as trees of files: their ports and devices, drivers, rights and settings."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pty_port import silent

from weft.cli import devices, main
from weft.cli.machine import Problem

QUICK = 0.4  # seconds, for answers that never come


class Machine:
    """The files of a machine below ``root``, and its serial ports."""

    def __init__(self, root):
        self.root, self.ports = root, []

    def file(self, path, text=""):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")

    def usb(self, name, vendor, product, kinds, *, said="", driver=None, number="7", tty=None):
        """A USB device with interfaces of ``kinds``: class, subclass, protocol."""
        folder = f"sys/bus/usb/devices/{name}"
        texts = {"idVendor": vendor, "idProduct": product, "product": said, "serial": "S1",
                 "busnum": "1", "devnum": number, "bDeviceClass": "00"}
        for attribute, text in texts.items():
            self.file(f"{folder}/{attribute}", text)
        names = "bInterfaceClass", "bInterfaceSubClass", "bInterfaceProtocol"
        for n, kind in enumerate(kinds):
            for attribute, text in zip(names, kind, strict=True):
                self.file(f"{folder}/{name}:1.{n}/{attribute}", text)
            if driver:
                self.file(f"{folder}/{name}:1.{n}/driver/bind")
        self.file(f"dev/bus/usb/001/{int(number):03}")
        if tty:
            self.file(f"{folder}/{name}:1.0/{tty}/port_number", "0")
            self.ports.append(SimpleNamespace(
                device=f"/dev/{tty}", vid=int(vendor, 16), pid=int(product, 16), product=said,
                serial_number="S1",
            ))

    def examine(self, ask=False):
        """The devices as tuples, and the problems as text -> line."""
        found, problems = devices.examine(ask=ask, root=self.root)
        rows = [(d.port, d.usb, d.name, d.serial, d.text) for d in found]
        return rows, {p.text: p.line for p in problems}


FTDI = [("ff", "ff", "ff")] * 2


@pytest.fixture
def machine(tmp_path, monkeypatch):
    machine = Machine(tmp_path)
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: machine.ports)
    return machine


def test_an_empty_machine(machine, capsys):
    assert machine.examine() == ([], {})
    lines = devices.report(*devices.examine(root=machine.root))
    assert lines == ["no serial port, and no USB device that could be a board"]


def test_lists_ports_and_devices_without_one(machine):
    machine.usb("1-1", "0403", "6010", FTDI, said="iCEBreaker", driver="ftdi_sio", tty="ttyUSB0")
    machine.usb("1-2", "1d50", "614b", [("fe", "01", "02")], said="ULX3S DFU\x1b[31m")
    machine.usb("1-3", "046d", "c077", [("03", "01", "02")], said="Mouse")
    machine.usb("1-4", "1d50", "602b", [("08", "06", "50")], said="DAPLink CMSIS-DAP")
    rows, problems = machine.examine()
    assert rows == [
        ("/dev/ttyUSB0", "0403:6010", "iCEBreaker", "S1", "not asked"),
        ("", "1d50:614b", "ULX3S DFU\x1b[31m", "S1", "DFU bootloader: it waits for a bitstream"),
        ("", "1d50:602b", "DAPLink CMSIS-DAP", "S1", "CMSIS-DAP probe without a serial port"),
    ]
    assert problems == {}
    text = "\n".join(devices.report(*devices.examine(ask=False, root=machine.root)))
    assert "ULX3S DFU\\x1b[31m" in text and "\x1b" not in text


def test_a_missing_driver_is_loaded_and_one_taken_off_is_put_back(machine):
    machine.usb("1-1", "0403", "6015", FTDI[:1], said="ULX3S")
    machine.usb("1-2", "1a86", "7523", [("ff", "01", "02")], said="CH340")
    machine.usb("1-3", "2e8a", "000a", [("02", "02", "00")], said="Pico")
    machine.file("sys/bus/usb/drivers/ch341/bind")
    rows, problems = machine.examine()
    assert len(rows) == 3
    assert problems == {
        "ULX3S: interface 1-1:1.0 has no serial port: the driver ftdi_sio is not loaded":
            "sudo modprobe ftdi_sio",
        "CH340: interface 1-2:1.0 has no serial port: its driver ch341 was taken off, as"
        " programmers do": "echo 1-2:1.0 | sudo tee /sys/bus/usb/drivers/ch341/bind",
        "Pico: interface 1-3:1.0 has no serial port: the driver cdc_acm is not loaded":
            "sudo modprobe cdc_acm",
    }


def test_rights_to_program_by_usb(machine, monkeypatch):
    machine.usb("1-1", "0403", "6010", FTDI, said="iCEBreaker", driver="ftdi_sio", tty="ttyUSB0")
    machine.usb("1-2", "1209", "5af0", [("fe", "01", "02")], said="OrangeCrab", number="8")
    machine.usb("1-3", "10c4", "ea60", FTDI[:1], said="GPS", driver="cp210x", number="9")
    monkeypatch.setattr(os, "access", lambda *_: False)
    _, problems = machine.examine()
    (line,) = [problems.pop("iCEBreaker, OrangeCrab: weft program may not open it by USB")]
    for vendor, product in (("0403", "6010"), ("1209", "5af0")):
        rule = f'ATTR{{idVendor}}=="{vendor}", ATTR{{idProduct}}=="{product}", TAG+="uaccess"'
        assert rule in line
    assert "10c4" not in line
    written = subprocess.run(
        ["bash", "-c", line.partition(" | ")[0]], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(written) == 2 and all(rule.startswith('SUBSYSTEM=="usb"') for rule in written)


def test_a_container_without_the_device(machine):
    machine.usb("1-2", "1209", "5af0", [("fe", "01", "02")], said="OrangeCrab")
    (machine.root / "dev/bus/usb/001/007").unlink()
    _, problems = machine.examine()
    assert list(problems.values()) == ["docker run --device /dev/bus/usb/001/007 ..."]


@pytest.mark.parametrize("group, members, own, line", [
    ("dialout", [], [5], "sudo usermod -aG dialout root && newgrp dialout"),
    ("dialout", ["root"], [5], "newgrp dialout"),
    ("dialout", ["root"], [20], "sudo chmod a+rw {path}"),
])
def test_rights_to_a_port(pty, monkeypatch, tmp_path, group, members, own, line):
    import grp
    import pwd

    path = pty(silent)
    entry = SimpleNamespace(gr_name=group, gr_gid=20, gr_mem=members)
    monkeypatch.setattr(grp, "getgrgid", lambda gid: entry)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name="root"))
    monkeypatch.setattr(os, "getgroups", lambda: own)
    monkeypatch.setattr(os, "access", lambda *_: False)
    _, problems = devices.examine([path], ask=False, root=tmp_path)
    assert problems == [Problem(f"{path}: you may not open it", line.format(path=path))]


def test_modem_manager_is_named_unless_a_rule_excludes_the_port(machine):
    machine.usb("1-1", "0403", "6010", FTDI, said="iCEBreaker", driver="ftdi_sio", tty="ttyUSB0")
    assert machine.examine()[1] == {}
    machine.file("proc/123/comm", "ModemManager")
    machine.file("sys/class/tty/ttyUSB0/dev", "188:0")
    ((text, line),) = machine.examine()[1].items()
    assert text == "/dev/ttyUSB0: ModemManager may send commands to it when it is plugged in"
    assert 'ATTRS{idVendor}=="0403", ATTRS{idProduct}=="6010", ENV{ID_MM_DEVICE_IGNORE}="1"' in line
    machine.file("run/udev/data/c188:0", "E:ID_MM_DEVICE_IGNORE=1")
    assert machine.examine()[1] == {}


def test_the_latency_timer_is_named_if_opening_did_not_set_it(pty, machine, monkeypatch):
    path = pty(silent)
    name = os.path.basename(path)
    machine.file(f"sys/bus/usb-serial/devices/{name}/latency_timer", "16")
    monkeypatch.setattr(devices, "LIMIT", QUICK)
    assert devices.examine([path], ask=False, root=machine.root)[1] == []
    _, (problem,) = devices.examine([path], root=machine.root)
    assert problem.text == f"{path}: its FTDI bridge keeps short answers for 16 ms"
    machine.file(f"sys/bus/usb-serial/devices/{name}/latency_timer", "1")
    assert devices.examine([path], root=machine.root)[1] == []


def test_the_console_and_a_login_are_not_opened(pty, machine, monkeypatch):
    monkeypatch.setattr("weft.host.serial_port.open_exclusively", pytest.fail)
    path = pty(silent)
    machine.file("sys/class/tty/console/active", f"tty0 {os.path.basename(path)}")
    ((found,), _) = devices.examine([path], root=machine.root)
    assert found.text == "busy: it is the console of this machine"
    machine.file("sys/class/tty/console/active", "tty0")
    number = os.stat(path).st_rdev
    major, minor = os.major(number), os.minor(number)
    terminal = major << 8 | minor & 0xFF | (minor & 0xFFF00) << 12
    machine.file("proc/99/stat", f"99 (agetty (x)) S 1 99 99 {terminal} 99 0")
    machine.file("proc/99/comm", "agetty")
    ((found,), _) = devices.examine([path], root=machine.root)
    assert found.text == "busy: agetty (process 99) holds it"


def test_a_lock_file_of_another_program_counts_while_it_runs(pty, machine, monkeypatch):
    path = pty(silent)
    monkeypatch.setattr(devices, "LIMIT", QUICK)
    machine.file(f"var/lock/LCK..{os.path.basename(path)}", "      77")
    ((found,), _) = devices.examine([path], root=machine.root)
    assert found.state == "no core"
    machine.file("proc/77/comm", "minicom")
    ((found,), _) = devices.examine([path], root=machine.root)
    assert found.text == "busy: minicom (process 77) holds it"


def test_ports_without_hardware_are_left_out(machine):
    machine.ports = [
        SimpleNamespace(device=f"/dev/ttyS{n}", vid=None, product=None, serial_number=None)
        for n in (1, 0)
    ]
    machine.file("sys/class/tty/ttyS1/type", "0")
    machine.file("sys/class/tty/ttyS0/type", "4")
    assert [row[0] for row in machine.examine()[0]] == ["/dev/ttyS0"]


def test_usb_devices_are_listed_without_pyserial(machine, monkeypatch):
    monkeypatch.setitem(sys.modules, "serial.tools.list_ports", None)
    machine.usb("1-2", "1209", "5af0", [("fe", "01", "02")], said="OrangeCrab")
    rows, problems = machine.examine()
    assert [row[2] for row in rows] == ["OrangeCrab"]
    assert list(problems) == ["pyserial is not installed: no serial port is listed"]


def test_the_doctor_lists_them_and_asks_none(machine, monkeypatch, capsys):
    machine.usb("1-1", "0403", "6010", FTDI, said="iCEBreaker", driver="ftdi_sio", tty="ttyUSB0")
    monkeypatch.setattr("weft.host.serial_port.open_exclusively", pytest.fail)
    assert main(["doctor"]) == 0
    assert "/dev/ttyUSB0  0403:6010  iCEBreaker  S1             not asked\n" in (
        capsys.readouterr().out
    )
