"""A session on a language core on a board, with a golden board on a pipe."""

from dataclasses import replace

import pytest
from faulty_pipe import End
from golden_language_board import CYCLES, PipedLanguageBoard
from language_programs import CORE, small_program

from weft.golden.language.sampling import GREEDY, sampling
from weft.host.board import BoardTransport
from weft.host.language_driver import LanguageDriver
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError
from weft.language_core.cycles import token_cycles
from weft.language_core.descriptors import CoreError
from weft.models.errors import ModelError
from weft.models.language_core.board_writer import BoardWriter, text_cycles

GUARD = 600


@pytest.fixture(scope="module")
def program():
    return small_program()


@pytest.fixture
def board(program):
    return PipedLanguageBoard(CORE, program.weights)


def driver_of(board, timeout=GUARD):
    end = End(board)
    return LanguageDriver(
        BoardTransport(end, end, name="the board", timeout=0.05), timeout=timeout
    )


def writer_of(program, driver, ahead=20):
    writer = BoardWriter(program, driver.config, ahead)
    writer.connect(driver)
    return writer


@pytest.mark.parametrize("prompt", [pytest.param("", marks=pytest.mark.slow), "the sand"])
def test_a_session_writes_the_golden_text(program, board, prompt):
    golden = program.open()
    with driver_of(board) as driver:
        session = program.open(writer_of(program, driver, ahead=12))
        for tokens in (1, 12, 100):  # fewer than the core writes, as many, and more
            assert [*session.generate(prompt, tokens)] == [*golden.generate(prompt, tokens)]
            assert (session.tokens, session.ended) == (golden.tokens, golden.ended)
    assert session.ended == "cache"


def test_keys_and_values_are_not_sent(program, board):
    with driver_of(board) as driver:
        writer = writer_of(program, driver)
        own = 128 * sum(end - start for start, end in writer.parts())
        assert driver.sent == own == 128 * (
            sum(writer.program.words.values()) - writer.program.words["cache"]
        )
        for first, _ in writer.program.caches:
            board.memories[0][128 * first] ^= 0xFF  # what a text leaves there
        seen = []
        writer.connect(driver, seen.append)
        assert (driver.sent, driver.found) == (own, own)
        assert seen == sorted(seen) and seen[-1] == 1


def test_the_state_at_the_end(program, board):
    with driver_of(board) as driver:
        session = program.open(writer := writer_of(program, driver, ahead=7))
        for _ in session.generate("the sand", 7):
            pass
        state = writer.finish()
        prompt = session.prompt_tokens
        assert (state.error, state.position) == (CoreError.NONE, prompt + 6)
        assert state.cycles == CYCLES * state.position
        assert writer.predicted() == text_cycles(writer.program, GREEDY, 0, prompt, prompt + 6)


def test_a_text_that_ends_early_is_aborted(program, board):
    board.pace = 1
    with driver_of(board) as driver:
        session = program.open(writer := writer_of(program, driver, ahead=30))
        text = session.generate("the sand", 30)
        next(text)
        assert board.running
        assert writer.finish().error == CoreError.ABORTED
        assert writer.predicted() is None and not board.running


def test_text_cycles_are_those_of_its_tokens_and_the_waits(program):
    core = BoardWriter(program, CORE, 1).program
    tokens = sum(token_cycles(core.passes, n, emits=n >= 2) for n in range(9))
    # A token of the prompt comes from the memory of the text; another one is in the core.
    assert text_cycles(core, GREEDY, 0, 3, 9) == tokens + 3 * 6 + 6 * 2


def test_a_broken_link_is_an_error_that_says_what_to_do(program, board):
    board.pace = 1
    with driver_of(board, timeout=0.2) as driver:
        session = program.open(writer_of(program, driver, ahead=30))
        text = session.generate("", 30)
        next(text)
        board.dead = True
        with pytest.raises(TransportError) as error:
            for _ in text:
                pass
        said = str(error.value)
        assert said.startswith("the link broke at position ")
        assert said.endswith(
            "run the same command again: the board keeps the model, and the text begins anew"
        )
        board.dead = False
    with driver_of(board) as driver:
        session, golden = program.open(writer_of(program, driver)), program.open()
        assert driver.sent == 0
        assert [*session.generate("", 9)] == [*golden.generate("", 9)]


@pytest.mark.parametrize("error, text", [
    (CoreError.KIND, "the core stopped at position 0 with error KIND: a descriptor in its memory"),
    (CoreError.ABORTED, "with error ABORTED: another program has aborted the text"),
])
def test_errors_of_the_core_are_named(program, board, error, text):
    board.stuck = True
    with driver_of(board) as driver:
        session = program.open(writer_of(program, driver))
        start = board.take_ordered

        def fail(frame):
            start(frame)
            if board.running:
                board.running, board.error = None, error

        board.take_ordered = fail
        with pytest.raises(AcceleratorError, match=text):
            [*session.generate("", 9)]


def test_a_reset_and_a_core_that_stands_are_errors(program, board, monkeypatch):
    board.stuck = True
    monkeypatch.setattr("weft.models.language_core.board_writer._NO_PROGRESS", 0.1)
    with driver_of(board) as driver:
        session = program.open(writer_of(program, driver))
        with pytest.raises(AcceleratorError, match="computes position 0 for over 0.1 s; load the"):
            [*session.generate("", 9)]
        registers = board.registers
        board.registers = lambda: [*registers()[:-3], 0, 0, 0]
        with pytest.raises(AcceleratorError, match="the core was reset while it wrote a text"):
            [*session.generate("", 9)]


def test_a_temperature_is_written_before_a_text(program, board):
    """In turn with greedy texts: each has the tokens of the golden model."""
    golden = program.open()
    with driver_of(board) as driver:
        session = program.open(writer := writer_of(program, driver, ahead=9))
        for how in ({"temperature": 0.8, "seed": 3}, {}, {"temperature": 2.0, "seed": 1 << 40},
                    {"temperature": 2.0, "seed": 5, "min_p": 0.1}, {}):
            board.how = sampling(
                how.get("temperature", 0), how.get("min_p", 0), program.weights.logit_bits
            )
            assert [*session.generate("the sand", 20, **how)] == [
                *golden.generate("the sand", 20, **how)
            ]
            assert session.tokens == golden.tokens
            first, data = writer.program.choice(board.how)
            assert driver.read_main(first, len(data)) == data
            assert writer.how == board.how


def test_a_core_without_memory_for_the_logits_takes_no_temperature(program, monkeypatch):
    writer = BoardWriter(program, CORE, 20)
    monkeypatch.setattr(writer, "program", replace(writer.program, sampler=()))
    session = program.open(writer)
    with pytest.raises(ModelError, match="temperature must be 0 on this core: with the 304 logits"):
        session.generate("the", 3, temperature=0.8)
