"""A simulated board at its USB pins, and the bus: a process that runs a packet at a time.

`UsbWire` is a transceiver for `verif.usb_host.UsbHost`. The time of the host does not count.
"""

import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.design import Design
from weft.sim import build, verilated

__all__ = ["FULL_SPEED_HZ", "UsbWire"]

FULL_SPEED_HZ = 12e6 * 1.0016  # the clock of the ULX3S, made from 25 MHz
_PHY_HZ = 60e6
_HARNESS = Path(__file__).with_name("usb_board.cpp")
_CONTROL = "`verilator_config\nlint_off -rule UNSIGNED\n"
_NO_ANSWER = 0xFFFF


class _UsbBoard(wiring.Component):
    """A `UsbAccelerator` whose pins are ports."""

    def __init__(self, config, *, high):
        from weft.hw.usb.device import FULL_SPEED_PACKET, HIGH_SPEED_PACKET

        self.config = config
        self.packet = HIGH_SPEED_PACKET if high else FULL_SPEED_PACKET
        pins = {"data": 8, "stp": 1} if high else {"d_p": 1, "d_n": 1, "pullup": 1}
        inputs = ("data", "dir", "nxt") if high else ("d_p", "d_n")
        super().__init__({
            "connect": In(1),
            **{f"{name}_o": Out(width) for name, width in pins.items()},
            **{f"{name}_oe": Out(1) for name in pins},
            **{f"{name}_i": In(pins.get(name, 1)) for name in inputs},
        })

    def elaborate(self, platform):
        from weft.hw.usb.accelerator import UsbAccelerator

        m = Module()
        names = {name.rpartition("_")[0] for name, *_ in self.signature.members.items()} - {""}
        pins = {
            name: SimpleNamespace(**{
                part: getattr(self, f"{name}_{part}", None) for part in ("i", "o", "oe")
            }) for name in names
        }
        if "dir" in names:
            pins |= {"clk": SimpleNamespace(i=Signal())}
        m.submodules.accelerator = accelerator = UsbAccelerator(
            self.config, SimpleNamespace(**pins), packet=self.packet, serial="simulated"
        )
        m.d.comb += accelerator.connect.eq(self.connect)
        return m


class UsbWire:
    """The bus of a simulated board; a packet takes its time of USB 2.0.

    Parameters
    ----------
    config : Config or NetworkCoreConfig
    high : bool
        A PHY of high speed, at its ULPI pins; else the two wires of full speed.
    clock : float
        Clock of the core in MHz.
    say : callable
        Called with a line of text before a step that takes long.

    Attributes
    ----------
    time : float
        Seconds since the start of the board.

    Raises
    ------
    weft.sim.tools.ToolError
        If a tool is missing or too old, or the model does not compile.
    """

    def __init__(self, config: Design, *, high: bool, clock: float, say=lambda text: None):
        def verilog():
            from weft.hw import export

            return export.to_verilog(_UsbBoard(config, high=high), name="board", model=True)

        if high:
            clocks = ["ULPI", "USB_CLOCKS=1", f"USB_HZ={_PHY_HZ}"]
        else:
            clocks = [
                "USB_CLOCKS=2", f"USB_HZ={FULL_SPEED_HZ}", f"USB_IO_HZ={4 * FULL_SPEED_HZ}",
            ]
        program = verilated.executable(
            "boards", f"{config.name}-usb", *build.design(verilog, repr(config), *clocks),
            _HARNESS, top="board", defines=[f"SYNC_HZ={clock * 1e6}", *clocks], control=_CONTROL,
            say=lambda: say(f"compiling the {config.name} board with USB (once, maybe minutes)"),
        )
        self.time = 0.0
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    async def send(self, packet: bytes) -> None:
        """Send a packet, from its PID on."""
        self._command(b"S" + len(packet).to_bytes(2, "little") + packet)

    async def receive(self) -> bytes | None:
        """Return the next packet of the device; None if there is none within the time of USB."""
        self._command(b"R")
        size = int.from_bytes(self._read(2), "little")
        return None if size == _NO_ANSWER else self._read(size)

    async def idle(self, seconds: float) -> None:
        """Let the bus be idle."""
        self._command(b"I" + round(seconds * 1e9).to_bytes(4, "little"))

    async def reset(self) -> None:
        """Reset the bus; with a PHY, agree on high speed."""
        self._command(b"X")

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _command(self, data):
        self._process.stdin.write(data)
        self._process.stdin.flush()
        time, = struct.unpack("<Q", self._read(8))
        self.time = time * 1e-12

    def _read(self, size):
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise RuntimeError(f"the simulated board ended with status {self._process.wait()}")
        return data
