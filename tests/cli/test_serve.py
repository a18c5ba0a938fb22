"""``weft serve``: a simulated board on TCP, as a client on another machine would have it."""

import contextlib
import re
import subprocess
import sys

import numpy as np
import pytest

from weft import Accelerator
from weft.cli import main

SMALL = [
    "--rows", "2", "--cols", "3", "--depth", "2", "--a-words", "64", "--b-words", "64",
    "--bytes-in", "4", "--bytes-out", "8", "--lanes", "2", "--jobs", "2",
]


@contextlib.contextmanager
def serving(*arguments):
    """The process, and where it listens."""
    code = "import sys; from weft.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "serve", *arguments, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = next(line for line in process.stdout if line.startswith("tcp://"))
            yield process, re.match(r"tcp://\S+", said)[0]
        finally:
            process.kill()  # where tests run in the background, Ctrl-C is of no effect


def test_clients_one_after_another_have_the_board():
    a = np.arange(-60, 60, dtype=np.int8).reshape(12, 10)
    with serving("board", *SMALL) as (process, address):
        for _ in range(2):
            with Accelerator(address) as accelerator:
                assert np.array_equal(accelerator.matmul(a, a.T), a.astype(int) @ a.T)
        assert process.poll() is None


@pytest.mark.parametrize("board, said", [
    ("/dev/ttyWeft7", "/dev/ttyWeft7 must be a serial port of this machine"),
])
def test_rejects_a_board_that_is_not_there(board, said, capsys):
    assert main(["serve", board]) == 2
    assert said in capsys.readouterr().err
