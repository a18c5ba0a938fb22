"""A simulated board at the pins of its serial port: the driver's results, exact in every bit."""

import contextlib
import os
import signal

import numpy as np
import pytest
from products import operands
from rejects import rejects

from weft.commands import Job, JobFlag
from weft.config import Config
from weft.host import Accelerator
from weft.host.transport import TransportClosed
from weft.sim.transport import SimBoardTransport

CONFIG = Config(
    rows=2, cols=3, depth=2, a_words=64, b_words=64, bytes_in=4, bytes_out=8, lanes=2, jobs=2,
)


@pytest.fixture(scope="module")
def board():
    with contextlib.closing(SimBoardTransport(CONFIG)) as board:
        yield board


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 7, 4), (9, 200, 8)])
def test_products_over_the_wires(board, shape):
    a, b = operands(*shape)
    accelerator = Accelerator(board, CONFIG)
    for _ in range(2):
        assert np.array_equal(accelerator.matmul(a, b), a.astype(int) @ b)


def test_results_finished_on_the_chip(board):
    a, b = operands(5, 7, 4)
    y = Accelerator(board).matmul(a, b, multiplier=1 << 30, shift=-8, zero_point=3)
    assert np.abs(y - np.clip((a.astype(int) @ b) / 512 + 3, -128, 127)).max() < 1


def test_bytes_are_counted(board):
    a, b = operands(5, 7, 4)
    accelerator = Accelerator(board)
    accelerator.matmul(a, b)
    sent, received = board.sent, board.received
    _, record = accelerator.matmul(a, b, record=True)
    frames = -(-record.bytes_in // 256)
    assert board.sent - sent == record.bytes_in + 12 * frames + 2 * 16
    # A frame of results a job, ACK for each of commands, the counters twice.
    answers = 16 * record.jobs + 12 * frames + 2 * (12 + 4 * 8)
    assert board.received - received == record.bytes_out + answers


def test_a_job_that_starves_is_cleared_away(board):
    accelerator = Accelerator(board, timeout=600)
    a, b = operands(5, 7, 4)
    assert np.array_equal(accelerator.matmul(a, b), a.astype(int) @ b)
    starving = Job(2, 3, 4, 0, 1, 1, 0, 1, 1, tag=7, flags=JobFlag.FEED_A | JobFlag.FEED_B)
    board.send_words(starving.pack() + starving.pack()[:12])  # and the stream stands amid a header
    again = Accelerator(board, timeout=600)  # as another client
    assert np.array_equal(again.matmul(a, b), a.astype(int) @ b)


def test_rejects_a_board_that_dies():
    with contextlib.closing(SimBoardTransport(CONFIG)) as board:
        accelerator = Accelerator(board, timeout=600)
        os.kill(board.process.pid, signal.SIGKILL)
        text = "the simulated board was disconnected"
        with rejects(TransportClosed, text):
            accelerator.matmul(*operands(2, 3, 4))
