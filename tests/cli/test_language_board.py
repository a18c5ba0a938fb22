"""``weft run`` and ``weft report`` with a language model on a board, and what other cores say."""

import contextlib
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from digits import CNN
from faulty_pipe import End
from golden_language_board import PipedLanguageBoard
from golden_language_core import GoldenLanguageCore
from golden_network_board import PipedNetworkBoard
from language_programs import CORE, small_program
from network_cores import network_core_config
from pty_port import Pty
from sdram_phases import MovedClock

from weft.cli import language, main
from weft.hints import visible
from weft.host.board import BoardTransport
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.descriptors import CoreError
from weft.sdram import SdramPhase

COMMAND = ["run", "small.weft", "--on", "/dev/board", "--prompt", "the sand", "--tokens", "9"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    small_program().save(tmp_path / "small.weft")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def said(capsys, folder):
    """``said(code, words...)``: what a command prints on both outputs, with this exit code."""
    def run(code, *words):
        assert main([*words]) == code
        found = capsys.readouterr()
        lines = [line for line in found.err.splitlines() if not line.startswith("   ...  ")]
        return found.out, lines

    return run


def _opens(monkeypatch, board):
    def opened(*_, **__):
        end = End(board)
        return BoardTransport(end, end, name="/dev/board", timeout=0.05)

    monkeypatch.setattr("weft.host.opening.open_transport", opened)


@pytest.fixture
def board(monkeypatch):
    board = PipedLanguageBoard(CORE, small_program().weights)
    _opens(monkeypatch, board)
    return board


def _golden():
    return "the sand" + "".join(small_program().open().generate("the sand", 9))


def test_a_story_on_a_board(said, board):
    """The second time the model is there. The golden board counts other cycles than a core."""
    for sent, found in ((True, False), (False, True)):
        out, lines = said(1, *COMMAND)
        assert out == visible(_golden(), keep="\n\t") + "\n"
        model, place, end = lines
        numbers = [int(n) for n in model.replace(",", "").split() if n.isdigit()]
        assert [n > 0 for n in numbers] == [sent, found]
        assert place.startswith("on /dev/board: 9 tokens after ")
        assert end.endswith("text equal to the golden model, cycles NOT as predicted")


def test_a_story_over_a_serial_port(said):
    board = PipedLanguageBoard(CORE, small_program().weights)

    def serve(pty):
        board.say = lambda frame: os.write(pty.master, frame.encode())
        while data := os.read(pty.master, 4096):
            board.take(data)

    pty = Pty(serve)
    try:
        command = [pty.path if word == "/dev/board" else word for word in COMMAND]
        out, lines = said(1, *command)  # the golden board counts other cycles
    finally:
        pty.close()
    assert out == visible(_golden(), keep="\n\t") + "\n"
    assert "text equal to the golden model" in lines[-1]
    assert not board.running


def test_predicted_cycles_are_exit_code_0(said, board, monkeypatch):
    monkeypatch.setattr(
        "weft.models.language_core.board_writer.BoardWriter.predicted",
        lambda writer: writer.state.cycles,
    )
    _, lines = said(0, *COMMAND)
    assert "golden model, cycles as predicted" in lines[-1]


def test_another_text_is_exit_code_1(said, board):
    step = board.step

    def wrong():
        step()
        board.memories[2].view("<u2")[board.position - 1] ^= 1

    board.step = wrong
    _, lines = said(1, *COMMAND)
    assert "text DIFFERENT from the golden model" in lines[-1]


def test_a_text_that_ends_early(said, board):
    board.pace = 1
    text = _golden().removeprefix("the sand")
    _, lines = said(0, *COMMAND, "--stop", text[0])
    assert lines[-1] == (
        "the core wrote more than was wanted, and was told to stop; text equal to the golden model"
    )
    assert not board.running


def test_ctrl_c_leaves_the_board_usable(said, board, monkeypatch):
    board.pace = 1
    shown = []

    def show(text):
        shown.append(text)
        if len(shown) == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("weft.cli.language._show", show)
        said(130, *COMMAND)
    assert not board.running and board.error == CoreError.ABORTED
    assert said(1, *COMMAND)[0] == visible(_golden(), keep="\n\t") + "\n"


def test_a_broken_link(said, board, monkeypatch):
    board.pace = 1
    step = board.step

    def last():
        step()
        board.dead = board.position > 6

    board.step = last
    monkeypatch.setattr("weft.cli.language_board._TIMEOUT", 0.2)
    out, lines = said(2, *COMMAND)
    assert out.endswith("\n")
    assert lines[-1].startswith("weft: error: the link broke at position ")


def test_other_cores_are_refused_by_name(said, board, monkeypatch):
    """A network on a language core, and a story on a network core."""
    _, lines = said(2, "run", str(CNN), "--on", "/dev/board")
    assert "a network core, not a language core, which writes text with language" in lines[-1]
    _opens(monkeypatch, PipedNetworkBoard(network_core_config(2, 4, 4)))
    _, lines = said(2, *COMMAND)
    assert "must be a language core, not a network core; weft build BOARD --for" in lines[-1]


@pytest.mark.parametrize("words, text", [
    (["run", str(CNN), "--board", "ulx3s-85f", "--for", "language"],
     "ulx3s-85f-language has a language core, which runs language models only, not networks"),
    (["report", str(CNN), "--board", "ulx3s-85f", "--for", "language"], "language models only"),
    ([*COMMAND, "--board", "ulx3s-85f", "--for", "networks"],
     "ulx3s-85f-networks has a network core, and small.weft is a language model: it runs on a"),
    ([*COMMAND, "--board", "icebreaker"], "icebreaker has a product core, and small.weft is a"),
    ([*COMMAND, "--board", "ulx3s-85f", "--for", "language"], "the language core must be"),
    ([*COMMAND, "--on", "golden", "--for", "language"], "--for must not be given"),
    ([*COMMAND, "--min-p", "0.1"], "--min-p must be with a temperature above 0"),
])
def test_rejects(said, board, words, text):
    _, lines = said(2, *words)
    assert text in lines[-1]


def test_report_of_a_core(said):
    words = "report", "small.weft", "--board", "ulx3s-85f", "--for", "language"
    out, _ = said(0, *words)
    found = json.loads(said(0, *words, "--json")[0])
    assert found["core_positions"] == 48
    assert found["words_used"] == sum(found["words_by_use"].values()) <= found["words"] == 3072
    on_core, cycles = out.splitlines()[-2:]
    assert on_core.startswith("on ulx3s-85f-language (language_1x8x16_3072, ")
    assert f"fits with 48 positions in {found['words_used']} of 3,072 words (list " in on_core
    assert cycles.startswith(f"cycles of a token: {found['token_cycles']['1']:,} with 1 position, ")
    rate = 48e6 * found["clock_mhz"] / found["text_cycles"]
    assert found["tokens_per_second"] == pytest.approx(rate)
    assert cycles.endswith(f": {rate:,.0f} tokens/s")


SDRAM = "--board", "ulx3s-85f", "--for", "language-sdram"


def test_report_of_a_core_with_a_program_memory(said):
    words = "report", "small.weft", *SDRAM
    out, _ = said(0, *words)
    found = json.loads(said(0, *words, "--json")[0])
    on_core, memory, moved, cycles = out.splitlines()[-4:]
    assert "81.25 MHz): fits with 48 positions" in on_core
    # 16 bits in a cycle, less 1 % for refreshes.
    assert 0.985 < found["program_bytes_per_second"] / (2e6 * found["clock_mhz"]) < 0.995
    used = sum(found["program_words_by_use"].values())
    assert memory.startswith(f"program memory: {used:,} of 262,144 words (cache ")
    assert found["program_words_used"] == used
    slow, fast = (
        found["program_bytes_per_second"] / found["token_bytes"][count] for count in ("48", "1")
    )
    assert f"{found['token_bytes']['24']:,} with 24 positions" in moved
    assert moved.endswith(f"they bound the rate to {slow:,.1f} to {fast:,.1f} tokens/s")
    assert found["tokens_per_second"] < fast
    assert cycles.endswith(f": {found['tokens_per_second']:,.0f} tokens/s")


@pytest.mark.parametrize("late, code, text", [(0, 0, "as predicted"), (400, 1, "NOT as predicted")])
def test_a_simulated_core_of_a_board(said, monkeypatch, late, code, text):
    """With its program memory, to within 1 % of the prediction, at the clock of the board."""
    weights, seen = small_program().weights, []

    def core_of(config):
        seen.append(config)
        return contextlib.nullcontext(GoldenLanguageCore(weights, config=config, late=late))

    monkeypatch.setattr(language, "simulated_core", core_of)
    _, lines = said(code, "run", "small.weft", "--on", "sim", "--tokens", "4", *SDRAM)
    assert seen == [LanguageCoreConfig(program_words=1 << 18, int4=True, target="ecp5")]
    assert "at 81.25 MHz, the clock of ulx3s-85f-language-sdram; text equal to" in lines[-1]
    assert lines[-1].endswith(f"cycles {text}, to within 1 %")


def test_a_file_describes_the_core(said, board):
    Path("core.toml").write_text("[language_core]\nwords = 768\ngroups = 512\nside_groups = 64\n")
    _, lines = said(1, *COMMAND, "--config", "core.toml")
    assert "text equal to the golden model" in lines[-1]
    Path("core.toml").write_text("[language_core]\nwords = 784\n")
    assert "the language core must be" in said(2, *COMMAND, "--config", "core.toml")[1][-1]


@pytest.mark.parametrize("text, problem", [
    ("[language_core]\nword = 768\n", "word is not a field of [language_core]; the fields are"),
    ("[language_core]\nwords = true\n", "words must be an integer, not True"),
    ("[language_core]\nwords = 5\n", "words must be in 16..4096, not 5"),
    ("rows = 2\n[language_core]\n", "rows must not be with the table [language_core]"),
    ("language_core = 5\n", "language_core must be a table, not 5"),
    ("rows = 2\n", "core has a product core, and small.weft is a language model"),
])
def test_rejects_a_file(said, board, text, problem):
    Path("core.toml").write_text(text)
    assert problem in said(2, *COMMAND, "--config", "core.toml")[1][-1]


def test_a_file_of_a_language_core_is_not_for_other_commands(said):
    Path("core.toml").write_text("[language_core]\n")
    for words in (["info"], ["generate", "--bus", "axi", "-o", "top.v"]):
        _, lines = said(2, *words, "--config", "core.toml")
        assert "the table [language_core] is for a simulated core only: weft serve" in lines[-1]
    _, lines = said(2, "run", str(CNN), "--config", "core.toml")
    assert "core has a language core, which runs language models only, not networks" in lines[-1]


def test_selftest_of_a_language_core(said, monkeypatch):
    board = PipedLanguageBoard(CORE, None)
    _opens(monkeypatch, board)
    out, _ = said(0, "selftest", "/dev/board")
    assert "language_1x8x16_768, 128 MAC/cycle" in out and "98,304 bytes; " in out
    board.memories[0].flags.writeable = False
    board.damaged = True
    out, _ = said(1, "selftest", "/dev/board")
    assert "the main memory does not keep what is written" in out


SDRAM_CHECKS = "data lines", "address lines", "sample", "refresh", "patterns"


@pytest.mark.parametrize("name, broken, failures", [
    (None, None, {}),
    ("lines", lambda numbers: numbers & ~16, {
        "address lines": "byte addresses that differ by 0x800 are the same place", "sample": None,
        "refresh": None, "patterns": None,
    }),
    ("lines", lambda numbers: numbers & 31, {
        "address lines": "the memory has 4,096 bytes, and must have 8,192", "sample": None,
        "refresh": None, "patterns": None,
    }),
    # The upper byte of a chip with 16 bits.
    ("kept", lambda words: words | np.array([0, 255] * 64, np.uint8), {
        "data lines": "wrong bits of a beat of 128: 8..15, 24..31, 40..47, 56..63, 72..79, 88..95,"
                      " 104..111, 120..127; always 1: 8..15, 24..31,",
        "sample": "only bytes 1, 3, 5, 7, 9, 11, 13, 15 of 16", "address lines": None,
        "refresh": None, "patterns": None,
    }),
])
def test_selftest_of_an_sdram(said, monkeypatch, name, broken, failures):
    monkeypatch.setattr("weft.host.memory_test._REST", 0)
    monkeypatch.setenv("COLUMNS", "120")
    board = PipedLanguageBoard(replace(CORE, program_words=64), None)
    if name:
        setattr(board, name, broken)
    board.clock = MovedClock(SdramPhase(12, 16), range(8, 15))
    _opens(monkeypatch, board)
    out, _ = said(int(name is not None), "selftest", "/dev/board")
    lines = out.splitlines()
    if name is None:
        assert "180 to 315 degrees pass; the middle is 247.5" in out
        assert "........#######.\n            ^ 270 degrees, as built\n" in out
    for check in SDRAM_CHECKS:
        [row] = [line.split() for line in lines if f"program memory, {check}  " in line]
        assert row[-1] == ("NO" if check in failures else "yes")
        if failures.get(check):
            [line] = [line for line in lines if line.startswith(f"program memory, {check}: ")]
            assert failures[check] in line


def test_selftest_of_a_wrong_phase(said, monkeypatch):
    monkeypatch.setattr("weft.host.memory_test._REST", 0)
    board = PipedLanguageBoard(replace(CORE, program_words=64), None)
    board.clock = MovedClock(SdramPhase(12, 16), range(1, 8))
    _opens(monkeypatch, board)
    out, _ = said(1, "selftest", "/dev/board")
    assert (
        "program memory, phase of its clock: the phase of 270 degrees fails; build with"
        " --sdram-phase 90, the middle of those that pass\n"
    ) in out


def test_selftest_of_an_sdram_that_does_not_answer(said, monkeypatch):
    board = PipedLanguageBoard(replace(CORE, program_words=64), None)
    board.program = board.program[:0]
    _opens(monkeypatch, board)
    out, _ = said(1, "selftest", "/dev/board")
    assert "program memory, data lines: the program memory failed at word 0: it answers" in out
