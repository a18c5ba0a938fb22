"""Tests of the transport to a board over unreliable pipes, with a model of the board."""

import numpy as np
import pytest
from faulty_pipe import FAULTS, End, Faults, PipedBoard, flip
from golden_board import GoldenBoard
from golden_stream import GoldenStream
from products import operands
from rejects import rejects
from tiers import quick

from weft.commands import HEADER_BYTES, Job, JobFlag, Load, Region
from weft.config import Config
from weft.frames import MAX_PAYLOAD, FrameType
from weft.host import Accelerator
from weft.host.accelerator import AcceleratorError
from weft.host.board import BoardTransport
from weft.host.link import Frame
from weft.host.transport import TransportClosed, TransportError, TransportTimeout

CONFIG = Config(rows=3, cols=5, depth=2, a_words=64, b_words=64, bytes_in=4, bytes_out=4)
CONFIGS = [
    CONFIG,
    Config(rows=2, cols=2, depth=1, a_words=32, b_words=32, bytes_in=1, bytes_out=1, lanes=1),
    Config(rows=2, cols=2, depth=1, a_words=32, b_words=32, bytes_in=64, bytes_out=64),
]
ACK_TIMEOUT = 0.04
GUARD = 600  # seconds after which a test hangs


class Board(PipedBoard, GoldenBoard):
    """A board with a product core on a pipe."""

    def __init__(self, config=CONFIG, **faults):
        PipedBoard.__init__(self, **faults)
        GoldenBoard.__init__(self, config)


named = pytest.mark.parametrize("fault", FAULTS)


def linked(board, **options):
    end = End(board)
    return BoardTransport(end, end, timeout=ACK_TIMEOUT, **options)


def product(accelerator, m=7, k=40, n=9, seed=1):
    a, b = operands(m, k, n, seed)
    return np.array_equal(accelerator.matmul(a, b), a.astype(int) @ b)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.bytes_in} bytes")
def test_products_over_a_reliable_link(config):
    board = Board(config)
    with Accelerator(linked(board), config, timeout=GUARD) as accelerator:
        assert all(product(accelerator, seed=seed) for seed in range(3))
    commands = [frame for frame in board.frames if frame.type == FrameType.COMMANDS]
    assert len(commands) > 8
    assert all(len(frame.payload) <= MAX_PAYLOAD for frame in commands)


@named
@pytest.mark.parametrize("seed", quick(1, [0, 1]))
def test_retransmits_damaged_commands(fault, seed):
    faults = Faults(FAULTS[fault], chance=0.2, seed=seed)
    board = Board(to_board=faults)
    with Accelerator(linked(board), timeout=GUARD) as accelerator:
        assert all(product(accelerator, 20, 60, 20, seed=seed) for seed in range(3))
    assert faults.done > 0


@named
@pytest.mark.parametrize("seed", quick(1, [0, 1]))
def test_repeats_requests_without_an_answer(fault, seed):
    kinds = [FrameType.REGISTERS, FrameType.ABORTED, FrameType.ACK, FrameType.ERROR]
    faults = Faults(FAULTS[fault], chance=0.2, seed=seed, kinds=kinds)
    board = Board(to_host=faults)
    right = failed = 0
    with Accelerator(linked(board), timeout=GUARD) as accelerator:
        for n in range(6):
            try:
                right += product(accelerator, seed=n)
            except (AcceleratorError, TransportError):
                failed += 1  # the damage might have been results
        assert right or fault not in ("lose", "twice")
        faults.on = False
        try:
            product(accelerator)
        except TransportError:
            pass  # of damage that came behind the last results
        assert product(accelerator)
    assert faults.done > 0


@named
@pytest.mark.parametrize("at", [1, 2, 3])
def test_recovers_after_lost_results(fault, at, limit):
    faults = Faults(FAULTS[fault], at=[at], kinds=[FrameType.RESULTS])
    faults.on = False
    board = Board(to_host=faults)
    with Accelerator(linked(board), timeout=GUARD) as accelerator:
        assert product(accelerator)
        faults.on = True
        try:
            with limit(accelerator, 1):
                assert product(accelerator, 40, 30, 40) and fault == "noise"
        except (AcceleratorError, TransportError):
            pass
        assert faults.done == 1
        assert product(accelerator, seed=2)
        assert product(accelerator, seed=3)


def test_reports_lost_results():
    board = Board(to_host=Faults(FAULTS["lose"], at=[3], kinds=[FrameType.RESULTS]))
    with Accelerator(linked(board), timeout=GUARD) as accelerator:
        with rejects(TransportError, "result frames were lost: expected number 2, received 3"):
            product(accelerator, 40, 30, 40)


def test_rejects_a_board_that_does_not_answer():
    board = Board()
    board.dead = True
    transport = linked(board, name="/dev/ttyX at 9 baud")
    with rejects(TransportTimeout, (
        "no answer from a Weft core at /dev/ttyX at 9 baud within 0.3 s, received nothing;"
        " is the board connected and loaded?"
    )):
        transport.probe(0.3)
    transport.close()


