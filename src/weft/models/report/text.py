"""The report as text: the placement line, a table of layers, totals, and reasons."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.models.report.figures import LayerReport, NetworkReport
from weft.models.report.network_core import NetworkCoreReport
from weft.models.report.placement import reason_lines

__all__ = [
    "HOST_TIME", "WIDTH", "bound_text", "columns_text", "comparison_rows", "energy_text",
    "layer_table", "measured_text", "place_text", "products_text", "reasons", "render", "show",
]

WIDTH = 200  # columns of a text that is not for a terminal
HOST_TIME = "Time on the host (windows, packing, its own operators) is not included."


def render(report: NetworkReport, width: int = WIDTH) -> str:
    """The report as plain text, at most ``width`` columns wide."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(report, console)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def show(report: NetworkReport, console) -> None:
    """Print the report on a `rich.console.Console`."""
    console.print(report.placement, style="bold", soft_wrap=True, markup=False)
    console.print(layer_table(report, console.width))
    for line in (*_totals(report), "", *reasons(report), *report.notes):
        console.print(line, soft_wrap=True, markup=False)
    if report.against:
        console.print(_table(("", report.target, report.against.target), comparison_rows(report)))


@dataclass(frozen=True)
class _Column:
    """A column of the table of layers.

    A narrow terminal shows the columns of the lowest ``rank`` only. ``cell`` gives the text of a
    layer on the core; layers on the host have no text, unless ``always``.
    """

    name: str
    rank: int
    cell: Callable[[LayerReport], str]
    always: bool = False

    def text(self, layer):
        return self.cell(layer) if layer.on_weft or self.always else ""


def layer_table(report: NetworkReport, width: int = WIDTH):
    """The table of layers, a `rich.table.Table`.

    Parameters
    ----------
    report : NetworkReport
    width : int
        Columns of the terminal. The least important columns are left out if they do not fit.
    """
    columns = _columns(report)
    rows = [[column.text(layer) for layer in report.layers] for column in columns]
    sizes = [max(map(len, (c.name, *row))) + 2 for c, row in zip(columns, rows, strict=True)]
    shown = sorted(range(len(columns)), key=lambda n: columns[n].rank)
    while len(shown) > 2 and sum(sizes[n] for n in shown) > width:
        shown.pop()
    shown.sort()
    return _table(
        [columns[n].name for n in shown], zip(*(rows[n] for n in shown), strict=True),
    )


def _columns(report):
    columns = [
        _Column("operator", 0, lambda layer: layer.operator, always=True),
        _Column("on", 1, place_text, always=True),
        _Column("MAC", 7, lambda layer: f"{layer.macs:,}" if layer.macs else "", always=True),
        _Column("M x K x N", 3, lambda layer: products_text(layer.products)),
        _Column("jobs", 10, lambda layer: f"{layer.jobs:,}"),
        _Column("cycles", 2, lambda layer: f"{layer.cycles:,}"),
        _Column("used", 5, lambda layer: f"{layer.utilization:.1%}"),
        _Column("bound by", 4, bound_text),
        _Column("bytes in", 8, lambda layer: f"{layer.streams.commands:,}"),
        _Column("bytes out", 9, lambda layer: f"{layer.streams.results:,}"),
    ]
    if any(layer.measured is not None for layer in report.layers):
        columns.insert(6, _Column("measured", 2, measured_text))
    if report.clock is not None:
        columns.append(_Column("core ms", 6, lambda layer: f"{layer.core_ms:,.3f}"))
    if report.baud is not None:
        columns.append(_Column("wire ms", 6, lambda layer: f"{layer.wire_ms:,.1f}"))
    return columns


def _table(heads, rows):
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for n, name in enumerate(heads):
        left = n == 0 or name in ("on", "bound by")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def place_text(layer) -> str:
    """``Weft``, ``host``, or ``both`` if the host computes a part of the layer."""
    return "host" if not layer.on_weft else "both" if layer.reason else "Weft"


