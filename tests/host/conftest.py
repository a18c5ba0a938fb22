"""Fixtures of the driver's tests: a serial line with a board at its other end, fixed cycles."""

import contextlib
import os
import select
import sys
import threading
import time
import tty
from types import SimpleNamespace

import numpy as np
import pytest

from weft import Config
from weft.frames import FrameType
from weft.host.golden import GoldenTransport
from weft.host.link import Frame, FrameDecoder
from weft.host.transport import TransportTimeout


class Line:
    """A pty with a board at its other end, in a thread that calls ``act(frame)``."""

    def __init__(self):
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)
        self.config = Config(rows=3, cols=5, depth=2, a_words=64, b_words=64)
        self.core = GoldenTransport(self.config)
        self.last, self.results = 0, 0
        self.silent, self.plugged = False, True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        decoder = FrameDecoder()
        while self.plugged:
            if select.select([self.master], [], [], 0.02)[0]:
                for frame in decoder.feed(os.read(self.master, 4096)):
                    if isinstance(frame, Frame) and not self.silent:
                        self.act(frame)
        os.close(self.slave)
        os.close(self.master)

    def act(self, frame):
        if frame.type == FrameType.READ:
            words = self.core.read(frame.payload[0], frame.payload[2], 0)
            payload = np.array(words, "<u4").tobytes()
            self.say(Frame(FrameType.REGISTERS, frame.sequence, payload))
        elif frame.type == FrameType.ABORT:
            self.core.abort(0)
            self.say(Frame(FrameType.ABORTED, frame.sequence))
        else:
            if frame.sequence == (self.last + 1) % 256:
                self.last = frame.sequence
                self.core.send(frame.payload)
            self.say(Frame(FrameType.ACK, self.last))
            self.give()

    def give(self):
        while True:
            try:
                packet = self.core.receive(0)
            except TransportTimeout:
                return
            facts = packet.tag.to_bytes(2, "little") + bytes([1, packet.status])
            self.say(Frame(FrameType.RESULTS, self.results, facts + packet.data))
            self.results = (self.results + 1) % 256

    def say(self, frame):
        os.write(self.master, frame.encode())

    def pull(self):
        """Disconnect the cable."""
        self.plugged = False

    def close(self):
        self.pull()
        self.thread.join(600)


@pytest.fixture
def line():
    line = Line()
    yield line
    line.close()


@pytest.fixture
def fixed_cycles(monkeypatch):
    """The cycle model has the same counts for any commands."""
    def predict(config, commands):
        return SimpleNamespace(cycles=1000, active=900, starved=60, stalled=40)

    monkeypatch.setitem(sys.modules, "weft.cycles", SimpleNamespace(predict=predict))


@pytest.fixture
def limit():
    """``limit(accelerator, seconds)``: a context with a short timeout.

    For answers that never arrive; all other waits are long, since the machine may be slow.
    """

    @contextlib.contextmanager
    def limited(accelerator, seconds):
        core = accelerator._core
        before, core._timeout = core._timeout, seconds
        try:
            yield
        finally:
            core._timeout = before

    return limited


@pytest.fixture
def acknowledged():
    """``acknowledged(transport)``: wait until the board has acknowledged all commands."""

    def wait(transport):
        deadline = time.monotonic() + 600
        while transport._window._queue:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    return wait
