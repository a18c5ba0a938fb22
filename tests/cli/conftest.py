"""The folder in which a command runs, and serial ports for it."""

import contextlib

import pytest
from pty_port import Pty


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def pty():
    """``pty(serve)``: the path of a pty."""
    with contextlib.ExitStack() as stack:
        def make(serve):
            made = Pty(serve)
            stack.callback(made.close)
            return made.path
        yield make