def products_text(products) -> str:
    """``125 x 40 x 64``; with a count if there are several, and the number of further shapes."""
    if not products:
        return ""
    first, *more = products
    shape = f"{first.m} x {first.k} x {first.n}"
    text = f"{first.count} x ({shape})" if first.count > 1 else shape
    return text + f" + {len(more)} more" * bool(more)


def measured_text(layer) -> str:
    """The measured cycles; empty if they were not measured."""
    return "" if layer.measured is None else f"{layer.measured:,}"


def bound_text(layer) -> str:
    """``wire (drain)``: what bounds the layer and, if that is the wire, what bounds the core."""
    if layer.bound == layer.core_bound:
        return layer.bound
    return f"{layer.bound} ({layer.core_bound})"


def energy_text(nanojoule: float) -> str:
    """An energy with the unit that fits it: ``12.3 nJ``, ``4.56 uJ``, ``1.2 mJ``."""
    for unit in ("nJ", "uJ"):
        if nanojoule < 1000:
            return f"{nanojoule:.3g} {unit}"
        nanojoule /= 1000
    return f"{nanojoule:,.3g} mJ"


def _totals(report):
    """Lines with the sums of all layers."""
    moved = report.streams
    yield (
        f"core: {report.cycles:,} cycles, {report.utilization:.1%} of"
        f" {report.ceilings.peak} MAC/cycle"
        + ("" if report.core_ms is None else f"; {report.core_ms:,.3f} ms at {report.clock:g} MHz")
    )
    yield f"streams: {moved.commands:,} bytes of commands, {moved.results:,} bytes of results"
    if report.wire_ms is not None:
        yield (
            f"wire: {moved.sent:,} bytes to the board, {moved.received:,} bytes from it, with"
            f" frames; at least {report.wire_ms:,.0f} ms at {report.baud:,} baud"
        )
    yield f"energy: {energy_text(report.energy.total)}, estimated for a 45 nm chip (Horowitz 2014)"
    yield HOST_TIME


def reasons(report: NetworkReport) -> list[str]:
    """A line for each operator that the host computes, wholly or in part, and why."""
    return reason_lines(
        (layer.operator, layer.on_weft, layer.reason, layer.remedy)
        for layer in report.layers
    )


def comparison_rows(report: NetworkReport | NetworkCoreReport) -> list[tuple[str, str, str]]:
    """Rows (name, value, value) of the totals of a report and of the one it is against.

    A network core and one for matrix products have some totals in common.
    """
    first, second = _totals_of(report), _totals_of(report.against)
    return [(name, text, second[name]) for name, text in first.items() if name in second]


def columns_text(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines, with columns of equal width."""
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.rjust(size) if n else text.ljust(size)
                  for n, (text, size) in enumerate(zip(row, sizes, strict=True)))
        for row in rows
    ]


def _totals_of(report):
    """The totals of a report by their names."""
    moved = report.streams if isinstance(report, NetworkReport) else None
    sent, received = (moved.sent, moved.received) if moved else report.link
    totals = {
        "Config": report.config, "MAC/cycle": f"{report.ceilings.peak:,}",
        "operators on Weft": _operators(report),
        "cycles": f"{report.cycles:,}", "utilization": f"{report.utilization:.1%}",
        "core ms": _milliseconds(report.core_ms, 3), "wire ms": _milliseconds(report.wire_ms, 1),
    }
    if moved:
        totals |= {
            "bytes of commands": f"{moved.commands:,}", "bytes of results": f"{moved.results:,}",
        }
    totals |= {"bytes sent": f"{sent:,}", "bytes received": f"{received:,}"}
    return totals | ({"energy (estimate)": energy_text(report.energy.total)} if moved else {})


def _operators(report):
    """``4 of 6``: operators on the core, and all of them."""
    every = {place for layer in report.layers for place in layer.position}
    core = {place for layer in report.layers if layer.on_weft for place in layer.position}
    return f"{len(core)} of {len(every)}"


def _milliseconds(value, digits):
    return "-" if value is None else f"{value:,.{digits}f}"
