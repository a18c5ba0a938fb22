"""Gates behind a serial line, as a process: frames to them, and the frames that they send."""

import struct
import subprocess
import tempfile
import threading
from collections import deque
from pathlib import Path

from weft.host.link import Frame, FrameDecoder, FramingError

__all__ = ["HARNESS", "GateSim", "GateSimError"]

HARNESS = Path(__file__).with_name("uart.cpp")
QUIET = 200_000  # cycles without a byte after which none is waited for
LIMIT = 7200  # seconds that a simulation may take
_REQUEST, _ANSWER = struct.Struct("<II"), struct.Struct("<QQ")


class GateSimError(RuntimeError):
    """The gates did other than an accelerator must; the message says what."""


class GateSim:
    """Gates that run, in a ``with``; their clock does while something is sent or waited for.

    Parameters
    ----------
    program : Path
        Of `HARNESS` and a netlist.
    divisor : int
        Cycles of a bit.
    seed : int
        Of what no cell has set when power comes on.

    Attributes
    ----------
    cycles : int
        Since then.
    sent, heard : int
        Bytes over the wires.
    """

    def __init__(self, program: Path, *, divisor: int, seed: int):
        self.cycles = self.sent = self.heard = 0
        self._decoder, self._inbox = FrameDecoder(), deque()
        self._stderr = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [program, str(divisor), str(seed)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
        )
        self._watchdog = threading.Timer(LIMIT, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._watchdog.cancel()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            pipe.close()

    def send(self, frame: Frame) -> None:
        """All of ``frame``, bit by bit."""
        self._exchange(frame.encode(), 0)

    def receive(self) -> Frame:
        """The next frame; GatesError where none comes, or one that is damaged."""
        while not self._inbox:
            if not self._exchange(b"", QUIET):
                raise GateSimError(f"a frame must come, not {QUIET:,} cycles without a byte")
        found = self._inbox.popleft()
        if isinstance(found, FramingError):
            raise GateSimError(found.text)
        return found

    def _exchange(self, data, limit):
        """Send ``data`` and take what comes meanwhile, or within ``limit`` cycles; how much."""
        try:
            self._process.stdin.write(_REQUEST.pack(len(data), limit) + data)
            self._process.stdin.flush()
            head = self._process.stdout.read(_ANSWER.size)
        except BrokenPipeError:
            head = b""
        if len(head) < _ANSWER.size:
            raise GateSimError(self._end())
        count, self.cycles = _ANSWER.unpack(head)
        self.sent += len(data)
        self.heard += count
        self._inbox += self._decoder.feed(self._process.stdout.read(count))
        return count

    def _end(self):
        """Why the process ended."""
        status = self._process.wait(LIMIT)
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace").strip()
        return said or f"the simulation must run to its end, not end with status {status}"
