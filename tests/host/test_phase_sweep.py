"""Which phases of an SDRAM's clock pass: what a sweep finds, and what it says."""

import pytest
from faulty_pipe import End
from golden_language_board import PipedLanguageBoard
from golden_network_board import PipedNetworkBoard
from network_cores import PROGRAM
from rejects import rejects
from sdram_phases import MovedClock

from weft.host import memory_test
from weft.host.board import BoardTransport
from weft.host.language_driver import LanguageDriver
from weft.host.memory_test import PhaseSweep, sweep_phases, sweep_phases_of_words
from weft.host.network_driver import NetworkDriver
from weft.host.transport import TransportError
from weft.language_core.config import LanguageCoreConfig
from weft.sdram import SdramPhase

BUILT = SdramPhase(12, 16)
LANGUAGE = LanguageCoreConfig(target="ecp5", words=128, program_words=64)


def linked(board):
    end = End(board)
    return BoardTransport(end, end, name="the board", timeout=0.05)


def network(right):
    board = PipedNetworkBoard(PROGRAM)
    board.clock = right and MovedClock(BUILT, right)
    return board, NetworkDriver(linked(board), PROGRAM, timeout=60), sweep_phases


def language(right):
    board = PipedLanguageBoard(LANGUAGE, None)
    board.clock = right and MovedClock(BUILT, right)
    return board, LanguageDriver(linked(board), timeout=60), sweep_phases_of_words


KINDS = pytest.mark.parametrize("kind", [network, language])


@KINDS
@pytest.mark.parametrize("right", [range(5, 14), {14, 15, 0, 1, 12}, range(16), {3}])
def test_each_phase_is_tested(kind, right):
    board, driver, sweep = kind(right)
    with driver:
        found = sweep(driver)
    assert found == PhaseSweep(BUILT, tuple(n in right for n in range(16)))
    # A whole period: the clock is where it was.
    assert (board.clock.now, board.clock.moves) == (BUILT, 16)


@KINDS
def test_a_fixed_phase(kind):
    board, driver, sweep = kind(None)
    before = board.program.copy()
    with driver:
        assert sweep(driver) is None
    assert (board.program == before).all()


@KINDS
def test_the_clock_returns_after_an_error(kind, monkeypatch):
    board, driver, sweep = kind(range(16))
    keeps, tested = memory_test._keeps, []

    def broken(memory, seed):
        tested.append(seed)
        if len(tested) == 5:
            raise TransportError("the link is broken")
        return keeps(memory, seed)

    monkeypatch.setattr(memory_test, "_keeps", broken)
    with driver, rejects(TransportError, "the link is broken"):
        sweep(driver)
    assert (board.clock.now, board.clock.moves) == (BUILT, 16)


@pytest.mark.parametrize(("right", "details", "failure"), [
    (range(5, 14), "112.5 to 292.5 degrees pass; the middle is 202.5", None),
    ({14, 15, 0, 1, 12}, "270 to 270, 315 to 22.5 degrees pass; the middle is 337.5", None),
    (range(16), "0 to 337.5 degrees pass; the middle is 157.5", None),
    ({3}, "67.5 to 67.5 degrees pass; the middle is 67.5",
     "build with --sdram-phase 68, the middle of those that pass"),
    ((), "none of 16 phases passes", "no phase passes: the memory or its wires are broken"),
])
def test_what_a_sweep_says(right, details, failure):
    sweep = PhaseSweep(BUILT, tuple(n in right for n in range(16)))
    assert sweep.details == details
    assert sweep.failure == (failure and f"the phase of 270 degrees fails; {failure}")


def test_the_picture():
    sweep = PhaseSweep(BUILT, tuple(5 <= n < 14 for n in range(16)))
    assert sweep.picture.splitlines() == [
        "phases of the SDRAM's clock, 0 to 337.5 degrees: # passes, . fails",
        ".....#########..",
        "            ^ 270 degrees, as built",
    ]
