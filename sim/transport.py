"""The simulated accelerator as a transport: a Verilated model in a process of its own."""

import subprocess
import sys
import tempfile
import time

from weft.config import Config
from weft.host.link import FramedTransport
from weft.sim import build

__all__ = ["SimTransport", "end"]


class SimTransport(FramedTransport):
    """Runs the model of ``config``, compiling it first where it is new.

    Its clock runs while it has work: a `send` is fed at the stream's full rate, results are always
    taken, and cycles do not depend on the speed of the host.

    Parameters
    ----------
    config : Config
    activity : path, optional
        File that gets a byte a cycle: the core's ``activity``.
    waves : path, optional
        VCD file of every signal in every cycle.
    say : callable, optional
        Told, in a line, what takes long. Where absent, that and its end are written to stderr if
        that is a terminal.

    Attributes
    ----------
    process : Popen
        The model.

    Raises
    ------
    weft.sim.tools.ToolError
        Where the model can't be built.
    """

    def __init__(self, config: Config, *, activity=None, waves=None, say=None):
        program = _built(config, waves is not None, say)
        options = []
        if activity is not None:
            options += ["--activity", str(activity)]
        if waves is not None:
            options += ["--vcd", str(waves)]
        self._stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
        )
        super().__init__(self.process.stdout, self.process.stdin)

    def explain(self) -> str:
        try:
            status = self.process.wait(1)
        except subprocess.TimeoutExpired:
            return "the model must keep its pipe open while it runs, not close it"
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace").strip().splitlines()
        how = f"signal {-status}" if status < 0 else f"status {status}"
        tail = f", saying: {said[-1]}" if said else ""
        return f"the model must run until it is closed, not end with {how}{tail}"

    def close(self) -> None:
        """End the model; one that does not end by itself in 5 s is killed."""
        super().close()
        end(self.process)
        self._stderr.close()


def _built(config, trace, say):
    """The program of the model; see `SimTransport` for ``say``."""
    if say is not None:
        return build.model(config, trace=trace, say=say)
    told, start = [], time.monotonic()

    def tell(text):
        if sys.stderr is not None and sys.stderr.isatty():
            told.append(text)
            print(f"weft: {text}", file=sys.stderr, flush=True)

    program = build.model(config, trace=trace, say=tell)
    if told:
        spent = time.monotonic() - start
        print(f"weft: the {config.name} model is ready after {spent:.0f} s", file=sys.stderr)
    return program


def end(process: subprocess.Popen) -> None:
    """Wait for a process whose input was closed; one that does not end by itself is killed."""
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
