"""``weft devices``: boards on ptys, ports that misbehave, and what they say."""

import json
import os
import subprocess
import sys
import termios
import threading
import time

import pytest
from golden_board import GoldenBoard
from golden_language_board import PipedLanguageBoard
from golden_network_board import GoldenNetworkBoard
from pty_port import silent

from weft import Config
from weft.boards.designs import NETWORKS_UP5K
from weft.cli import devices, main
from weft.host.link import Frame, FrameDecoder
from weft.language_core.config import LanguageCoreConfig
from weft.registers import MAGIC, VERSION

PRODUCT = Config(rows=3, cols=5, depth=2, a_words=64, b_words=64)
CORE = NETWORKS_UP5K.config
GUARD = 120  # seconds that a slow machine may take to answer
QUICK = 0.4  # seconds, for answers that never come


def board(kind, config, baud=None):
    """Serve a golden board, at one rate only if ``baud`` is given."""
    def serve(pty):
        real, decoder = kind(config), FrameDecoder()
        real.say = lambda frame: os.write(pty.master, frame.encode())
        while data := os.read(pty.master, 4096):
            rate = termios.tcgetattr(pty.slave)[4]
            for frame in decoder.feed(data):
                if isinstance(frame, Frame) and baud in (None, rate):
                    real.act(frame)
    return serve


class Strange(GoldenNetworkBoard):
    """A board whose first registers are ``config``."""

    def registers(self):
        return self.config

    def __init__(self, config):
        self.config = config


@pytest.fixture
def ask(monkeypatch, capsys):
    """``ask(path, limit)``: what ``weft devices`` says of the port, and the seconds it took."""
    def asked(path, limit):
        monkeypatch.setattr(devices, "LIMIT", limit)
        start = time.monotonic()
        assert main(["devices", path, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["problems"] == []
        (device,) = found["devices"]
        assert device["port"] == path
        return device["state"], device["text"], time.monotonic() - start
    return asked


def test_a_product_core_is_found(pty, ask):
    state, text, _ = ask(pty(board(GoldenBoard, PRODUCT)), GUARD)
    assert state == "core"
    assert text == "product core, int8 array of 3x5x2, 3 Mbaud"


def test_a_network_core_is_found_at_another_rate(pty, ask):
    path = pty(board(GoldenNetworkBoard, CORE, termios.B2000000))
    state, text, _ = ask(path, 6)
    assert state == "core"
    assert text == "network core, int8 array of 1x4x4, 2 Mbaud"


def test_a_language_core_is_found(pty, ask):
    path = pty(board(lambda config: PipedLanguageBoard(config, None), LanguageCoreConfig()))
    state, text, _ = ask(path, GUARD)
    assert state == "core"
    assert text == "language core, 3,072 words of 128 bytes, 3 Mbaud"


@pytest.mark.parametrize("words, text", [
    ([MAGIC, VERSION + 1, 0, 0], f"register version must be {VERSION}, not {VERSION + 1}; "),
    ([1, VERSION, 0, 0], f"register magic must be 0x{MAGIC:08x} ('WEFT'), not 0x00000001; "),
    ([MAGIC, VERSION, 0, 0], "it answers at 3 Mbaud, but "),
])
def test_an_answer_that_is_no_core_is_said(pty, ask, words, text):
    state, said, _ = ask(pty(board(Strange, words)), GUARD)
    assert state == "no core" and text in said


def deaf(pty):
    pty.ended.wait(GUARD)


def flood(pty):
    while not pty.ended.is_set():
        os.write(pty.master, b"WF\x82Z\x10\0\0\0" * 500)


@pytest.mark.parametrize("serve, text", [
    (silent, "no Weft core answered at 3, 2, 1, 6, 12 Mbaud"),
    (flood, " other bytes"),
    (deaf, ""),
])
def test_a_port_without_an_answer_ends_in_time(pty, ask, serve, text):
    state, said, took = ask(pty(serve), QUICK)
    assert state == "no core" and said.endswith(text)
    assert took < QUICK + 5  # the machine may be slow; an endless wait is longer


def test_a_port_that_disappears_is_said(pty, ask):
    def pull(pty):
        os.read(pty.master, 1)
        pty.close()

    state, said, _ = ask(pty(pull), 1)
    assert state == "no core" and said.startswith(("it failed while it was", "no Weft core"))


def test_a_call_that_never_returns_has_a_limit(pty, ask, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr("weft.host.serial_port.open_exclusively", lambda *_: release.wait(GUARD))
    state, said, took = ask(pty(silent), QUICK)
    release.set()
    assert (state, said) == ("no core", "it did not open or answer within 0.4 s")
    assert took < QUICK + 5


def test_a_port_of_another_process_is_not_opened(pty, ask, monkeypatch):
    monkeypatch.setattr("weft.host.serial_port.open_exclusively", pytest.fail)
    path = pty(silent)
    code = "import os, sys; os.open(sys.argv[1], os.O_RDWR); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        state, said, _ = ask(path, QUICK)
        process.stdin.close()
    assert state == "busy" and said.endswith(f"(process {process.pid}) holds it")


def test_a_port_that_is_locked_is_busy(pty, ask):
    import serial

    path = pty(silent)
    with serial.Serial(path, exclusive=True):
        state, said, _ = ask(path, QUICK)
    assert (state, said) == ("busy", said) and "holds it" in said


@pytest.mark.parametrize("name", ["missing", "folder", "file"])
def test_rejects_what_is_no_port(here, capsys, name):
    (here / "folder").mkdir()
    (here / "file").touch()
    assert main(["devices", name]) == 2
    text = f"weft: error: port must be a serial port of this machine, not {name}\n"
    assert capsys.readouterr().err == text


def test_a_port_that_may_not_be_opened_is_said(pty, ask, monkeypatch):
    import serial

    def denied(*args, **kwargs):
        raise serial.SerialException(13, "could not open port: Permission denied")

    monkeypatch.setattr(serial, "Serial", denied)
    assert ask(pty(silent), QUICK)[:2] == ("no access", "you may not open it")
