"""The driver of a language core and the writer on it, with a golden board on a good or bad pipe."""

import random
from dataclasses import replace

import pytest
from faulty_pipe import FAULTS, End, Faults
from golden_language_board import CYCLES, PipedLanguageBoard
from golden_network_board import PipedNetworkBoard
from language_programs import CORE, golden_text, program_of, quantized
from network_cores import network_core_config
from rejects import rejects

from weft.host.board import BoardTransport
from weft.host.core_session import CoreSession
from weft.host.language_driver import LanguageDriver
from weft.host.network_driver import NetworkDriver
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError
from weft.language_core.descriptors import CoreError
from weft.language_core.register_map import TextState

ACK_TIMEOUT = 0.05
GUARD = 600  # seconds after which a test hangs


def linked(board, **options):
    end = End(board)
    transport = BoardTransport(end, end, name="the board", timeout=ACK_TIMEOUT)
    return LanguageDriver(transport, **{"timeout": GUARD, **options})


def board_of(**faults):
    return PipedLanguageBoard(CORE, quantized(), **faults)


def text_of(driver, prompt, limit, first=0):
    """The tokens of a text, read as they come."""
    driver.start(prompt, first_position=first, limit=limit)
    found, at = [], first + len(prompt) - 1
    while at < limit:
        position = driver.state().position
        if position > at:
            found += driver.tokens(at, position - at)
            at = position
    return found


def test_the_model_is_sent_once_and_compared():
    board, program = board_of(), program_of(quantized())
    seen = []
    with linked(board, config=CORE) as driver:
        driver.write_main(16, program.main, seen.append)
        driver.write_tables(program.tables)
        size = len(program.main)
        assert (driver.sent, driver.found, sum(seen)) == (size, 0, size)
        driver.write_main(16, program.main)
        assert (driver.sent, driver.found) == (size, size)
        assert driver.read_main(16, size) == program.main
        board.memories[0][300] ^= 1
        driver.write_main(16, program.main)
        assert driver.sent == 2 * size
    assert board.memories[0][128:][:size].tobytes() == program.main
    entries = board.memories[1].view("<i2").reshape(-1, 2)
    assert (entries[:, 1] == program.tables[:, 1]).all()
    assert all(len(frame.payload) <= 1012 for frame in board.frames)


SDRAM = replace(CORE, program_words=64)


def test_the_program_memory_is_written_once_by_lists():
    """In pieces of 12 words; word 0 of the main memory, which the list takes, stays."""
    board, data, seen = PipedLanguageBoard(SDRAM, quantized()), random.Random(1).randbytes(5120), []
    head = board.memories[0][:128].tobytes()
    with linked(board, config=SDRAM) as driver:
        driver.write_program(9, data, (100, 12), seen.append)
        assert (driver.sent, driver.found) == (5120, 0)
        assert seen == [1536, 1536, 1536, 512]
        driver.write_program(9, data, (100, 12))
        assert (driver.sent, driver.found) == (5120, 5120)
        board.program[30] ^= 1  # in the second piece
        driver.write_program(9, data, (100, 12))
        assert driver.sent == 5120 + 1536
    assert board.program[9:49].tobytes() == data
    assert set(board.program[:9].flat) == set(board.program[49:].flat) == {0xA5}
    main = board.memories[0].reshape(-1, 128)
    assert main[0].tobytes() == head and set(main[1:100].flat) == set(main[112:].flat) == {0x5A}


def test_a_program_memory_that_fails_is_named():
    board = PipedLanguageBoard(SDRAM, quantized())
    with linked(board) as driver:
        for first, size in ((60, 1024), (-1, 128), (0, 100)):
            with pytest.raises(ValueError, match="words of the program memory must be whole, and"):
                driver.write_program(first, bytes(size), (100, 12))
        board.forgetful = True
        with rejects(
            AcceleratorError,
            "the program memory does not keep what is written: words 3..4 are wrong",
        ):
            driver.write_program(3, bytes(256), (100, 12))
        board.program = board.program[:32]
        with rejects(
            AcceleratorError,
            "the program memory failed at word 30: it answers with an error, or not in time",
        ):
            driver.write_program(30, bytes(512), (100, 12))


def test_a_memory_that_keeps_nothing_is_named():
    board = board_of()
    board.damaged = True
    with linked(board) as driver:
        with rejects(
            AcceleratorError, "the main memory does not keep what is written: groups 0..1 are"
            " wrong; weft selftest tests the memory",
        ):
            driver.write_main(0, bytes(16))


def test_texts():
    """Two texts, the second with a prompt of its own; then one that goes on."""
    with linked(board_of()) as driver:
        assert driver.state() == TextState(False, False, CoreError.NONE, 0, 0)
        for prompt, limit in (([3, 9], 20), ([5], 9)):
            assert text_of(driver, prompt, limit) == golden_text(quantized(), prompt, limit)
            ended = TextState(True, False, CoreError.NONE, limit, CYCLES * limit)
            assert driver.state() == ended
        whole = golden_text(quantized(), [5], 15)
        assert text_of(driver, [whole[8]], 15, first=9) == whole[9:]


