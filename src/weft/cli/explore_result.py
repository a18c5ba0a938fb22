"""What ``weft explore`` prints, and the page of ``weft explore report``."""

import dataclasses
import tempfile
from pathlib import Path

from weft.cli.arguments import output_file
from weft.cli.explore_points import named_board, store_of
from weft.cli.progress import progress
from weft.files import write_text

__all__ = ["clock_of", "show_front", "show_result", "write_report"]


def write_report(args) -> int:
    """Write ``report.html`` into the output folder; return the exit code."""
    from weft.explore.findings import findings
    from weft.explore.page import exploration_page
    from weft.explore.workload import workload_of
    from weft.tasks.store import StoreError

    path = output_file(Path(args.output) / "report.html")
    with progress() as show, store_of(args, show.say) as store:
        arguments = store.last()
        if arguments is None:
            raise StoreError(f"the store {store.path} has no exploration; run weft explore first")
        board = named_board(arguments["board"], arguments["purpose"])
        workloads = [workload_of(word) for word in arguments["workload"]]
        with show.task("computing cycles") as advance:
            explored = findings(
                board, workloads, store.all(), arguments["objective"], arguments["rate"], advance
            )
        with show.task("drawing the page"):
            page = exploration_page(explored, _floorplan(explored, store))
    write_text(path, page)
    print(f"page: {path}")
    return 0


def _floorplan(explored, store):
    """The floorplan of the winner as a PNG; None if the store has no layout of it."""
    from weft.boards.blocks import Cell
    from weft.cli.bitstream_report import floorplan_picture
    from weft.explore.points import Point

    for winner in explored.guide.ranking()[:1]:
        runs = [(outcome.fmax, seed) for (config, seed), outcome in explored.guide.outcomes.items()
                if config == winner and outcome.done]
        layout = store.layout(Point(explored.board.device, winner, max(runs)[1]))
        if not layout:
            return None
        cells = [Cell(block, resource, False, x, y, bel) for block, resource, x, y, bel in layout]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "floorplan.png"
            floorplan_picture(file, cells, title=f"{winner.name} on {explored.board.device.name}")
            return file.read_bytes()
    return None


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

    from weft.explore.space import line_of

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


SPARE = 0.95  # share of fmax: pins and the PLL of a board may cost the rest


def _command(guide, winner, board, purpose, path):
    clock = clock_of(board, SPARE * _fmax(guide, winner))
    options = f" --for {purpose}" if purpose else ""
    options += f" --config {path}" + ("" if clock is None else f" --clock {clock:g}")
    return f"weft build {board.name}{options}"


STEP = 0.5  # MHz between the clocks that are tried


def clock_of(board, limit: float) -> float | None:
    """The highest clock in MHz, at most ``limit``, that the board's PLL and serial port allow."""
    from weft.boards.board import BoardError, check_pins
    from weft.boards.pll import PllError

    clock = STEP * int(limit / STEP)
    while clock > limit / 2:
        try:
            check_pins(dataclasses.replace(board, clock=clock))
            return clock
        except (BoardError, PllError):
            clock -= STEP
    return None


def show_front(board, purpose: str | None, workloads, estimates, rate: float, runs: int) -> None:
    """Print the front of time and LUTs of the candidates ``estimates``, and the core of ``board``.

    ``rate`` is the one that the candidates reach, and ``runs`` the number of runs in the store.
    """
    from weft.explore.candidates import MARGIN, time_front

    name = f"{board.name} --for {purpose}" if purpose else board.name
    if not estimates:
        held = f" and holds {', '.join(each.name for each in workloads)}" if purpose else ""
        rule = f" and reaches {rate:,.1f} a second" if rate else ""
        print(f"MISSED  no design fits {board.name}{held}{rule}, by the estimates")
        return
    best = time_front(estimates, board.config)
    print(
        f"{len(estimates)} designs with exact cycles fit {board.name} ({board.device.name}) by"
        f" their estimates, in {MARGIN:.0%} of its LUTs; {len(best)} are on the front of time and"
        f" LUTs; the store has {runs} runs"
    )
    _designs_table(board, best, workloads)
    print(_own(board, name, estimates, best))
    if estimates[0].area.fmax is None:
        print(
            f"Cycles are exact, LUTs are estimates. Microseconds are at {board.clock:g} MHz, the"
            " clock of the board's core: too few cores were placed to estimate a clock. A larger"
            " hop has fewer registers, and usually a lower clock."
        )
    else:
        print("Cycles are exact, LUTs and clocks are estimates.")


BETTER = 5  # designs that beat the board's core in both, at most


def _own(board, name, estimates, best):
    """Where the core of the board lies."""
    own = next((each for each in estimates if each.config == board.config), None)
    if own is None:
        return f"{name} does not fit, or does not hold all networks, or is below the rate"
    time, luts = own.figures.latency, own.figures.area
    mine = f"{name}: {time:,.2f} us, {luts:,} LUTs"
    if own in best:
        return f"{mine}, on the front"
    better = [
        each for each in best if each.figures.latency <= time and each.figures.area <= luts
    ]
    lines = [f"{mine}, behind {len(better)} of the front:"]
    for each in better[:BETTER]:
        other = each.figures
        lines.append(
            f"  {_design(each.config)}: {1 - other.latency / time:.1%} less time,"
            f" {1 - other.area / luts:.1%} fewer LUTs"
        )
    return "\n".join(lines + ["  ..."] * (len(better) > BETTER))


def _design(config):
    """The fields of a design in one line, its array as in its name."""
    from weft.explore.space import fields_of, line_of

    fields = fields_of(config)
    return f"{fields['rows']}x{fields['cols']}x{fields['depth']} {line_of(config)}"


def _designs_table(board, designs, workloads):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    resources = [name for name in ("LUT", "FF", "DSP", "RAM") if name in designs[0].area.used]
    names = "design", *(workload.name for workload in workloads), "MHz", "us", *resources, ""
    for name in names:
        table.add_column(name, justify="left" if name in ("design", "") else "right")
    for each in designs:
        table.add_row(
            _design(each.config), *(f"{cost.cycles:,}" for cost in each.costs),
            f"{each.clock:.1f}", f"{each.figures.latency:,.2f}",
            *(f"{each.area.used[name]:,}" for name in resources),
            "the board's" if each.config == board.config else "",
        )
    Console(width=None if Console().is_terminal else 180).print(table)
