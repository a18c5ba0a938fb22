"""The result of an exploration: the measured designs, the winner, and why its rivals lost."""

import dataclasses
import json
from pathlib import Path

__all__ = ["clock_of", "show_result"]

SPARE = 0.95  # share of fmax: pins and the PLL of a board may cost the rest
STEP = 0.5  # MHz between the clocks that are tried


def show_result(guide, board, workloads: list[str], folder: Path) -> int:
    """Print the designs of ``guide``, write the winner's TOML; exit code 1 without a winner."""
    from weft.explore.reasons import reason

    ranking = guide.ranking()
    if not ranking:
        rule = f" and reaches {guide.rate:,.1f} a second" if guide.rate else ""
        print(f"MISSED  no design fits {board.name}{rule}; so far:")
        for (config, seed), outcome in guide.outcomes.items():
            print(f"  {config.name}, seed {seed}: {outcome}")
        return 1
    _table(guide, ranking)
    winner = ranking[0]
    path = folder / f"{board.name}.toml"
    path.write_text(_toml(winner, board, workloads, guide.objective), encoding="utf-8")
    figures = guide.measured()[winner]
    print(
        f"winner: {winner.name}, {figures.latency:,.2f} us, {figures.rate:,.1f} a second,"
        f" {figures.area:,} LUTs; {path}"
    )
    print(f"build:  {_command(guide, winner, board, path)}")
    tried = dict.fromkeys(config for config, _ in guide.outcomes)
    rivals = [config for config in (*ranking[1:], *tried) if config != winner]
    for config in dict.fromkeys(rivals):
        print(f"lost:   {config.name}, {reason(guide, config, winner)}")
    return 0


def _table(guide, ranking):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table, figures, front = Table(box=SIMPLE_HEAD, pad_edge=False), guide.measured(), guide.front()
    for name in ("design", "fields", "us", "us in steady state", "LUT", "nJ", "seeds", "front"):
        table.add_column(name, justify="left" if name in ("design", "fields") else "right")
    for config in ranking:
        mine = figures[config]
        seeds = sum(each == config for each, _ in guide.outcomes)
        table.add_row(
            config.name, fields_text(config), f"{mine.latency:,.2f}", f"{mine.throughput:,.2f}",
            f"{mine.area:,}", f"{mine.energy:,.1f}", str(seeds), "yes" if config in front else "",
        )
    Console().print(table)


def fields_text(config) -> str:
    """The fields of a Config that are not in its name, in one line."""
    from weft.boards.fit import chosen_fields

    fields = chosen_fields(config)
    named = ("rows", "cols", "depth", "target")
    return " ".join(f"{name}={value}" for name, value in fields.items() if name not in named)


def _toml(config, board, workloads, objective):
    from weft.boards.fit import chosen_fields

    lines = [f"# weft explore: best {objective} on {board.name} for {', '.join(workloads)}"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in chosen_fields(config).items()]
    return "\n".join(lines) + "\n"


def _command(guide, winner, board, path):
    fmax = max(
        outcome.fmax for (config, _), outcome in guide.outcomes.items()
        if config == winner and outcome.done
    )
    clock = clock_of(board, SPARE * fmax)
    option = "" if clock is None else f" --clock {clock:g}"
    return f"weft build {board.name} --config {path}{option}"


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
