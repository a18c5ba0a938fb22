"""``weft serve``: a simulated board over TCP, as a client on another machine uses it."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from digits import CNN

from weft import Accelerator
from weft.cli import main
from weft.designs import design_from_toml
from weft.host.tcp import listen
from weft.sim.tools import ToolError

NETWORK = str(CNN)
SMALL = [
    "--rows", "2", "--cols", "3", "--depth", "2", "--a-words", "64", "--b-words", "64",
    "--bytes-in", "4", "--bytes-out", "8", "--lanes", "2", "--jobs", "2",
]


@contextlib.contextmanager
def serving(*arguments):
    """The process, and the address that it listens at."""
    code = "import sys; from weft.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "serve", *arguments, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = next(line for line in process.stdout if line.startswith("tcp://"))
            yield process, re.match(r"tcp://\S+", said)[0]
        finally:
            process.kill()  # a process in the background may ignore Ctrl-C


@pytest.mark.slow
def test_serves_one_client_after_another(monkeypatch):
    monkeypatch.setattr("weft.host.tcp._PROBE_TIMEOUT", 600)  # the machine may be slow
    a = np.arange(-60, 60, dtype=np.int8).reshape(12, 10)
    with serving("board", *SMALL) as (process, address):
        for _ in range(2):
            with Accelerator(address) as accelerator:
                assert np.array_equal(accelerator.matmul(a, a.T), a.astype(int) @ a.T)
        assert process.poll() is None


CHIP = """\
rows = 3
cols = 4
depth = 4
lanes = 2
requantize = "tflite"
activation = "none"

