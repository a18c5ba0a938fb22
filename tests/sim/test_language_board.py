"""A simulated board with a language core: the commands, at the pins of its serial port."""

import contextlib
import threading
import time

import pytest
from language_programs import CORE, SDRAM_CORE, small_program

from weft.cli import main
from weft.hints import visible
from weft.host.language_driver import LanguageDriver
from weft.host.tcp import TcpServer, listen
from weft.host.transport import TransportBusy
from weft.language_core.config import WORD_BYTES
from weft.language_core.cycles import as_predicted
from weft.language_core.descriptors import CoreError
from weft.models.language_core.board_writer import BoardWriter
from weft.sim.sdram import simulated_memory
from weft.sim.transport import ACK_TIMEOUT, SimBoardTransport, start

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def board():
    """The name of a board that is shared over TCP."""
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(start(CORE))
        stack.callback(process.terminate)
        server = TcpServer(process.stdout, process.stdin, listen(), timeout=ACK_TIMEOUT)
        stack.callback(server.close)
        threading.Thread(target=server.serve, daemon=True).start()
        yield f"tcp://localhost:{server.port}"


def opened(board):
    """A driver, as soon as the server has seen that the client before has left."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return LanguageDriver(board, CORE, timeout=60)
        except TransportBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.fixture
def driver(board):
    with opened(board) as driver:
        yield driver


def _golden(prompt, tokens):
    return [*small_program().open().generate(prompt, tokens)]


@pytest.mark.long
def test_a_story_by_the_command(board, tmp_path, capsys):
    """Twice: the second time the board has the model."""
    small_program().save(tmp_path / "small.weft")
    for found in (False, True):
        command = ["run", str(tmp_path / "small.weft"), "--on", board, "--tokens", "12"]
        while (code := main([*command, "--prompt", "the sand"])) == 2:
            assert "uses the board" in capsys.readouterr().err  # the server sees an end later
        assert code == 0
        said = capsys.readouterr()
        golden = visible("the sand" + "".join(_golden("the sand", 12)), keep="\n\t")
        assert said.out == golden + "\n"
        assert (" bytes sent, 0 bytes were there" not in said.err) == found
        assert "text equal to the golden model, cycles as predicted" in said.err


def test_texts_of_all_lengths(driver):
    """Golden tokens and predicted cycles, with what texts before have left in the cache."""
    program = small_program()
    writer = BoardWriter(program, CORE, 100)
    writer.connect(driver)
    session = program.open(writer)
    for prompt in ("", "the sand", "a sea of ants"):
        assert [*session.generate(prompt, 100)] == _golden(prompt, 100)
        assert session.ended == "cache"
        assert writer.finish().position == writer.positions
        assert writer.finish().cycles == writer.predicted()


def test_a_temperature(driver):
    """The random numbers of the core follow the seed; greedy texts before and after."""
    program = small_program()
    writer = BoardWriter(program, CORE, 30)
    writer.connect(driver)
    session, golden, whole = program.open(writer), program.open(), 0
    for how in ({}, {"temperature": 0.8, "seed": 3}, {"temperature": 3.0, "seed": 4, "min_p": 0.01},
                {"temperature": 3.0, "seed": 5}, {}):
        text = [*golden.generate("the sand", 30, **how)]
        assert [*session.generate("the sand", 30, **how)] == text
        if session.ended == "tokens":  # the core has ended, too
            assert writer.finish().cycles == writer.predicted()
            whole += 1
    assert whole >= 3


def test_an_abort_leaves_the_board_usable(board):
    """As Ctrl-C does: the text ends with the driver, and the next command runs."""
    program = small_program()
    with opened(board) as driver:
        writer = BoardWriter(program, driver.config, 47)
        writer.connect(driver)
        text = program.open(writer).generate("", 47)
        next(text)
    with opened(board) as driver:
        assert not driver.state().running
        assert driver.state().error in (CoreError.NONE, CoreError.ABORTED)
        writer = BoardWriter(program, driver.config, 9)
        writer.connect(driver)
        assert driver.sent == 0
        assert [*program.open(writer).generate("", 9)] == _golden("", 9)


@pytest.mark.long
def test_a_model_in_an_sdram():
    """The link loads the SDRAM, once; the core writes the golden text from it."""
    program, memory = small_program(), simulated_memory(SDRAM_CORE)
    with contextlib.closing(SimBoardTransport(SDRAM_CORE)) as transport:
        driver = LanguageDriver(transport, SDRAM_CORE, timeout=60)
        for tokens in (9, 4):
            writer = BoardWriter(program, driver.config, tokens, memory)
            writer.connect(driver)
            assert [*program.open(writer).generate("the sand", tokens)] == (
                _golden("the sand", tokens)
            )
            assert as_predicted(writer.finish().cycles, writer.predicted(), memory)
        image = writer.program
        size = len(image.program) + len(image.main) - WORD_BYTES * image.moved[1]
        assert driver.sent == size
        assert driver.found >= size


def test_the_main_memory_is_kept(driver):
    data = bytes(range(1, 256)) * 40
    driver.write_main(5000, data[:8000])
    assert driver.read_main(5000, 8000) == data[:8000]


def test_a_word_without_a_descriptor_is_an_error(driver):
    program = small_program()
    writer = BoardWriter(program, CORE, 9)
    writer.connect(driver)
    driver.write_main(16 * 4, bytes(8))  # of the fifth word
    with pytest.raises(RuntimeError, match="the core stopped at position 0 with error KIND"):
        [*program.open(writer).generate("the", 3)]
    writer.connect(driver)
    assert [*program.open(writer).generate("", 3)] == _golden("", 3)