def test_rejects_another_device():
    board = Board()
    board.take = lambda data: board.end.pipe.put(b"login: WF")
    transport = linked(board)
    with pytest.raises(TransportTimeout, match=r", received \d+ other bytes; is"):
        transport.probe(0.3)
    transport.close()


def test_times_out_and_recovers_when_the_board_answers_again(limit):
    board = Board()
    with Accelerator(linked(board), timeout=GUARD) as accelerator:
        assert product(accelerator)
        board.dead = True
        for text in ("no results within 0.5 s", "no ABORTED in answer to ABORT within 0.5 s"):
            with limit(accelerator, 0.5), rejects(TransportTimeout, text):
                product(accelerator)
        board.dead = False
        assert product(accelerator)


def test_reports_a_frame_that_is_never_acknowledged():
    board = Board(to_board=Faults(flip, chance=1.0, kinds=[FrameType.COMMANDS]))
    board.to_board.on = False
    with Accelerator(linked(board), timeout=GUARD) as accelerator:
        assert product(accelerator)
        board.to_board.on = True
        with rejects(TransportError, (
            "no acknowledgement after 20 retransmissions; is the board still connected?"
        )):
            product(accelerator)
        board.to_board.on = False
        assert product(accelerator)


def test_waits_for_space_on_the_board(limit):
    board = Board()
    with Accelerator(linked(board), timeout=GUARD) as accelerator:
        assert product(accelerator)
        board.full = True
        with limit(accelerator, 0.5), pytest.raises(TransportTimeout):
            product(accelerator)
        board.full = False
        assert product(accelerator)


def test_recovers_after_a_reset_of_the_board():
    board = Board()
    with Accelerator(linked(board), timeout=GUARD) as accelerator:
        assert product(accelerator)
        board.last, board.results = 0, 0
        board.core = GoldenStream(CONFIG)
        with pytest.raises(TransportError):
            product(accelerator)
        assert product(accelerator)


def test_stays_closed_after_the_pipe_ended():
    board = Board()
    accelerator = Accelerator(linked(board, name="/dev/ttyX"), timeout=GUARD)
    assert product(accelerator)
    taken = board.take
    board.take = lambda data: (taken(data), board.end.close())
    for _ in range(2):
        with rejects(TransportClosed, "/dev/ttyX was disconnected"):
            product(accelerator)
    accelerator.close()


def test_rejects_commands_before_a_restart():
    transport = linked(Board())
    with rejects(TransportError, "no commands can be sent before restart() was called"):
        transport.send_words(bytes(4))
    transport.restart(GUARD)
    transport.send_words(bytes(4))
    transport.close()


@pytest.mark.parametrize("last", [0, 1, 100, 254, 255])
@pytest.mark.parametrize("late", [[], [0], [1, 0], [1], [2, 0], [2]])
def test_finds_the_expected_sequence_number(last, late, monkeypatch, acknowledged):
    """Late ACK frames, with numbers up to the last accepted one, are not taken for the answer."""
    for first in range(4):  # it begins with any number
        monkeypatch.setattr("weft.host.board.randrange", lambda n, at=last + first - 1: at % n)
        board = Board()
        board.last = last
        answers = [Frame(FrameType.ACK, (last - n) % 256) for n in late]
        act = board.act

        def delayed(frame, board=board, act=act, answers=answers):
            if frame.type == FrameType.COMMANDS:
                while answers:
                    board.say(answers.pop(0))
            act(frame)

        board.act = delayed
        transport = linked(board)
        transport.restart(GUARD)
        transport.send_words(b"word" * 64 * 3)
        acknowledged(transport)
        assert board.kept == b"word" * 64 * 3
        transport.close()


def commands_of(config):
    """A job that waits for its load, then a load that fills the buffer."""
    job = Job(1, 1, 1, 0, 1, 1, 0, 1, 1, tag=7, flags=JobFlag.FEED_A)
    load = Load(Region.A, 0, 1, config.a_words // 16, 16)
    return job.pack().ljust(config.bytes_in, b"\0") + load.pack().ljust(config.bytes_in, b"\0")


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.bytes_in} bytes")
@pytest.mark.parametrize("words", [1, 7, 8, 17, 65])
def test_recovers_a_core_inside_a_command(config, words, acknowledged):
    board = Board(config)
    first = linked(board)
    first.restart(GUARD)
    left = (commands_of(config) + bytes(4 * HEADER_BYTES))[: words * config.bytes_in]
    first.send_words(left)
    acknowledged(first)
    board.end.close()  # the client dies
    with Accelerator(linked(board), config, timeout=GUARD) as accelerator:
        assert product(accelerator)
        assert product(accelerator, seed=2)


def test_reports_a_core_that_stays_busy(limit):
    board = Board()
    transport = linked(board)
    with Accelerator(transport, CONFIG, timeout=GUARD) as accelerator:
        board.give = lambda: None
        with limit(accelerator, 1), rejects(AcceleratorError, (
            "the core is still busy 1 s after an abort; reset the core"
        )):
            product(accelerator)
