"""Access to the registers of a simulated IP core; pass it to `weft.host.mmio.MmioTransport`."""

import contextlib
import struct
import subprocess
from pathlib import Path

from weft.hw.bus.top import IpTop
from weft.hw.export import to_verilog
from weft.ip import Ip
from weft.sim import build, verilated
from weft.sim.transport import end

__all__ = ["BusError", "SimRegisters"]

COMMON = Path(__file__).with_name("mmio.h")


class BusError(RuntimeError):
    """The bus answered an access with an error, or the simulation ended."""


class SimRegisters:
    """Runs an IP core in a process of its own, and accesses its registers over its bus.

    Parameters
    ----------
    ip : Ip
        A core with FIFO ports and one clock; with Wishbone in classic cycles.
    say : callable
        Called with a line of text before a compilation.

    Raises
    ------
    ValueError
        If ``ip`` has no FIFO ports, pipelined cycles or two clocks.
    weft.sim.tools.ToolError
        If the model can't be built.
    """

    def __init__(self, ip: Ip, say=lambda text: None):
        if not ip.has_fifo_ports or ip.pipelined or ip.clocks != 1:
            raise ValueError(
                f"ip must have FIFO ports, no pipelined cycles and one clock, not {ip.name}"
            )
        harness = COMMON.with_name(f"mmio_{ip.protocol.register_slave}.cpp")
        model = verilated.executable(
            "mmio", ip.name, [*build.sources(repr(ip)), COMMON.read_bytes()],
            lambda: to_verilog(IpTop(ip), name="ip"), harness, top="ip",
            say=lambda: say(f"compiling the {ip.name} model (once, about 10 to 60 s)"),
        )
        self.process = subprocess.Popen([model], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, address: int) -> int:
        """Return the word at byte ``address``; raise BusError without a good answer."""
        return self._access(b"R", address, 0)

    def write(self, address: int, value: int) -> None:
        """Write a word; raise BusError if the bus answers with an error."""
        self._access(b"W", address, value)

    def close(self) -> None:
        """End the simulation."""
        self.process.stdin.close()
        end(self.process)
        self.process.stdout.close()

    def _access(self, kind, address, value):
        """Send a request, and return the value of the answer; ``mmio.h`` has their formats."""
        with contextlib.suppress(BrokenPipeError):  # the answer is then missing
            self.process.stdin.write(struct.pack("<cII", kind, address, value))
            self.process.stdin.flush()
        answer = self.process.stdout.read(5)
        if len(answer) < 5:
            raise BusError(f"the simulation ended during an access to {address:#x}")
        error, found = struct.unpack("<BI", answer)
        if error:
            raise BusError(f"access to {address:#x} was answered with an error")
        return found
