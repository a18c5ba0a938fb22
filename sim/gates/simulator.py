"""`GateSim`: a gate-level simulation in its own process, driven with frames over a serial line."""

import struct
import subprocess
import tempfile
import threading
from collections import deque
from pathlib import Path

from weft.host.link import Frame, FrameDecoder, FramingError

__all__ = ["HARNESS", "GateSim", "GateSimError"]

HARNESS = Path(__file__).with_name("uart.cpp")
TIMEOUT_CYCLES = 200_000  # cycles without a byte from the gates
LIMIT = 7200  # timeout of a simulation in seconds
_REQUEST, _ANSWER = struct.Struct("<II"), struct.Struct("<QQ")


class GateSimError(RuntimeError):
    """The gates behave differently from an accelerator; the message says how."""


class GateSim:
    """A running simulation; a context manager. Its clock runs only during `send` and `receive`.

    Parameters
    ----------
    program : Path
        The program of `weft.sim.gates.build_model`.
    divisor : int
        Clock cycles per bit of the serial line.
    seed : int
        Seed of the undefined values at power-on.

    Attributes
    ----------
    cycles : int
        Clock cycles since power-on.
    sent, received : int
        Bytes over the serial line.
    """

    def __init__(self, program: Path, *, divisor: int, seed: int):
        self.cycles = self.sent = self.received = 0
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
        """Send ``frame``, bit by bit."""
        self._exchange(frame.encode(), 0)

    def receive(self, cycles: int = TIMEOUT_CYCLES) -> Frame:
        """The next frame. Raises GateSimError if no byte arrives in so many cycles, or a frame is
        damaged.
        """
        while not self._inbox:
            if not self._exchange(b"", cycles):
                raise GateSimError(f"expected a frame, but no byte in {cycles:,} cycles")
        frame = self._inbox.popleft()
        if isinstance(frame, FramingError):
            raise GateSimError(frame.text)
        return frame

    def _exchange(self, data, limit):
        """Send ``data``, then wait up to ``limit`` cycles for bytes; returns the bytes received."""
        try:
            self._process.stdin.write(_REQUEST.pack(len(data), limit) + data)
            self._process.stdin.flush()
            head = self._process.stdout.read(_ANSWER.size)
        except BrokenPipeError:
            head = b""
        if len(head) < _ANSWER.size:
            raise GateSimError(self._exit_reason())
        count, self.cycles = _ANSWER.unpack(head)
        self.sent += len(data)
        self.received += count
        self._inbox += self._decoder.feed(self._process.stdout.read(count))
        return count

    def _exit_reason(self):
        """The process's last message, or its exit status."""
        status = self._process.wait(LIMIT)
        self._stderr.seek(0)
        message = self._stderr.read().decode(errors="replace").strip()
        return message or f"the simulation ended unexpectedly, with exit status {status}"
