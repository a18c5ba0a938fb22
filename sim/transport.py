"""The simulated accelerator as a transport: a Verilated model in a separate process."""

import subprocess
import sys
import tempfile
import time

from weft.config import Config
from weft.host.link import FramedTransport
from weft.sim import build

__all__ = ["SimTransport", "wait_or_kill"]


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
