"""The simulated board: a whole accelerator at the pins of its serial port, in its own process."""

import subprocess
from pathlib import Path

from weft.config import Config
from weft.host.board import BoardTransport
from weft.sim import build, verilated
from weft.sim.transport import end

__all__ = ["ACK_TIMEOUT", "DIVISOR", "SimBoardTransport", "start"]

DIVISOR = 4  # clock cycles a bit: as few as the hardware takes
_HARNESS = Path(__file__).with_name("board.cpp")
ACK_TIMEOUT = 5.0  # seconds for an answer: a large core runs at some 100,000 cycles a second
_PROBE_TIMEOUT = 600.0  # for the first one; a board that ended is noticed at once


def start(
    config: Config, *, divisor: int = DIVISOR, say=lambda text: None
) -> subprocess.Popen:
    """A process whose standard input and output are the serial port of a board.

    Parameters
    ----------
    config : Config
    divisor : int
        Clock cycles a bit.
    say : callable
        Told, in a line, what takes long.

    Raises
    ------
    weft.sim.tools.ToolError
        Where a tool is missing or too old, or does not compile the model.
    """
    def verilog():
        from weft.hw import export
        from weft.hw.serial.accelerator import SerialAccelerator

        return export.to_verilog(SerialAccelerator(config, divisor=divisor), name="board")

    program = verilated.executable(
        "boards", f"{config.name}-board", build.sources(repr(config), str(divisor)), verilog,
        _HARNESS, top="board", defines=[f"DIVISOR={divisor}"],
        say=lambda: say(f"compiling the {config.name} board (once, some 10 to 60 s)"),
    )
    return subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


class SimBoardTransport(BoardTransport):
    """The `Transport` to a simulated board: what passes here is what runs on a real one.

    Parameters
    ----------
    config : Config
    divisor : int
        Clock cycles a bit.
    say : callable, optional
        Told, in a line, what takes long.

    Attributes
    ----------
    process : Popen
        The board.

    Raises
    ------
    weft.sim.tools.ToolError
        Where the model can't be built.
    """

    def __init__(self, config: Config, *, divisor: int = DIVISOR, say=lambda text: None):
        self.process = start(config, divisor=divisor, say=say)
        super().__init__(
            self.process.stdout, self.process.stdin, name="the simulated board",
            timeout=ACK_TIMEOUT,
        )
        try:
            self.probe(_PROBE_TIMEOUT)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the board; one that does not end by itself in 5 s is killed."""
        super().close()
        end(self.process)
