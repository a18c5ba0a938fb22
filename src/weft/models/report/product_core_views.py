"""The report of a product core as text, as pictures and as a page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.models.report.energy import FORMULA, energy_text
from weft.models.report.interface import (
    CYCLES,
    DRAIN,
    PageParts,
    card,
    comparison_table,
    print_lines,
)
from weft.models.report.pictures import (
    MARKS,
    WIDTH,
    common_pictures,
    comparison,
    figure_of,
    layer_bars,
    roofline,
    timeline_of,
)
from weft.tables import Column, fitted_table

if TYPE_CHECKING:
    from weft.models.report.product_core import ProductCoreLayer, ProductCoreReport

__all__ = ["page_parts", "pictures", "products_text", "show"]

LEFT = "operator", "on", "bound by"  # columns of text
HOST_TIME = "Time on the host (windows, packing, its own operators) is not included."
TITLES = {  # by the name of the picture
    "cycles": CYCLES,
    "wire": (
        "Time on the wire",
        "Commands and results with their frames, in the slower of the two directions.",
    ),
    "timeline": (
        "What is busy",
        "Height: the share of a layer's cycles in which the part is busy.",
    ),
    "roofline-load": (
        "Roofline: load",
        "A layer near the slope waits for operands. Reuse them more, or widen the stream.",
    ),
    "roofline-drain": DRAIN,
    "chip": (
        "Memory on the chip",
        "Packed weights, and parameters. Weights that exceed the buffer pass through it in parts.",
    ),
    "maps": (
        "Memory on the host",
        "Feature maps that are needed at the end of a layer.",
    ),
    "energy": ("Energy", FORMULA),
}
BOUNDS = (
    ("compute", "The array: each tile takes K / depth cycles."),
    ("load", "The command stream: operands and parameters are loaded."),
    ("drain", "The output stage: results leave the array and are requantized."),
    ("latency", "Pipelines and headers: more than half of the cycles remain if the rest is ideal."),
    ("wire", "The serial port takes longer than the core. What bounds the core is in brackets."),
)


def show(report: "ProductCoreReport", console) -> None:
    """Print the report on a console."""
    print_lines(console, [report.placement], style="bold")
    console.print(_layer_table(report, console))
    print_lines(console, [*_totals(report), "", *report.reasons(), *report.notes])
    if report.against:
        console.print(comparison_table(report, console))


@dataclass(frozen=True)
class _Column:
    """A column of the table of layers, of the text and of the page.

    ``rank`` is that of `weft.tables.Column`. ``cell`` gives the text of a layer on the core; layers
    on the host have no text, unless ``always``.
    """

    name: str
    rank: int
    cell: "Callable[[ProductCoreLayer], str]"
    always: bool = False

    def text(self, layer):
        return self.cell(layer) if layer.on_weft or self.always else ""


def _layer_table(report: "ProductCoreReport", console):
    """The table of layers, as wide as ``console`` at most."""
    columns = _columns(report)
    return fitted_table(
        console, [Column(c.name, c.rank, c.name in LEFT) for c in columns],
        [[column.text(layer) for column in columns] for layer in report.layers],
    )


def _columns(report):
    """The columns of the tables of layers, of the text and of the page."""
    columns = [
        _Column("operator", 0, lambda layer: layer.operator, always=True),
        _Column("on", 0, _place_text, always=True),
        _Column("MAC", 7, lambda layer: f"{layer.macs:,}" if layer.macs else "", always=True),
        _Column("M x K x N", 3, lambda layer: products_text(layer.products)),
        _Column("jobs", 10, lambda layer: f"{layer.jobs:,}"),
        _Column("cycles", 2, lambda layer: f"{layer.cycles:,}"),
        _Column("used", 5, lambda layer: f"{layer.utilization:.1%}"),
        _Column("bound by", 4, _bound_text),
        _Column("bytes in", 8, lambda layer: f"{layer.streams.commands:,}"),
        _Column("bytes out", 9, lambda layer: f"{layer.streams.results:,}"),
    ]
    if any(layer.measured is not None for layer in report.layers):
        columns.insert(6, _Column("measured", 2, _measured_text))
    if report.clock is not None:
        columns.append(_Column("core ms", 6, lambda layer: f"{layer.core_ms:,.3f}"))
    if report.baud is not None:
        columns.append(_Column("wire ms", 6, lambda layer: f"{layer.wire_ms:,.1f}"))
    return columns


def _place_text(layer) -> str:
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


def _measured_text(layer) -> str:
    """The measured cycles; empty if they were not measured."""
    return "" if layer.measured is None else f"{layer.measured:,}"


def _bound_text(layer) -> str:
    """``wire (drain)``: what bounds the layer and, if that is the wire, what bounds the core."""
    if layer.bound == layer.core_bound:
        return layer.bound
    return f"{layer.bound} ({layer.core_bound})"


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


def pictures(report: "ProductCoreReport") -> dict[str, str]:
    """SVG elements by name: the pictures in `TITLES` that the report has data for."""
    drawn = {}
    if report.on_weft:
        drawn |= common_pictures(report)
        if report.baud is not None:
            drawn["wire"] = layer_bars(report, "ms on the wire", {
                "wire": [layer.wire_ms for layer in report.on_weft],
            })
        drawn["timeline"] = _timeline(report)
        drawn["roofline-load"] = roofline(
            report, "load", "MAC per byte of commands",
            lambda layer: layer.macs / layer.streams.commands, report.ceilings.load,
            f"load: {report.ceilings.load} bytes/cycle",
        )
        drawn["chip"] = layer_bars(report, "bytes on the chip", {
            "load": [max(layer.resident, layer.streams.b) for layer in report.on_weft],
            "drain": [layer.streams.parameters for layer in report.on_weft],
        }, {"load": "weights, packed", "drain": "parameters"}, report.ceilings.b_bytes)
        drawn["energy"] = layer_bars(report, "nJ, estimated", {
            "compute": [layer.energy.mac for layer in report.on_weft],
            "load": [layer.energy.operands for layer in report.on_weft],
            "drain": [layer.energy.results for layer in report.on_weft],
        }, {"compute": "MAC", "load": "operand buffers", "drain": "result buffer"})
    drawn["maps"] = layer_bars(
        report, "bytes of feature maps", {"maps": [layer.maps for layer in report.layers]},
        {}, None, report.layers,
    )
    if report.against:
        drawn["against"] = comparison(report)
    return drawn


def _timeline(report):
    """Three lanes over the cycles of an inference; heights are shares of a layer's cycles."""
    figure, axes = figure_of(1.9, 2 * WIDTH)
    lanes = (
        ("load", lambda layer: layer.streams.commands / report.ceilings.load),
        ("compute", lambda layer: layer.active),
        ("drain", lambda layer: layer.streams.drain),
    )
    edges = [0]
    for layer in report.on_weft:
        edges.append(edges[-1] + layer.cycles)
    for lane, (name, busy) in enumerate(lanes):
        base = 2 - lane
        shares = [min(1, busy(layer) / max(1, layer.cycles)) for layer in report.on_weft]
        tops = [base + 0.8 * share for share in shares]
        axes.barh(base, edges[-1], 0.8, align="edge", color=MARKS["grid"], alpha=0.45, lw=0)
        axes.stairs(tops, edges, baseline=base, fill=True, color=MARKS[name], lw=0)
    for edge in edges[1:-1]:
        axes.axvline(edge, color=MARKS["faint"], lw=0.4)
    spans = [*zip(report.on_weft, edges, edges[1:], strict=False)]
    label = "cycles of the core, layer after layer (numbers: layers)"
    return timeline_of(figure, report, [name for name, _ in lanes], spans, edges[-1], label)


def page_parts(report: "ProductCoreReport") -> PageParts:
    """The parts of the page."""
    moved = report.streams
    heads, rows = _layers(report)
    return PageParts(
        rate=f"at least, at {report.baud:,} baud" if report.baud else "", lists="",
        cards=[
            card("bytes of commands", f"{moved.commands:,}", f"{moved.results:,} bytes of results"),
            card("energy", energy_text(report.energy.total), "an estimate"),
        ],
        heads=heads, rows=rows, titles=TITLES, bounds=BOUNDS,
        bounded="Each layer is predicted again with an ideal load, an ideal array and an ideal"
        " drain; the part that takes longest alone bounds the layer.",
        omitted=HOST_TIME,
    )


def _layers(report):
    """Heads and rows of the table of layers of the page."""
    columns = _columns(report)
    rows = [
        ("host" if not layer.on_weft else layer.core_bound, layer.name,
         [str(number), *(column.text(layer) for column in columns)])
        for number, layer in enumerate(report.layers, 1)
    ]
    return ["", *(column.name for column in columns)], rows
