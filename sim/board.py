"""The simulated board: a whole accelerator in its own process, at the pins of its serial port."""

import subprocess
from pathlib import Path

from weft.config import Config
from weft.design import PerKind
from weft.host.board import BoardTransport
from weft.network_core.config import NetworkCoreConfig
from weft.sim import build, verilated
from weft.sim.transport import wait_or_kill

__all__ = ["ACK_TIMEOUT", "DIVISOR", "SimBoardTransport", "start"]

DIVISOR = 4  # clock cycles per bit: the minimum of the hardware
_HARNESS = Path(__file__).with_name("board.cpp")
# In a network core on a board BASE is 0, so comparisons with it are constant.
_CONTROL = PerKind(product=None, network="`verilator_config\nlint_off -rule UNSIGNED\n")
# Seconds, with DIVISOR; a large core is simulated at about 100,000 cycles per second.
ACK_TIMEOUT = 5.0
_PROBE_TIMEOUT = 600.0  # seconds for the first answer; an exit of the process is noticed at once


def start(
    config: Config | NetworkCoreConfig, *, divisor: int = DIVISOR, events: Path | None = None,
    say=lambda text: None,
) -> subprocess.Popen:
    """Start a process whose standard input and output are the serial port of a simulated board.

    Parameters
    ----------
    config : Config or NetworkCoreConfig
    divisor : int
        Clock cycles per bit.
    events : Path, optional
        File that gets a line for each byte on the serial port, before the process writes an answer:
        ``> CYCLE`` for the first bit of a byte to the board, ``< CYCLE`` for the end of a byte from
        it.
    say : callable
        Called with a line of text before a step that takes long.

    Raises
    ------
    weft.sim.tools.ToolError
        If a tool is missing or too old, or the model does not compile.
    """
    def verilog():
        from weft.hw import export
        from weft.hw.serial.accelerator import SerialAccelerator

        board = SerialAccelerator(config, divisor=divisor)
        return export.to_verilog(board, name="board", model=True)

    program = verilated.executable(
        "boards", f"{config.name}-board", *build.design(verilog, repr(config), str(divisor)),
        _HARNESS, top="board", defines=[f"DIVISOR={divisor}"],
        control=_CONTROL.of(config),
        say=lambda: say(f"compiling the {config.name} board (once, takes 10 to 60 s)"),
    )
    command = [program] if events is None else [program, events]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


class SimBoardTransport(BoardTransport):
    """The `Transport` to a simulated board, with the same hardware as a real board.

    With a NetworkCoreConfig the board has a network core: `weft.host.network_driver.NetworkDriver`
    takes this transport.

    Parameters
    ----------
    config : Config or NetworkCoreConfig
    divisor : int
        Clock cycles per bit.
    events : Path, optional
        File of the bytes on the serial port, as for `start`.
    say : callable, optional
        Called with a line of text before a step that takes long.

    Attributes
    ----------
    process : Popen
        The process of the board.

    Raises
    ------
    weft.sim.tools.ToolError
        If the model cannot be built.
    """

    def __init__(
        self, config: Config | NetworkCoreConfig, *, divisor: int = DIVISOR,
        events: Path | None = None,
        say=lambda text: None,
    ):
        self.process = start(config, divisor=divisor, events=events, say=say)
        super().__init__(
            self.process.stdout, self.process.stdin, name="the simulated board",
            timeout=ACK_TIMEOUT * max(1, divisor // DIVISOR),
        )
        try:
            self.probe(_PROBE_TIMEOUT)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process of the board; it is killed if it does not end within 5 s."""
        super().close()
        wait_or_kill(self.process)