[network_core]
words = 2048
b_words = 256
lines = 64
read_vectors = 2
"""


def test_serves_the_core_of_the_options(monkeypatch, tmp_path):
    """A network core, if the file has a table [network_core]."""
    (tmp_path / "network_core.toml").write_text(CHIP)
    found = []

    def start(config, say):
        found.append(config)
        raise ToolError("as far as this")

    monkeypatch.setattr("weft.sim.transport.start", start)
    file = ["--config", str(tmp_path / "network_core.toml")]
    for words in (SMALL, file, [*file, "--rows", "2"]):
        assert main(["serve", "board", *words, "--port", "0"]) == 2
    assert (found[0].rows, found[0].cols) == (2, 3)
    assert found[1] == design_from_toml(tmp_path / "network_core.toml")
    assert (found[2].array.rows, found[2].words) == (2, 2048)


@pytest.mark.slow
def test_a_network_runs_on_a_shared_core_for_networks(tmp_path, capsys):
    pytest.importorskip("tflite")
    (tmp_path / "network_core.toml").write_text(CHIP)
    file = ["--config", str(tmp_path / "network_core.toml")]
    assert main(["run", NETWORK, *file]) == 0
    logits = capsys.readouterr().out.splitlines()[-1]
    with serving("board", *file) as (_, address):
        for words in ([], file):
            assert main(["run", NETWORK, "--on", address, *words]) == 0
            said = capsys.readouterr().out
            assert said.splitlines()[-1] == logits and "cycles (predicted " in said


def test_listens_on_this_machine_only(monkeypatch, capsys):
    """By default. A client's bytes go to the board as they are; nothing interprets them."""
    served = []
    monkeypatch.setattr("weft.host.tcp.TcpServer.serve", lambda server: served.append(
        server._listener.getsockname()
    ))
    ends = os.openpty()
    assert main(["serve", os.ttyname(ends[1]), "--baud", "115200", "--port", "0"]) == 2
    assert served[0][0] == "127.0.0.1"
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("words, said", [
    (["sim"], "BOARD must be a serial port, usb, or board for a simulated board, not sim\n"),
    (["tcp://host:1"], "BOARD must be a serial port, usb, or board for a simulated board, not tcp"),
    (["golden", "--rows", "2"], "BOARD must be a serial port, usb, or board for a simulated"),
    (["usb:left", "--baud", "9600"], "--baud must be for a serial port, not for usb:left\n"),
    (["/dev/ttyUSB1", "--rows", "2"], "--rows must be for a simulated board (board), not /dev/tty"),
    (["/dev/ttyUSB1", "--config", "x"], "--config must be for a simulated board (board), not /dev"),
    (["board", "--config", "none.toml"], "none.toml"),
])
def test_rejects_other_boards_before_any_work(monkeypatch, capsys, words, said):
    monkeypatch.setattr("weft.host.tcp.listen", lambda *args: pytest.fail("at work"))
    assert main(["serve", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("weft: error: ") and said in error


@pytest.mark.slow
def test_ctrl_c_of_a_run_leaves_the_board_usable(capsys):
    pytest.importorskip("tflite")
    # A process that is started in the background may ignore the signal.
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heeds}; import sys; from weft.cli import main; sys.exit(main(sys.argv[1:]))"
    assert main(["run", NETWORK]) == 0
    logits = capsys.readouterr().out.splitlines()[-1]
    with serving("board", *SMALL) as (_, address):
        command = [sys.executable, "-c", program, "run", NETWORK, "--on", address, "--layers"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            next(line for line in process.stdout if line.split()[:2] == ["0", "CONV_2D"])
            process.send_signal(signal.SIGINT)  # while the next layer computes
            said = process.communicate(timeout=600)
        assert (process.returncode, said[1]) == (130, "weft: stopped\n")
        assert logits not in said[0]
        run = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert (run.returncode, run.stdout.splitlines()[-1]) == (0, logits), run.stderr


def test_keeps_serving_if_its_output_is_closed(monkeypatch):
    """As in ``weft serve /dev/ttyUSB1 | head -1``."""

    def left(*args, file=None, **options):
        if file is None:
            raise BrokenPipeError

    monkeypatch.setattr("builtins.print", left)
    served = []
    monkeypatch.setattr("weft.host.tcp.TcpServer.serve", lambda relay: served.append(relay))
    ends = os.openpty()
    arguments = ["serve", os.ttyname(ends[1]), "--baud", "115200", "--port", "0"]
    assert main(arguments) == 2
    assert len(served) == 1
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("flag, value, rule", [
    ("port", "99999", "an integer in 0..65535"),
    ("port", "-1", "an integer in 0..65535"),
    ("host", "", "a name or an address"),
])
def test_rejects_a_wrong_address(flag, value, rule, capsys):
    with pytest.raises(SystemExit, match="^2$"):
        main(["serve", "board", f"--{flag}={value}"])
    assert f"argument --{flag}: {flag} must be {rule}, not {value!r}; see" in (
        capsys.readouterr().err
    )


def test_rejects_an_address_in_use_before_any_work(monkeypatch, capsys):
    monkeypatch.setattr("weft.sim.transport.start", lambda *args, **options: pytest.fail("at work"))
    with listen() as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "board", "--port", str(port)]) == 2
    text = f"weft: error: cannot listen at localhost:{port}: "
    assert capsys.readouterr().err.startswith(text)


def test_listens_over_ipv6(capsys, monkeypatch, has_ipv6):
    """The address is printed in the form that clients use."""
    monkeypatch.setattr("weft.host.tcp.TcpServer.serve", lambda relay: None)
    ends = os.openpty()
    path = os.ttyname(ends[1])
    for host in ("::1", "[::1]"):
        assert main(["serve", path, "--baud", "115200", "--host", host, "--port", "0"]) == 2
        assert re.match(rf"tcp://\[::1\]:\d+ is {path}\n", capsys.readouterr().out)
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("board, said", [
    ("/dev/ttyWeft7", "/dev/ttyWeft7 is not a serial port of this machine"),
])
def test_rejects_a_missing_serial_port(board, said, capsys):
    assert main(["serve", board]) == 2
    assert said in capsys.readouterr().err
