"""The report of an offloaded function: what ran where and why, MAC, cycles, bytes, times."""

import io
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from weft.commands import Job, Region
from weft.config import Config
from weft.cycles import predict
from weft.geometry import memories
from weft.host.product_stream import Packed, resident_loads
from weft.models.errors import ModelError
from weft.models.program import MatrixProduct
from weft.models.report.interface import WIDTH, plain_console, print_lines
from weft.models.report.placement import reason_lines, time_text
from weft.models.report.product_core_views import products_text
from weft.models.report.streams import LayerStreams, streams
from weft.models.target import NetworkTarget, target_of
from weft.offload.products import product_stream, weight_pages
from weft.offload.record import NO_PRODUCT, Operator, Record, Sent, Tally
from weft.tables import Column, fitted_table

__all__ = ["OffloadReport", "OffloadRow", "offload_report"]

_EMPTY = Job(0, 0, 0, 0, 0, 0, 0, 0, 0)  # after a load the driver waits for its answer
_TIME = (
    "Cycles are predicted by the cycle model, which equals the hardware, from the commands that"
    " were sent. Times leave out the framework, and the driver on the host."
)


@dataclass(frozen=True, kw_only=True)
class OffloadRow:
    """An operator in all its calls since the record was cleared.

    Attributes
    ----------
    operator : Operator
    uses : int
        How often the operator stands in the traced functions.
    calls : int
        How often the core computed it; 0 if the framework does.
    macs : int
        In all calls; of an operator of the framework, in all uses once.
    cycles : int
        Predicted cycles of the core.
    utilization : float
        ``macs / (cycles * peak)``, in 0..1.
    streams : LayerStreams
        Bytes that the calls move.
    core_ms, wire_ms : float or None
        Times on the target; None if it has no clock, or no serial port.
    seconds : float
        Measured time in the driver and in the core.
    """

    operator: Operator
    uses: int
    calls: int
    macs: int
    cycles: int
    utilization: float
    streams: LayerStreams
    core_ms: float | None
    wire_ms: float | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class OffloadReport:
    """All operators of an offloaded function; ``str(report)`` is its text.

    Attributes
    ----------
    framework : str
        Who computes the other operators: ``XLA``.
    target : str
    clock : float or None
        MHz.
    baud : int or None
    peak : int
        MAC/cycle of the array.
    rows : tuple of OffloadRow
        In the order of their first use.
    """

    framework: str
    target: str
    clock: float | None
    baud: int | None
    peak: int
    rows: tuple[OffloadRow, ...]

    @property
    def on_weft(self) -> tuple[OffloadRow, ...]:
        """The operators that the core computes."""
        return tuple(row for row in self.rows if row.operator.on_weft)

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations on the core."""
        return sum(row.macs for row in self.on_weft)

    @property
    def cycles(self) -> int:
        """Predicted cycles of the core."""
        return sum(row.cycles for row in self.rows)

    @property
    def utilization(self) -> float:
        """``macs / (cycles * peak)``, in 0..1."""
        return self.macs / (self.cycles * self.peak) if self.cycles else 0.0

    @property
    def streams(self) -> LayerStreams:
        """Bytes of all calls."""
        return sum((row.streams for row in self.rows), LayerStreams())

    @property
    def core_ms(self) -> float | None:
        """Time of the core; None without a clock."""
        return None if self.clock is None else sum(row.core_ms or 0 for row in self.on_weft)

    @property
    def wire_ms(self) -> float | None:
        """Time of the bytes on the serial port; None without one."""
        return None if self.baud is None else sum(row.wire_ms or 0 for row in self.on_weft)

    def reasons(self) -> list[str]:
        """A line for each reason of an operator that the framework computes."""
        lines = reason_lines(
            (row.operator.kind, False, row.operator.reason, "")
            for row in self.rows if row.operator.reason not in ("", NO_PRODUCT)
            for _ in range(row.uses)
        )
        return [line.replace("on the host", f"on {self.framework}", 1) for line in lines]

    def to_json(self) -> dict[str, Any]:
        """All data as dicts, lists, strings and numbers, for `json.dumps`."""
        data = asdict(self)
        for row, entry in zip(self.rows, data["rows"], strict=True):
            entry["operator"] |= {"on_weft": row.operator.on_weft}
        data["totals"] = {
            "macs": self.macs, "cycles": self.cycles, "utilization": self.utilization,
            "streams": asdict(self.streams), "core_ms": self.core_ms, "wire_ms": self.wire_ms,
        }
        return data

    def text(self, width: int = WIDTH) -> str:
        """The report as plain text; its table is at most ``width`` columns wide."""
        console = plain_console(file=io.StringIO(), width=width)
        self.show(console)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())

    def show(self, console) -> None:
        """Print the text on a `plain_console`."""
        print_lines(console, [self._headline()], style="bold")
        columns = self._columns()
        console.print(fitted_table(
            console,
            [Column(name, rank, rank == 0) for name, rank, _ in columns],
            # The headline names the others: a function has many, and they cost no product.
            [[cell(row) for _, _, cell in columns] for row in self.rows if row.operator.products],
        ))
        print_lines(console, [*self._totals(), *self.reasons()])

    def __str__(self) -> str:
        return self.text()

    def _headline(self):
        """What runs where, in one line."""
        uses = sum(row.uses for row in self.rows)
        core = sum(row.uses for row in self.on_weft)
        text = f"{core} of {uses} operators on Weft"
        rest = Counter()
        for row in self.rows:
            if not row.operator.on_weft:
                rest[row.operator.kind] += row.uses
        if rest:
            names = ", ".join(f"{n} {kind}" if n > 1 else kind for kind, n in rest.items())
            text += f", {sum(rest.values())} on {self.framework} ({names})"
        cost = "no call is recorded"
        if self.cycles:
            calls = sum(row.calls for row in self.on_weft)
            cost = f"{calls:,} call{'s' * (calls != 1)}, {self.macs:,} MAC, {self.cycles:,} cycles"
            cost += "" if self.core_ms is None else f", {time_text(self.core_ms)} core"
            cost += "" if self.wire_ms is None else f", {time_text(self.wire_ms)} wire"
        return f"{text}; {self.target}: {cost}"

    def _columns(self) -> list[tuple[str, int, Callable[[OffloadRow], str]]]:
        """The name, the rank and the text of each column (`weft.tables.Column`)."""
        columns: list[tuple[str, int, Callable[[OffloadRow], str]]] = [
            ("operator", 0, lambda row: row.operator.kind),
            ("where", 0, lambda row: row.operator.name),
            ("on", 0, lambda row: "Weft" if row.operator.on_weft else self.framework),
            ("M x K x N", 3, lambda row: _shapes_text(row.operator.products)),
            ("uses", 9, lambda row: f"{row.uses:,}"),
            ("calls", 4, lambda row: f"{row.calls:,}" if row.operator.on_weft else ""),
            ("MAC", 5, lambda row: f"{row.macs:,}" if row.macs else ""),
            ("cycles", 2, lambda row: f"{row.cycles:,}" if row.calls else ""),
            ("used", 6, lambda row: f"{row.utilization:.1%}" if row.calls else ""),
            ("bytes in", 7, lambda row: f"{row.streams.commands:,}" if row.calls else ""),
            ("bytes out", 8, lambda row: f"{row.streams.results:,}" if row.calls else ""),
        ]
        if self.clock is not None:
            columns.append(
                ("core ms", 5, lambda row: f"{row.core_ms:,.3f}" if row.calls else "")
            )
        if self.baud is not None:
            columns.append(("wire ms", 5, lambda row: f"{row.wire_ms:,.1f}" if row.calls else ""))
        return columns

    def _totals(self):
        """Lines with the sums of all operators."""
        moved = self.streams
        yield f"core: {self.cycles:,} cycles, {self.utilization:.1%} of {self.peak} MAC/cycle"
        yield f"streams: {moved.commands:,} bytes of commands, {moved.results:,} bytes of results"
        seconds = sum(row.seconds for row in self.rows)
        yield f"measured on this host: {seconds:,.3f} s in the driver and in the core"
        yield _TIME


def offload_report(record: Record, config: Config, framework: str, target=None) -> OffloadReport:
    """The report of a record.

    Parameters
    ----------
    record : Record
    config : Config
        Of the core that ran the products.
    framework : str
        Who computes the other operators.
    target : optional
        As for `weft.models.target.target_of`: a board, for its times. It may have another array of
        the same data type: cycles and bytes are those of the same products there.

    Raises
    ------
    ModelError
        If the target is not known, or its core cannot compute these products.
    """
    place = NetworkTarget(config.name, config) if target is None else target_of(target)
    if place.executes_lists:
        raise ModelError(f"target must have a product core, and {place.name} has a network core")
    if place.array.dtype != config.dtype:
        raise ModelError(
            f"the core of {place.name} must be of {config.dtype}, the type of the products, not"
            f" {place.array.dtype}"
        )
    known: dict[Sent, tuple[int, LayerStreams]] = {}

    def cost(sent: Sent) -> tuple[int, LayerStreams]:
        if sent not in known:
            commands = _commands(sent, place.array, place.array == config)
            run = [command for command in commands if command != _EMPTY]
            known[sent] = predict(place.array, run).cycles, streams(place.array, commands)
        return known[sent]

    rows = tuple(
        _row(operator, tally, place, cost) for operator, tally in record.tallies().items()
    )
    return OffloadReport(
        framework=framework, target=place.name, clock=place.clock, baud=place.baud,
        peak=place.array.peak, rows=rows,
    )


def _row(
    operator: Operator, tally: Tally, target: NetworkTarget,
    cost: Callable[[Sent], tuple[int, LayerStreams]],
) -> OffloadRow:
    cycles, moved = _sum(tally.streams, cost)
    macs = operator.macs * (tally.calls if operator.on_weft else tally.uses)
    core = target.core_seconds(cycles)
    wire = target.wire_seconds(moved.sent, moved.received)
    return OffloadRow(
        operator=operator, uses=tally.uses, calls=tally.calls, macs=macs, cycles=cycles,
        utilization=macs / (cycles * target.array.peak) if cycles else 0.0, streams=moved,
        core_ms=None if core is None else 1e3 * core, wire_ms=None if wire is None else 1e3 * wire,
        seconds=tally.seconds,
    )


def _sum(sent: Mapping[Sent, int], cost) -> tuple[int, LayerStreams]:
    cycles, moved = 0, LayerStreams()
    for shape, times in sent.items():
        once, of_shape = cost(shape)
        cycles, moved = cycles + times * once, moved + of_shape * times
    return cycles, moved


def _commands(sent, config, same):
    """The commands for a core; ``same``: for the core that got them."""
    count, m, k, n = sent.shape
    pages = weight_pages(config, sent.shape)
    if m == 0:  # a B that stays
        if pages is None:
            return []
        loads = resident_loads(config, sent.shape, Packed(b=bytes(count)), range(count))
        return [command for load, _ in loads for command in (load, _EMPTY)]
    if same or sent.b_pages is None:
        free = sent.free if same else None
        return product_stream(config, sent.shape, free, sent.b_pages).commands
    if pages is None:  # it is sent with each call
        return product_stream(config, sent.shape).commands
    a, b = (memories(config)[side].pages for side in (Region.A, Region.B))
    step = pages // count
    return product_stream(
        config, sent.shape, ((0, a), (0, b - pages)), range(b - pages, b, step)
    ).commands


def _shapes_text(products):
    return products_text([MatrixProduct(m, k, n, count) for count, m, k, n in products])
