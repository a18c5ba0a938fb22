"""``weft explore record`` and ``model``: points are measured, and estimates fitted to them."""

import itertools
from pathlib import Path

from weft.cli.arguments import output_file
from weft.cli.engine_options import limits_of, started
from weft.cli.progress import progress

__all__ = [
    "ERROR_COLUMNS", "FAMILIES", "STORE", "Left", "engine_of", "error_rows", "named_board",
    "record", "show_model", "store_of",
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
    from weft.explore.model import LEAST, leave_one_out
    from weft.explore.recorded import recorded

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
    from weft.explore.model import LEAST, FittedModel
    from weft.explore.recorded import recorded

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
    from weft.explore import recorded
    from weft.explore.model import family_of
    from weft.tasks.session import run_items

    path = output_file(args.file or recorded.FILE)
    known = recorded.read(path)
    found = {point.key: (point, outcome) for point, outcome in known}
    wanted = [point for point, _ in known]
    if args.boards:
        wanted += recorded.board_points(packed=args.packed)
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
                  for point, outcome in recorded.bench_points(args.bench)}
    done = [(point, outcome) for point, outcome in found.values() if outcome.done]
    recorded.write(path, done)
    print(f"{path}: {len(done)} points")
    return int(left.lost > 0)


def _more(args):
    """The random points, by their keys.

    Raises BoardError if the device is unknown, has no cores of the family, or too few.
    """
    from weft.boards.board import BoardError
    from weft.boards.devices import DEVICES
    from weft.explore import recorded

    if args.device not in DEVICES:
        raise BoardError(f"--device must be one of {', '.join(DEVICES)}, not {args.device!r}")
    device, fresh = DEVICES[args.device], {}
    families = recorded.families(device)
    family = args.family or families[0]
    if args.more and family not in families:
        raise BoardError(
            f"--family must be {' or '.join(families)} for {device.name}, not {family}"
        )
    drawn = recorded.varied(
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
