"""Fixtures of the driver's tests: a serial line with a board at its other end, fixed cycles."""

import contextlib
import os
import select
import sys
import threading
import time
import tty
from types import SimpleNamespace

import pytest
from golden_board import GoldenBoard

from weft import Config
from weft.host.link import Frame, FrameDecoder


class Line(GoldenBoard):
    """A pty with a board at its other end, in a thread that calls ``act(frame)``."""

    def __init__(self):
        self.config = Config(rows=3, cols=5, depth=2, a_words=64, b_words=64)
        super().__init__(self.config)
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)
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
def far_line():
    """A second board."""
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