def test_a_stop_token_ends_a_text():
    whole = golden_text(quantized(), [3, 9], 30)
    with linked(board_of()) as driver:
        driver.start([3, 9], first_position=0, limit=30, stop_token=whole[6])
        while (state := driver.state()).running:
            pass
        count = state.position - 1
        assert driver.tokens(1, count) == whole[: whole.index(whole[6]) + 1]


@pytest.mark.parametrize("way", ["to_board", "to_host"])
@pytest.mark.parametrize("fault", [
    name if name == "flip" else pytest.param(name, marks=pytest.mark.slow) for name in FAULTS
])
def test_faults_of_the_link_change_no_token(fault, way):
    faults = Faults(FAULTS[fault], chance=0.1, seed=5)
    board = board_of(**{way: faults})
    with linked(board) as driver:
        driver.write_main(0, bytes(range(256)) * 16)
        assert text_of(driver, [3, 9], 20) == golden_text(quantized(), [3, 9], 20)
        faults.on = False
    assert faults.done > 2
    assert board.memories[0][:4096].tobytes() == bytes(range(256)) * 16


def test_the_end_of_a_driver_ends_its_text():
    board = board_of()
    with linked(board) as driver:
        driver.start([3], first_position=0, limit=40)
        aborts = board.aborts
    assert board.aborts == aborts + 1 and not board.running
    with linked(board) as driver:  # as the next command
        assert text_of(driver, [3], 8) == golden_text(quantized(), [3], 8)


def test_a_new_text_ends_the_one_before():
    with linked(board_of()) as driver:
        driver.start([3], first_position=0, limit=40)
        assert text_of(driver, [4], 8) == golden_text(quantized(), [4], 8)


def test_a_dead_link_is_an_error_in_time():
    board = board_of()
    with linked(board, timeout=0.2) as driver:
        driver.start([3], first_position=0, limit=40)
        board.dead = True
        with pytest.raises(TransportError, match="no REGISTERS in answer to READ within 0.2 s"):
            driver.state()
        board.dead = False
        assert text_of(driver, [3], 8) == golden_text(quantized(), [3], 8)


@pytest.mark.parametrize("values, text", [
    (([], 0, 8), "not 0, 0 and 8"),
    (([1] * 9, 0, 8), "not 0, 9 and 8"),
    (([1], -1, 8), "not -1, 0 and 8"),
    (([1], 0, 1025), "not 0, 1 and 1025"),
    (([65536], 0, 8), "a token must be in 0..65535, not 65536"),
])
def test_rejects_a_text(values, text):
    prompt, first, limit = values
    with linked(board_of()) as driver, pytest.raises(ValueError, match=text):
        driver.start(prompt, first_position=first, limit=limit)


@pytest.mark.parametrize("seed", [0, -1, 1 << 32])
def test_rejects_a_seed(seed):
    with linked(board_of()) as driver, pytest.raises(ValueError, match=f"4294967295, not {seed}"):
        driver.start([1], first_position=0, limit=8, seed=seed)


@pytest.mark.parametrize("first, count", [(-1, 8), (12287, 16), (0, 12)])
def test_rejects_groups_outside_of_the_memory(first, count):
    with linked(board_of()) as driver:
        with pytest.raises(ValueError, match=r"main memory must be whole, and in 0\.\.12287, not"):
            driver.write_main(first, bytes(count))
        with pytest.raises(ValueError, match="main memory"):
            driver.read_main(first, count)


def test_rejects_cores_of_other_kinds_by_name():
    """In all directions."""
    network = PipedNetworkBoard(network_core_config(2, 4, 4))
    with rejects(
        AcceleratorError, "the core at the board must be a language core, not a network core; weft"
        " build BOARD --for language makes a bitstream with one, and weft program loads it",
    ):
        linked(network)
    end = End(board_of())
    transport = BoardTransport(end, end, timeout=ACK_TIMEOUT)
    with rejects(
        AcceleratorError, "the core's registers do not describe a network core: the core must be a"
        " network core, not a language core",
    ):
        NetworkDriver(transport)
    with pytest.raises(AcceleratorError, match="a network core, not a language core, which writes"):
        CoreSession.open(transport, None, GUARD)
    transport.close()


def test_rejects_another_config():
    import dataclasses

    other = dataclasses.replace(CORE, side_groups=128)
    with pytest.raises(AcceleratorError, match=f"must be {CORE.name} with hash {other.hash:08x}"):
        linked(board_of(), config=other)


def test_rejects_a_transport_without_a_link():
    with rejects(
        ValueError,
        "a language core must be at a serial port, usb or tcp://host:port, not golden",
    ):
        LanguageDriver("golden")
