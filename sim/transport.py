"""A simulated accelerator as a transport: at its streams, or as a whole board at its pins."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from weft.config import Config
from weft.design import PerKind
from weft.host.board import BoardTransport
from weft.host.link import FramedTransport
from weft.network_core.config import NetworkCoreConfig
from weft.sim import build, verilated
from weft.sim.sdram import PHASE, SDRAM_MHZ, chip_macros, simulated_chip

__all__ = [
    "ACK_TIMEOUT", "DIVISOR", "SimBoardTransport", "SimTransport", "start", "wait_or_kill",
]


class SimTransport(FramedTransport):
    """Runs the model of ``config``; compiles it first if necessary.

    The clock of the model runs while it has work. The data of a `send` enters at the full rate of
    the stream, and results are always taken: cycles do not depend on the speed of the host.

    Parameters
    ----------
    config : Config
    activity : path, optional
        File for the core's ``activity``, one byte a cycle: the bits `weft.hw.interface.ACTIVITY`.
    waves : path, optional
        VCD file for all signals.
    say : callable, optional
        Called with a line of text before a compilation. If absent, the start and the end of a
        compilation are written to stderr if it is a terminal.

    Attributes
    ----------
    process : Popen
        The model.

    Raises
    ------
    weft.sim.tools.ToolError
        If the model can't be built.
    """

    def __init__(self, config: Config, *, activity=None, waves=None, say=None):
        executable = _build(config, waves is not None, say)
        options = []
        if activity is not None:
            options += ["--activity", str(activity)]
        if waves is not None:
            options += ["--vcd", str(waves)]
        self._stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [executable, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
        )
        super().__init__(self.process.stdout, self.process.stdin)

    def explain(self) -> str:
        """Return why the connection ended, for the message of the error."""
        try:
            status = self.process.wait(1)
        except subprocess.TimeoutExpired:
            return "the simulation model closed its pipe unexpectedly"
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        reason = f"signal {-status}" if status < 0 else f"status {status}"
        message = f": {lines[-1]}" if lines else ""
        return f"the simulation model ended unexpectedly with {reason}{message}"

    def close(self) -> None:
        """End the model; kill it if it does not end within 5 s."""
        super().close()
        wait_or_kill(self.process)
        self._stderr.close()


def _build(config, waves, say):
    """The executable of the model; `SimTransport` describes ``say``."""
    if say is not None:
        return build.model(config, trace=waves, say=say)
    announced, start = False, time.monotonic()

    def report_to_terminal(text):
        nonlocal announced
        if sys.stderr is not None and sys.stderr.isatty():
            announced = True
            print(f"weft: {text}", file=sys.stderr, flush=True)

    executable = build.model(config, trace=waves, say=report_to_terminal)
    if announced:
        seconds = time.monotonic() - start
        print(f"weft: the {config.name} model is ready after {seconds:.0f} s", file=sys.stderr)
    return executable


def wait_or_kill(process: subprocess.Popen) -> None:
    """Wait for a process after its input was closed; kill it if it does not end within 5 s."""
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


DIVISOR = 4  # clock cycles per bit: the minimum of the hardware
_HARNESS = Path(__file__).with_name("board.cpp")
# In a network core on a board BASE is 0, so comparisons with it are constant.
_UNSIGNED = "`verilator_config\nlint_off -rule UNSIGNED\n"
_CONTROL = PerKind(product="", network=_UNSIGNED, language=_UNSIGNED)
# Seconds, with DIVISOR; a large core is simulated at about 100,000 cycles per second.
ACK_TIMEOUT = 5.0
_PROBE_TIMEOUT = 600.0  # seconds for the first answer; an exit of the process is noticed at once


_MEMORY = PerKind(
    product=lambda config: None, network=simulated_chip, language=simulated_chip,
)


def _with_memory(config, divisor, chip):
    """The board of a core with a program memory."""
    from weft.hw.serial.sdram_accelerator import SdramAccelerator

    return SdramAccelerator(
        config, divisor=divisor, chip=chip, timing=chip.timing(SDRAM_MHZ), phase=PHASE
    )


def start(
    config: Config | NetworkCoreConfig, *, divisor: int = DIVISOR, events: Path | None = None,
    say=lambda text: None,
) -> subprocess.Popen:
    """Start a process whose standard input and output are the serial port of a simulated board.

    The program memory of a core that has one is an SDRAM, `simulated_chip`.

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
    chip = _MEMORY.of(config)(config)

    def verilog():
        from weft.hw import export
        from weft.hw.serial.accelerator import SerialAccelerator

        board = SerialAccelerator(config, divisor=divisor) if chip is None else (
            _with_memory(config, divisor, chip)
        )
        return export.to_verilog(board, name="board", model=True)

    program = verilated.executable(
        "boards", f"{config.name}-board",
        *build.design(verilog, repr(config), str(divisor), repr(chip)),
        _HARNESS, top="board", defines=[f"DIVISOR={divisor}", *chip_macros(chip)],
        control=_CONTROL.of(config) or None,
        say=lambda: say(f"compiling the {config.name} board (once, maybe minutes)"),
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
