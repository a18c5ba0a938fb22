"""What Linux says of serial ports and USB devices, in sysfs, proc and the files of udev."""

import os
from dataclasses import dataclass
from pathlib import Path

from weft.hints import visible

__all__ = ["Machine", "Problem"]

_RULES = "/etc/udev/rules.d/60-weft.rules"  # before 73, where uaccess is applied

# Linux drivers of USB serial bridges that no class describes, by the vendor of the chip.
_DRIVERS = {"0403": "ftdi_sio", "10c4": "cp210x", "1a86": "ch341", "067b": "pl2303"}
_FTDI = "0403"
_VENDOR_CLASS, _CDC, _DFU, _HUB = "ff", ("02", "02"), ("fe", "01"), "09"
_DFU_MODE = "02"  # the protocol of a DFU interface that waits for a file


@dataclass(frozen=True)
class Problem:
    """What is missing, and the line of a shell that mends it."""

    text: str
    line: str


class _Usb:
    """A USB device in a folder of sysfs."""

    def __init__(self, machine, folder):
        self._machine, self.folder = machine, folder
        self.id = f"{self.read('idVendor')}:{self.read('idProduct')}"
        self.interfaces = sorted(folder.glob(f"{folder.name}:*"))
        # ttyUSB0 lies in the interface itself, ttyACM0 in its folder tty.
        self.ttys = [*folder.glob(f"{folder.name}:*/tty[A-Z]*"), *folder.glob("*/tty/tty*")]

    def read(self, name):
        """The text of an attribute; "" if the device has none."""
        return _text(self.folder / name)

    def kinds(self):
        """(class, subclass, protocol) of each interface."""
        names = "bInterfaceClass", "bInterfaceSubClass", "bInterfaceProtocol"
        return [tuple(_text(folder / name) for name in names) for folder in self.interfaces]

    @property
    def is_probe(self):
        """Whether it is a CMSIS-DAP probe: boards of Colorlight and iCESugar have one."""
        names = [self.read("product"), *(_text(i / "interface") for i in self.interfaces)]
        return any("CMSIS-DAP" in name or "DAPLink" in name for name in names)

    def state(self):
        """(state, text) of a device without a serial port; None if it can be no board."""
        kinds = self.kinds()
        if self.read("bDeviceClass") == _HUB:
            return None
        for kind in kinds:
            if kind[:2] == _DFU and kind[2] == _DFU_MODE:
                return "bootloader", "DFU bootloader: it waits for a bitstream"
        if self.is_probe:
            return "no port", "CMSIS-DAP probe without a serial port"
        if any(kind[:2] == _CDC or kind[0] == _VENDOR_CLASS for kind in kinds):
            return "no port", "USB device without a serial port"
        return None

    @property
    def programs(self):
        """Whether a tool for bitstreams may open it: an FTDI bridge, a probe, a DFU device."""
        dfu = any(kind[:2] == _DFU for kind in self.kinds())
        return self.id.startswith(_FTDI) or dfu or self.is_probe

    def driver_problems(self):
        """A serial interface that no driver has taken."""
        for folder, kind in zip(self.interfaces, self.kinds(), strict=True):
            driver = "cdc_acm" if kind[:2] == _CDC else None
            if kind[0] == _VENDOR_CLASS:
                driver = _DRIVERS.get(self.read("idVendor"))
            if driver is None or (folder / "driver").exists():
                continue
            name = visible(self.read("product")) or self.id
            bind = self._machine.root / "sys/bus/usb/drivers" / driver
            if bind.exists():
                yield Problem(
                    f"{name}: interface {folder.name} has no serial port: its driver {driver} was"
                    " taken off, as programmers do",
                    f"echo {folder.name} | sudo tee /sys/bus/usb/drivers/{driver}/bind",
                )
            else:
                yield Problem(
                    f"{name}: interface {folder.name} has no serial port: the driver {driver} is"
                    " not loaded",
                    f"sudo modprobe {driver}",
                )


