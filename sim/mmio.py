"""Access to the registers and the memory of a simulated IP core, for a transport of the driver."""

import contextlib
import struct
import subprocess
import tempfile
from pathlib import Path

from weft.buses import DataPath
from weft.host.dma import MappedMemory
from weft.hw.bus.top import IpTop
from weft.hw.export import to_verilog
from weft.ip import Ip
from weft.network_core.ip import PROGRAM_MASTER, NetworkIp
from weft.sim import build, verilated
from weft.sim.transport import wait_or_kill

__all__ = ["BusError", "SimRegisters"]

MEMORY_ADDRESS = 0x40000000


class BusError(RuntimeError):
    """The bus answered an access with an error, or the simulation ended."""


class SimRegisters:
    """Runs an IP core in a process of its own, and accesses its registers over its bus.

    Parameters
    ----------
    ip : Ip or NetworkIp
        A core with FIFO ports or DMA, and one clock; with Wishbone in classic cycles.
    say : callable
        Called with a line of text before a compilation.
    memory_bytes : int
        Size of the memory of a core with DMA or a program memory.

    Attributes
    ----------
    memory : MappedMemory or None
        Memory of such a core; accesses of the core outside it are answered with an error.

    Raises
    ------
    ValueError
        If ``ip`` has neither FIFO ports nor DMA, or has pipelined cycles or two clocks.
    weft.sim.tools.ToolError
        If the model can't be built.
    """

    def __init__(self, ip: Ip | NetworkIp, say=lambda text: None, memory_bytes: int = 1 << 20):
        path = ip.protocol.data_path
        if path is DataPath.STREAMS or ip.pipelined or ip.clocks != 1:
            raise ValueError(
                "ip must have FIFO ports or DMA, no pipelined cycles and one clock,"
                f" not {ip.name}"
            )
        has_memory = path is DataPath.DMA or PROGRAM_MASTER in ip.interfaces
        kind = "dma" if has_memory else ip.protocol.register_slave
        harness = Path(__file__).with_name(f"mmio_{kind}.cpp")
        model = verilated.executable(
            "mmio", ip.name,
            *build.design(lambda: to_verilog(IpTop(ip), name="ip", model=True), repr(ip)),
            harness, top="ip",
            say=lambda: say(f"compiling the {ip.name} model (once, maybe minutes)"),
        )
        self.memory, arguments = None, []
        if has_memory:
            self._file = tempfile.NamedTemporaryFile(prefix="weft-memory-")
            self._file.truncate(memory_bytes)
            self.memory = MappedMemory(self._file.name, MEMORY_ADDRESS, memory_bytes)
            arguments = [self._file.name, str(MEMORY_ADDRESS)]
        self.process = subprocess.Popen(
            [model, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def read(self, address: int) -> int:
        """Return the word at byte ``address``; raise BusError without a good answer."""
        return self._access(b"R", address, 0)

    def write(self, address: int, value: int) -> None:
        """Write a word; raise BusError if the bus answers with an error."""
        self._access(b"W", address, value)

    def close(self) -> None:
        """End the simulation."""
        self.process.stdin.close()
        wait_or_kill(self.process)
        self.process.stdout.close()
        if self.memory:
            self.memory.close()
            self._file.close()

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
