"""``weft boards``: the boards, what runs on them, and which of them hold a network whole."""

import math
import os
import re
import shutil
from dataclasses import dataclass

from weft.cli.options import path
from weft.cli.progress import slow_task
from weft.design import PerKind
from weft.tables import Column, fitted_table

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "list the boards, and which of them hold a network whole"
DESCRIPTION = """\
Without a network: a line for each design of each board. "for" is the value of --for in other
commands; without one, the design computes matrix products. The array is rows x columns x depth,
and the peak is MAC/cycle times the clock.
Price is a class, as shops had it when the board was added: $ is less than 100 US dollars, $$ more.
"load with" is the tool for 'weft program' that was found here; the line below has those that are
missing. A narrow terminal leaves out columns, the first one GMAC/s.

With a network: a line for each design, the best one first. A board holds a network whole if its
core computes all operators from its own memory. The times are predictions for one inference:
"core" at the clock of the board, "link" for the bytes on its serial port. The time on USB and the
host's time are not predicted.

  weft boards
  weft boards kws.tflite
"""
_WIDTH = 120


def add(parser):
    """Add the arguments of ``weft boards``."""
    parser.add_argument(
        "network", nargs="?", type=path("network"), help="a .tflite or .onnx file"
    )


def run(args) -> int:
    """Run the command; return its exit code."""
    if args.network is None:
        _list(list(_designs(lambda board: board.others)))
        return 0
    designs = list(_designs(lambda board: board.networks))
    import weft
    from weft.models.errors import KindError, ModelError
    from weft.models.loading import NeuralNetwork, refuse_language
    from weft.models.target import target_of

    network = weft.load(args.network)
    refuse_language(network, args.network)
    if not isinstance(network, NeuralNetwork):
        raise ModelError(
            f"network must be a .tflite or .onnx file: {args.network} is compiled for"
            f" {network.target.name} already"
        )
    fits, refusals = [], {}
    with slow_task("compiling for the boards", len(designs)) as advance:
        for board, purpose in designs:
            target = target_of(board.name, purpose or None)
            try:
                fits.append((board, purpose, _Fit.of(network, target)))
            except KindError as error:
                refusals[target.array.requantize] = error  # one for each rounding
            advance()
    _rank(network.name, fits)
    computes = any(purpose for _, purpose, _ in fits)
    for refusal in refusals.values():
        print(f"{'Some network' if computes else 'Network'} cores are left out. {refusal}")
    return 0


@dataclass(frozen=True)
class _Fit:
    """How a network runs on a core: ``rank`` 0 is whole, 3 does not fit."""

    rank: int
    text: str
    core: float = math.inf
    link: float | None = math.inf

    @property
    def order(self) -> tuple[int, bool, float]:
        """The key of the ranking: a time on USB is not known, so it comes after the known ones."""
        return self.rank, self.link is None, self.core + (self.link or 0)

    @classmethod
    def of(cls, network, target):
        from weft.models.errors import KindError, UnfitError

        try:
            program = network.compile(target)
        except KindError:
            raise
        except UnfitError as error:
            # Its first clause, without parentheses: "the memory must have 9 bytes, and has 8".
            text = re.sub(r" \([^)]*\)", "", str(error).removeprefix(f"{network.name}: "))
            return cls(3, text.partition(": ")[0])
        return _FITS.of(target)(program)


def _as_products(program):
    cost, target = program.estimate, program.target
    return _Fit(
        2, "product by product, over the link", target.core_seconds(cost.cycles),
        target.wire_seconds(cost.bytes_in, cost.bytes_out),
    )


def _as_lists(program):
    from weft.models.report.placement import link_seconds

    lists, host = len(program.segments), len(program.host)
    times = program.target.core_seconds(program.cycles), link_seconds(program)
    if lists == 1 and not host:
        return _Fit(0, "whole", *times)
    names = ", ".join(dict.fromkeys(step.operators[0] for step in program.host))
    names = names if len(names) < 40 else f"{host} operators"
    return _Fit(1, f"{lists} list{'s' * (lists != 1)}; on the host: {names}", *times)


_FITS = PerKind(product=_as_products, network=_as_lists)


def _designs(purposes):
    """Yield each board as it is built for each of its ``purposes(board)``; "" is the one of matrix
    products.
    """
    from weft.boards.catalog import BOARDS

    for board in BOARDS.values():
        yield board, ""
        for purpose in purposes(board):
            yield board.built_for(purpose), purpose


def _sizes(config):
    return "x".join(str(getattr(config.array, name)) for name in ("rows", "cols", "depth"))


_SHAPES = PerKind(
    product=_sizes, network=_sizes, language=lambda config: f"1x{config.columns}x{config.depth}",
)


_GOAL = "*"
_BOARDS = (
    Column("board", left=True), Column("FPGA", left=True), Column("price", 5, left=True),
    Column("for", left=True), Column("array", 2, left=True), Column("MHz", 3),
    Column("GMAC/s", 6), Column("link", 4), Column("load with", 1, left=True),
)
_FITTING = (
    Column("board", left=True), Column("for", left=True), Column("core ms"), Column("link ms"),
)


def _list(designs):
    rows, missing = [], []
    for board, purpose in designs:
        peak = board.config.peak * board.clock / 1e3
        loader = _loader(board)
        if loader is None:
            missing += [name for name, *_ in board.programmers[:1]]
        rows.append((
            board.name, board.device.name, board.price, purpose,
            _SHAPES.of(board.config)(board.config),
            f"{board.clock:.4g}{_GOAL * (not board.placed)}", f"{peak:.4g}",
            f"{board.baud / 1e6:g} Mbaud" if board.link == "serial" else "USB", loader or "",
        ))
    _print(_BOARDS, rows)
    _say_goals(board for board, _ in designs)
    if missing:
        print(f"missing here, to load bitstreams: {', '.join(dict.fromkeys(missing))}")


def _loader(board):
    """The tool that loads a bitstream and is installed here; None without one."""
    names = [name for name, *_ in board.programmers]
    return next((name for name in names if shutil.which(name)), None) if names else "no known tool"


def _rank(name, fits):
    fits = sorted(fits, key=lambda row: row[2].order)
    whole = sum(fit.rank == 0 for _, _, fit in fits)
    print(f"{name}: {whole} of {len(fits)} designs hold it whole")
    _print((*_FITTING, Column(f"how {name} runs", left=True)), [
        (
            board.name, purpose, _ms(fit.core) + _GOAL * (not board.placed and fit.rank < 3),
            _ms(fit.link), fit.text,
        ) for board, purpose, fit in fits
    ])
    _say_goals(board for board, _, _ in fits)


def _say_goals(boards):
    """What the mark at a clock, or at a time with it, says."""
    if not all(board.placed for board in boards):
        print(f"{_GOAL} nextpnr has not reached this clock yet")


def _ms(seconds):
    if seconds is None or seconds == math.inf:
        return ""
    return f"{1e3 * seconds:,.3g}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def _print(columns, rows):
    from rich.console import Console

    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:  # rich takes 80 columns then
        console = Console(width=_WIDTH)
    console.print(fitted_table(console, columns, rows))