class Machine:
    """The files of Linux below a folder.

    Parameters
    ----------
    root : Path
        Folder with ``sys``, ``proc``, ``dev``, ``run`` and ``var``.
    """

    def __init__(self, root):
        self.root = root

    def usb_devices(self):
        """All USB devices."""
        folders = sorted((self.root / "sys/bus/usb/devices").glob("*"))
        return [_Usb(self, f) for f in folders if (f / "idVendor").is_file()]

    def is_absent(self, path):
        """Whether a port is one of those that the kernel reserves for hardware that is absent."""
        return _text(self.root / "sys/class/tty" / Path(path).name / "type") == "0"

    def holder(self, path):
        """Who uses a port, in words; None if nobody does, as far as this user can see."""
        name = os.path.basename(os.path.realpath(path))
        if name in _text(self.root / "sys/class/tty/console/active").split():
            return "it is the console of this machine"
        for pid in self._holders(path, name):
            program = visible(_text(self.root / "proc" / pid / "comm"))
            return f"{program or 'a program'} (process {pid}) holds it"
        return None

    def _holders(self, path, name):
        """The processes that hold a port by an open file, a lock, a lock file or a login."""
        try:
            status = os.stat(path)
        except OSError:
            return
        lock = _text(self.root / "var/lock" / f"LCK..{name}")
        if lock.isdigit() and (self.root / "proc" / lock).exists():
            yield lock
        for line in _text(self.root / "proc/locks").splitlines():
            words = line.split()
            device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
            if len(words) > 5 and words[5] == f"{device}:{status.st_ino}" and words[4].isdigit():
                yield words[4]
        own = str(os.getpid())
        for process in (self.root / "proc").glob("[0-9]*"):
            if process.name != own and self._has_open(process, path, status.st_rdev):
                yield process.name

    def _has_open(self, process, path, number):
        stat = _text(process / "stat").rpartition(")")[2].split()
        # Field 7, the controlling terminal, has the minor number in two parts.
        terminal = int(stat[4]) if len(stat) > 4 else 0
        minor = terminal & 0xFF | terminal >> 12 & 0xFFF00
        if terminal and number and (terminal >> 8 & 0xFFF, minor) == (
            os.major(number), os.minor(number)
        ):
            return True
        real = os.path.realpath(path)
        try:
            return any(os.readlink(fd) == real for fd in (process / "fd").iterdir())
        except OSError:  # a process of another user, or one that has ended
            return False

    def port_problems(self, path, state, text):
        """What keeps a port from being used, or makes it slow."""
        name = os.path.basename(os.path.realpath(path))
        if state != "busy" and os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
            yield Problem(f"{path}: you may not open it", _group_line(path))
        timer = _text(self.root / "sys/bus/usb-serial/devices" / name / "latency_timer")
        if timer.isdigit() and int(timer) > 1 and state in ("core", "no core"):
            # Weft has just opened it in low-latency mode, and the driver did not follow.
            yield Problem(
                f"{path}: its FTDI bridge keeps short answers for {timer} ms",
                f"echo 1 | sudo tee /sys/bus/usb-serial/devices/{name}/latency_timer",
            )

    def rights_problems(self):
        """USB devices that a programmer may not open."""
        rules = []
        for usb in self.usb_devices():
            bus, number = usb.read("busnum"), usb.read("devnum")
            if not usb.programs or not bus.isdigit() or not number.isdigit():
                continue
            name = visible(usb.read("product")) or usb.id
            place = f"dev/bus/usb/{int(bus):03}/{int(number):03}"
            node = self.root / place
            if not node.exists():
                yield Problem(
                    f"{name}: weft program cannot reach it, because there is no /{place}; a"
                    " container must be started with it",
                    f"docker run --device /{place} ...",
                )
            elif not os.access(node, os.R_OK | os.W_OK):
                vendor, product = usb.id.split(":")
                rules.append((name, (
                    f'SUBSYSTEM=="usb", ATTR{{idVendor}}=="{vendor}",'
                    f' ATTR{{idProduct}}=="{product}", TAG+="uaccess"'
                )))
        if rules:
            names, lines = (list(dict.fromkeys(each)) for each in zip(*rules, strict=True))
            quoted = " ".join(f"'{line}'" for line in lines)
            yield Problem(
                f"{', '.join(names)}: weft program may not open it by USB",
                f"printf '%s\\n' {quoted} | sudo tee -a {_RULES} &&"
                " sudo udevadm control --reload && sudo udevadm trigger",
            )

    def modem_manager_problems(self, ports):
        """ModemManager, which sends commands to each new port that no rule excludes."""
        processes = (self.root / "proc").glob("[0-9]*/comm")
        if not any(_text(comm) == "ModemManager" for comm in processes):
            return
        for port in ports:
            name = os.path.basename(os.path.realpath(port.device))
            number = _text(self.root / "sys/class/tty" / name / "dev")
            known = _text(self.root / "run/udev/data" / f"c{number}")
            if port.vid is None or "ID_MM_DEVICE_IGNORE=1" in known:
                continue
            rule = (
                f'ATTRS{{idVendor}}=="{port.vid:04x}", ATTRS{{idProduct}}=="{port.pid:04x}",'
                ' ENV{ID_MM_DEVICE_IGNORE}="1"'
            )
            yield Problem(
                f"{port.device}: ModemManager may send commands to it when it is plugged in",
                f"echo '{rule}' | sudo tee -a {_RULES} &&"
                " sudo udevadm control --reload && sudo udevadm trigger",
            )


def _text(path):
    """The text of a file without white space around it; "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _group_line(path):
    """The line that lets this user open a device."""
    try:
        import grp
        import pwd

        group = grp.getgrgid(os.stat(path).st_gid)
        user = pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, OSError):
        return f"sudo chmod a+rw {path}"
    if group.gr_gid == 0 or group.gr_gid in os.getgroups():  # the group alone does not help
        return f"sudo chmod a+rw {path}"
    if user in group.gr_mem:  # since the last login
        return f"newgrp {group.gr_name}"
    return f"sudo usermod -aG {group.gr_name} {user} && newgrp {group.gr_name}"
