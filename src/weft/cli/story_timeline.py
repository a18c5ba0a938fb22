"""The work of ``weft story``: the story, and the timeline of its last token."""

import itertools
from importlib import resources
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from rich.text import Text

import weft
from weft.cli.language import core_writer, write_text
from weft.files import written_whole
from weft.golden.language.sampling import GREEDY
from weft.language_core.config import LanguageCoreConfig
from weft.models.language_core.program import largest_program
from weft.models.language_core.stages import Stage, token_stages

__all__ = ["draw", "predicted", "show", "stories"]

WIDTH = 56  # characters of the timeline
COLOR = "#3b6fb5"
TITLE = "the token at position {}: {:,} cycles"


def stories():
    """The program of the language model that tells the story."""
    return weft.load(resources.files("weft.demo").joinpath("stories.weft").read_bytes(), "stories")


def show(picture: Path, prompt: str, tokens: int, **how) -> int:
    """Tell a story, and draw the timeline of the last token; return the exit code.

    ``how`` are further arguments of `weft.models.language.program.LanguageSession.generate`.
    """
    program = stories()
    writer = core_writer(program)
    status = write_text(program, writer, prompt, tokens, **how)
    stages = token_stages(writer.program, writer.position - 1, writer.how)
    title = TITLE.format(writer.position - 1, writer.cycles[-1])
    console = Console(highlight=False, stderr=True)
    _print(console, stages, title)
    draw(stages, title, picture)
    console.print(f"Picture: {picture}")
    return status


def predicted(position: int = 63) -> tuple[list[Stage], str]:
    """The stages of the token at a position of a story, and the title of its timeline."""
    program = largest_program(stories().weights, LanguageCoreConfig())
    cycles = program.token_cycles(GREEDY, position)
    return token_stages(program, position), TITLE.format(position, cycles)


def _rows(stages):
    """The stages by name, in the order of their first ones."""
    rows = {}
    for stage in stages:
        rows.setdefault(stage.name, []).append(stage)
    return rows


def _print(console, stages, title):
    """Print the timeline: a row for each name, all layers in it."""
    table, scale = Table.grid(padding=(0, 2)), WIDTH / stages[-1].end
    for name, found in _rows(stages).items():
        letters = [" "] * WIDTH
        for stage in found:
            first = min(int(stage.start * scale), WIDTH - 1)
            last = min(max(first + 1, round(stage.end * scale)), WIDTH)
            letters[first:last] = "#" * (last - first)
        line = Text(no_wrap=True)
        for filled, run in itertools.groupby(letters, lambda letter: letter == "#"):
            line.append("".join(run), f"{COLOR} on {COLOR}" if filled else "")
        spent = sum(stage.end - stage.start for stage in found)
        table.add_row(name, line, Text(f"{spent:,}", justify="right"))
    console.print(title)
    console.print(table)


def draw(stages, title: str, path: Path) -> None:
    """Draw the timeline of a token."""
    rows = _rows(stages)
    figure = Figure(figsize=(9, 1.2 + 0.35 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for n, found in enumerate(rows.values()):
        for stage in found:
            axes.barh(n, stage.end - stage.start, left=stage.start, color=COLOR, height=0.7)
    axes.set_yticks(range(len(rows)), [*rows])
    axes.invert_yaxis()
    axes.set_xlim(0, stages[-1].end)
    axes.set_xlabel("cycles since the token began")
    axes.set_title(title)
    with written_whole(path) as part:
        figure.savefig(part, format="png", dpi=120, metadata={"Software": None})
