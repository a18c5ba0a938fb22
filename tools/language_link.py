"""Measure a story over a serial port: the language core of a simulated board, at its own clock.

    python -m tools.language_link

Exit code 1 if the text differs from the golden model, or the cycles from the prediction.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import weft
from tools import results
from tools.network_link import byte_times
from weft.boards.catalog import find
from weft.golden.language import IntegerModel
from weft.golden.language.sampling import GREEDY
from weft.host.language_driver import LanguageDriver
from weft.models.language_core.board_writer import BoardWriter, text_cycles
from weft.sim.transport import SimBoardTransport

BOARD, PURPOSE = "ulx3s-85f", "language"
MODEL = results.ROOT / "examples/stories.weft"
PROMPT, TOKENS = "One day, a girl named Mia", 200
TIMEOUT = 600
ABOUT = """\
The model of `examples/stories.weft` on the simulated board of `ulx3s-85f --for language`, whose
serial port is simulated bit by bit. **Model** is the time to write the model into an empty board,
and to compare it; **again** is the time to find that the board has it. **Text** is the time from
the first byte of the prompt to the last byte of the last token. Tokens are those that follow the
prompt, also after one that ends a story; their rate has the time of the prompt in it. **Core** is
the time in which the core computes. The rest is the way of the prompt to the core, and of the last
tokens from it. The text is equal to the golden model, and the cycles are as predicted."""
HEADS = """\
| tokens | prompt | model | again | text | tokens a second | core |
|---:|---:|---:|---:|---:|---:|---:|
"""


def row() -> str:
    """The line of the table. Raises SystemExit if a token or a cycle is wrong."""
    board, program = find(BOARD).built_for(PURPOSE), weft.load(MODEL)
    with tempfile.TemporaryDirectory() as scratch:
        events = Path(scratch) / "events"
        transport = SimBoardTransport(
            board.config, divisor=board.divisor, events=events, say=print
        )
        writer = BoardWriter(program, board.config, TOKENS)
        with LanguageDriver(transport, board.config, timeout=TIMEOUT) as driver:
            driver.state()
            marks = [len(byte_times(events))]
            for _ in range(2):
                writer.connect(driver)
                marks.append(len(byte_times(events)))
            prompt = program.tokenizer.encode(PROMPT)
            end = len(prompt) + TOKENS - 1
            tokens = _tokens(driver, prompt, end)
            found = byte_times(events)
            cycles = driver.state().cycles
    predicted = text_cycles(writer.program, GREEDY, 0, len(prompt), end)
    if tokens != _golden(program, prompt) or cycles != predicted:
        raise SystemExit("the text or its cycles differ from the golden model or the prediction")
    hertz = board.clock * 1e6
    once, again = (
        (found[end - 1][1] - found[start][1]) / hertz
        for start, end in zip(marks, marks[1:], strict=False)
    )
    text = (found[-1][1] - found[marks[-1]][1]) / hertz
    return (
        f"| {TOKENS} | {len(prompt)} | {once:.2f} s | {1e3 * again:.0f} ms"
        f" | {1e3 * text:.1f} ms | {TOKENS / text:,.0f} | {1e3 * cycles / hertz:.1f} ms |\n"
    )


def _tokens(driver, prompt, end):
    """The tokens that follow a prompt, read as they come; a token that ends texts ends no text."""
    driver.start(prompt, first_position=0, limit=end)
    found, at = [], len(prompt) - 1
    while at < end:
        position = driver.state().position
        if position > at:
            found += driver.tokens(at, position - at)
            at = position
    return found


def _golden(program, prompt):
    """The same tokens of the golden model."""
    model, new, found = IntegerModel(program.weights), prompt, []
    for _ in range(TOKENS):
        new = [int(model.step(np.array([new]))[0, -1].argmax())]
        found += new
    return found


def main() -> int:
    """Make the record; the exit code."""
    line = row()
    print(line, end="")
    print(results.save(
        "language-link", [results.table(HEADS + line)], title="A story over a serial port",
        command="make language-link", about=ABOUT, of=["tools.language_link"],
    ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
