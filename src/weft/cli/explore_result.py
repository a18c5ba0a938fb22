"""The result of an exploration: the measured designs, the winner, and why its rivals lost."""

import dataclasses
from pathlib import Path

from weft.files import write_text

__all__ = ["clock_of", "show_result"]

SPARE = 0.95  # share of fmax: pins and the PLL of a board may cost the rest
STEP = 0.5  # MHz between the clocks that are tried


def show_result(guide, board, purpose: str | None, workloads: list[str], folder: Path) -> int:
    """Print the designs of ``guide``, write the winner's TOML; exit code 1 without a winner.

    ``purpose`` is the one of ``--for``, or None.
    """
    from weft.designs import to_toml

    ranking = guide.ranking()
    if not ranking:
        rule = f" and reaches {guide.rate:,.1f} a second" if guide.rate else ""
        print(f"MISSED  no design fits {board.name}{rule}; so far:")
        for (config, seed), outcome in guide.outcomes.items():
            print(f"  {config.name}, seed {seed}: {outcome}")
        return 1
    _table(guide, ranking)
    winner = ranking[0]
    path = folder / f"{board.name}{f'-{purpose}' if purpose else ''}.toml"
    head = f"# weft explore: best {guide.objective} on {board.name} for {', '.join(workloads)}\n"
    write_text(path, head + to_toml(winner, chosen=True))
    figures = guide.measured()[winner]
    print(
        f"winner: {winner.name}, {figures.latency:,.2f} us, {figures.rate:,.1f} a second,"
        f" {figures.area:,} LUTs; {path}"
    )
    print(f"build:  {_command(guide, winner, board, purpose, path)}")
    tried = dict.fromkeys(config for config, _ in guide.outcomes)
    rivals = [config for config in (*ranking[1:], *tried) if config != winner]
    for config in dict.fromkeys(rivals):
        print(f"lost:   {config.name}, {guide.reason(config, winner)}")
    return 0


def _table(guide, ranking):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from weft.explore.config_fields import line_of

    table, figures, front = Table(box=SIMPLE_HEAD, pad_edge=False), guide.measured(), guide.front()
    has_energy = any(each.energy for each in figures.values())
    names = [
        "design", "fields", "MHz", "us", "us in steady state", "LUT", *["nJ"] * has_energy,
        "seeds", "front",
    ]
    for name in names:
        table.add_column(name, justify="left" if name in ("design", "fields") else "right")
    for config in ranking:
        mine = figures[config]
        seeds = sum(each == config for each, _ in guide.outcomes)
        table.add_row(
            config.name, line_of(config), f"{_fmax(guide, config):.1f}", f"{mine.latency:,.2f}",
            f"{mine.throughput:,.2f}", f"{mine.area:,}", *[f"{mine.energy:,.1f}"] * has_energy,
            str(seeds), "yes" if config in front else "",
        )
    Console().print(table)


def _fmax(guide, config):
    """The highest clock of a design in MHz, over its seeds."""
    return max(
        outcome.fmax for (each, _), outcome in guide.outcomes.items()
        if each == config and outcome.done
    )


def _command(guide, winner, board, purpose, path):
    clock = clock_of(board, SPARE * _fmax(guide, winner))
    options = f" --for {purpose}" if purpose else ""
    options += f" --config {path}" + ("" if clock is None else f" --clock {clock:g}")
    return f"weft build {board.name}{options}"


def clock_of(board, limit: float) -> float | None:
    """The highest clock in MHz, at most ``limit``, that the board's PLL and serial port allow."""
    from weft.boards.board import BoardError
    from weft.boards.pins import check_pins
    from weft.boards.pll import PllError

    clock = STEP * int(limit / STEP)
    while clock > limit / 2:
        try:
            check_pins(dataclasses.replace(board, clock=clock))
            return clock
        except (BoardError, PllError):
            clock -= STEP
    return None
