"""What ``weft explore`` prints, and the page of ``weft explore report``."""

import dataclasses
import itertools
import tempfile
from pathlib import Path

from weft.cli.options import limits_of, started
from weft.cli.progress import progress
from weft.files import output_file, write_text

__all__ = [
    "ERROR_COLUMNS", "FAMILIES", "STORE", "Left", "clock_of", "engine_of", "error_rows",
    "named_board", "record", "show_front", "show_model", "show_result", "store_of", "write_report",
]


STORE = "explore.sqlite"


def store_of(args, say=print):
    """The store of the arguments."""
    from weft.explore.points import PointStore
    from weft.sim.cache import folder

    return PointStore(Path(args.store) if args.store else folder() / STORE, say=say)


def engine_of(args, show):
    """The engine of the arguments, with its tools set up; says where it runs."""
    from weft.explore.flow import PointSteps

    return started(PointSteps(limits_of(args)), args, show)


def named_board(name, purpose=None):
    """The board of a name or of a file; with ``purpose``, with its network core.

    Raises BoardError if it has none for the purpose.
    """
    from weft.boards.catalog import find, load

    board = load(name) if name.endswith(".py") else find(name)
    return board.built_for(purpose) if purpose else board


class Left:
    """Says which points are left to other processes.

    Attributes
    ----------
    lost : int
        Points that no process is known to run.
    """

    def __init__(self, say):
        self._say = say
        self.lost = 0

    def __call__(self, point, other):
        self._say(f"{point}: {other.describe()}")
        self.lost += not other.alive


ERROR_COLUMNS = (
    "family", "points", "LUT, typical", "LUT, worst", "FF, typical", "FF, worst",
    "placed", "fmax, typical", "fmax, worst", "DSP, worst", "RAM, worst",
)
FAMILIES = "ecp5", "ice40", "ecp5-networks", "ice40-networks"
DRAWS = 100  # of the space, at most, for each random point


def show_model() -> int:
    """Print the leave-one-out errors of each FPGA family, and the coefficients of its model."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if Console().is_terminal else 160)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ERROR_COLUMNS:
        table.add_column(name, justify="left" if name == "family" else "right")
    for row in error_rows():
        table.add_row(*row)
    console.print("Errors of points that the model was not fitted to (leave-one-out):")
    console.print(table)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("family", "block", "feature", "LUT", "FF", "RAM"):
        justify = "left" if name in ("family", "block", "feature") else "right"
        table.add_column(name, justify=justify)
    for row in _coefficient_rows():
        table.add_row(*row)
    console.print("Cells that a block takes for each feature:")
    console.print(table)
    return 0


def error_rows() -> list[list[str]]:
    """A row of `ERROR_COLUMNS` for each family with enough points."""
    from weft.explore.findings import recorded
    from weft.explore.model import LEAST, leave_one_out

    rows = []
    for family in FAMILIES:
        done = [record for record in recorded(family) if record[1].done]
        if sum(bool(outcome.blocks) for _, outcome in done) <= LEAST:
            rows.append([family, str(len(done)), *["-"] * (len(ERROR_COLUMNS) - 2)])
            continue
        errors = leave_one_out(done)
        cells = [family, str(errors.of("LUT").size)]
        for name in ("LUT", "FF", "fmax"):
            known = errors.of(name).size
            cells += [str(known)] * (name == "fmax")
            cells += [
                f"{errors.typical(name):.1%}", f"{abs(errors.of(name)).max():.1%}"
            ] if known else ["-", "-"]
        cells += [str(abs(errors.blocks_of(name)).max()) for name in ("DSP", "RAM")]
        rows.append(cells)
    return rows


def _coefficient_rows():
    from weft.explore.findings import recorded
    from weft.explore.model import LEAST, FittedModel

    for family in FAMILIES:
        done = [record for record in recorded(family) if record[1].done]
        if sum(bool(outcome.blocks) for _, outcome in done) < LEAST:
            continue
        model = FittedModel(done)
        for part, names in model.set.blocks.items():
            for place, name in enumerate(names):
                found = [
                    model.coefficients[part, each][place] if each in model.set.fitted else 0
                    for each in ("LUT", "FF", "RAM")
                ]
                if any(found):
                    cells = [f"{value:,.3g}" if value else "" for value in found]
                    yield [family, part, "constant" if name == "1" else name, *cells]


def record(args) -> int:
    """Place and route the recorded points, and the ones of the options; write them to the file."""
    from weft.explore import findings
    from weft.explore.model import family_of
    from weft.tasks.store import run_items

    path = output_file(args.file or findings.FILE)
    known = findings.read(path)
    found = {point.key: (point, outcome) for point, outcome in known}
    wanted = [point for point, _ in known]
    if args.boards:
        wanted += findings.board_points(packed=args.packed)
    points = {
        point.key: point for point in wanted if args.family in (None, family_of(point.config))
    }
    points |= _more(args)
    with progress() as show, store_of(args, show.say) as store:
        waiting = iter(points.values())
        with engine_of(args, show) as engine, show.task(
            "placing and routing", total=len(points)
        ) as advance:

            def arrived(point, outcome, in_store):
                found[point.key] = point, outcome
                advance()
                if not in_store:
                    engine.forget(point)
                    show.say(f"{point}: {outcome}")

            left = Left(show.say)
            run_items(
                lambda: next(waiting, None), engine, store, seconds=60 * args.minutes,
                on_outcome=arrived, on_left=left,
            )
    if args.bench:
        found |= {point.key: (point, outcome)
                  for point, outcome in findings.bench_points(args.bench)}
    done = [(point, outcome) for point, outcome in found.values() if outcome.done]
    findings.write(path, done)
    print(f"{path}: {len(done)} points")
    return int(left.lost > 0)


def _more(args):
    """The random points, by their keys.

    Raises BoardError if the device is unknown, has no cores of the family, or too few.
    """
    from weft.boards.board import BoardError
    from weft.boards.devices import DEVICES
    from weft.explore import findings

    known = [name for name, device in DEVICES.items() if device.target in findings.PEAK]
    if args.device not in known:
        raise BoardError(f"--device must be one of {', '.join(known)}, not {args.device!r}")
    device, fresh = DEVICES[args.device], {}
    families = findings.families(device)
    family = args.family or families[0]
    if args.more and family not in families:
        raise BoardError(
            f"--family must be {' or '.join(families)} for {device.name}, not {family}"
        )
    drawn = findings.varied(
        device, args.seed, networks=family in families[1:], packed=args.packed
    )
    for point in itertools.islice(drawn, DRAWS * args.more):
        if len(fresh) == args.more:
            break
        fresh.setdefault(point.key, point)
    if len(fresh) < args.more:
        raise BoardError(
            f"--more must be at most {len(fresh)} for {device.name}, not {args.more}: its space"
            " has no other cores"
        )
    return fresh


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
