"""The model of links: its bytes against those that transports carry, and times by hand."""

import numpy as np
import pytest
from faulty_pipe import End, PipedBoard
from golden_board import GoldenBoard
from products import accelerator, floats, integers
from rejects import rejects

from weft import Accelerator, Config, Parallel
from weft.host.board import BoardTransport
from weft.host.parallel import even_parts
from weft.models.chips import (
    Chip,
    Link,
    LinkBytes,
    Share,
    buffer_pages,
    core_seconds,
    link_bytes,
    shared_seconds,
)

GUARD = 600  # seconds after which a test hangs; no frame is repeated before
INT8 = Config(rows=3, cols=5, depth=2, a_words=128, b_words=256)
WIDE = Config(rows=1, cols=8, depth=8, a_words=64, b_words=256, bytes_out=8)
BF16 = Config(dtype="bf16", rows=2, cols=3, a_words=64, b_words=128, bytes_in=4)
TINY = Config(rows=2, cols=2, depth=1, a_words=32, b_words=32, bytes_in=1, bytes_out=1, lanes=1)
CONFIGS = pytest.mark.parametrize(
    "config", [INT8, WIDE, BF16, TINY], ids=lambda config: config.name
)


class Board(PipedBoard, GoldenBoard):
    """A board with a golden core on a pipe that loses nothing."""

    def __init__(self, config):
        PipedBoard.__init__(self)
        GoldenBoard.__init__(self, config)
        end = End(self)
        self.transport = BoardTransport(end, end, timeout=GUARD)

    def moved(self):
        return np.array([self.transport.sent, self.transport.received])


def operands(config, m, k, n):
    rng = np.random.default_rng(k)
    if config.dtype == "bf16":
        return floats(rng, m, k), floats(rng, k, n)
    return integers(rng, np.int8, m, k), integers(rng, np.int8, k, n)


def resident_columns(config, k):
    """Columns that fit the buffer of B of two cores."""
    panel = buffer_pages(config, Share(1, k, 1, True))
    return 2 * config.cols * (config.b_words // 16 // panel)


@CONFIGS
@pytest.mark.parametrize("m, k, n", [(1, 9, 4), (4, 20, 33), (1, 70, 100), (9, 120, 1)])
def test_predicts_the_bytes_that_boards_carry(config, m, k, n):
    boards = [Board(config) for _ in range(2)]
    a, b = operands(config, m, k, n)
    fits = n <= resident_columns(config, k)
    with Parallel([Accelerator(board.transport, config, timeout=GUARD) for board in boards]) as two:
        two.matmul(a[:1], b[:, :2])  # the first product finds the state of a board
        for resident in [False, True][: 1 + fits]:
            operand = two.load(b) if resident else b
            before = [board.moved() for board in boards]
            two.matmul(a, operand)
            for board, start, part in zip(boards, before, even_parts(n, 2), strict=True):
                moved = link_bytes(config, Share(m, k, len(part), resident))
                assert [*(board.moved() - start)] == [moved.sent, moved.received]


@CONFIGS
@pytest.mark.parametrize("resident", [False, True])
def test_the_cycles_are_those_of_the_driver(config, resident):
    m, k, n = 1, 30, 4 * config.cols - 1
    n = min(n, resident_columns(config, k) // 2)
    a, b = operands(config, m, k, n)
    core = accelerator(config)
    _, stats = core.matmul(a, core.load(b) if resident else b, record=True)
    seconds = core_seconds(Chip(config, 50e6), Share(m, k, n, resident))
    assert seconds == stats.cycles / 50e6


def test_the_bytes_of_a_small_product_by_hand():
    # Headers of a job and of a load have 32 bytes each. A has 3 words of 8 bytes, and two words
    # share 16 bytes of the stream. One frame, which adds 12 bytes, holds all. A frame of results
    # has 4 bytes more.
    assert link_bytes(WIDE, Share(1, 24, 8, resident=True)) == LinkBytes(
        12 + 32 + 32 + 32, 12 + 4 + 8 * 4, 12
    )
    assert link_bytes(WIDE, Share(1, 24, 0)) == LinkBytes(0, 0, 0)


def test_the_time_of_a_link_by_hand():
    moved = [LinkBytes(1000, 300, 200), LinkBytes(400, 100, 50)]
    assert Link("half", 1e3, 0, 0).seconds(moved) == 1.5
    assert Link("full", 1e3, 0, 0, duplex=True).seconds(moved) == 1.3
    assert Link("shared", 1e3, 0, 0, bus=1025).seconds(moved) == 2.0
    assert Link("shared little", 1e3, 0, 0, bus=1e6).seconds(moved) == 1.5
    assert Link("none", 1e3, 0, 0).seconds([]) == 0


def test_the_time_of_a_shared_product_by_hand():
    # 5 tiles of 3 columns: with a memory of 1,000 bytes a second, 20 * 14 weights take 0.28 s.
    config = Config(rows=1, cols=3, depth=2, a_words=64, b_words=64)
    slow = Chip(config, clock=1e6, memory=1e3)
    share = Share(1, 20, 14, resident=True)
    assert core_seconds(slow, share) == 0.28
    assert core_seconds(Chip(config, clock=100, memory=1e9), share) == 5 * 10 / 100
    link = Link("l", rate=1e3, latency=0.5, software=0.125)
    moved = link_bytes(config, share)
    expected = 2 * 0.125 + 0.5 + (moved.sent + moved.received) / 1e3 + 0.28
    shares = [share, Share(1, 20, 2, True), Share(1, 20, 0, True)]
    assert shared_seconds(slow, link, shares) == pytest.approx(expected, rel=1e-12)
    assert shared_seconds(slow, link, shares[2:]) == 0


def test_rejects_resident_columns_that_do_not_fit():
    # 13 panels of 20 words, which take 2 pages each, in a buffer of 16 pages.
    assert buffer_pages(INT8, Share(1, 40, 61, True)) == 26
    text = "resident columns must fit the 16 pages of the buffer of B, not need 26"
    with rejects(ValueError, text):
        core_seconds(Chip(INT8, 1e6), Share(1, 40, 61, True))
