"""The report of a network core as text, as pictures and as a page."""

from typing import TYPE_CHECKING

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
    legend,
    roofline,
    short_number,
    svg_of,
    timeline_of,
)
from weft.network_core.descriptors import ListLoad, LoadTarget, unpack_list
from weft.tables import Column, fitted_table

if TYPE_CHECKING:
    from weft.models.report.network_core import NetworkCoreReport

__all__ = ["page_parts", "pictures", "show"]

TITLES = {  # by the name of the picture
    "cycles": CYCLES,
    "timeline": (
        "What is busy",
        "Loads; array steps; and the results of each job after its last step. All are exact.",
    ),
    "roofline-load": (
        "Roofline: load",
        "A layer near the slope waits for its weights, unless they load under earlier layers.",
    ),
    "roofline-drain": DRAIN,
    "memory": ("Memory on the chip", "Areas of the memory."),
    "maps": ("Maps", "Maps that are not needed at the same time share their place."),
}
BOUNDS = (
    ("compute", "The array: a step for each vector of K, tile and panel."),
    ("load", "A job waits for its weights, its parameters or its descriptor."),
    ("drain", "The lanes: results are requantized and stored."),
    ("latency", "Pipelines: more than half of the cycles remain without the other parts."),
)


COLUMNS = (
    Column("position", 10), Column("operator", left=True), Column("on", left=True),
    Column("MAC", 6), Column("output", 3), Column("panels", 8), Column("rows", 9),
    Column("jobs", 7), Column("B words", 5), Column("cycles", 1), Column("use", 4),
    Column("bound by", 2, left=True),
)


def show(report: "NetworkCoreReport", console) -> None:
    """Print the report on a console: placement, layers, memory, link, reasons, comparison."""
    print_lines(console, [report.placement], style="bold")
    console.print(fitted_table(console, COLUMNS, map(_row, report.layers)))
    print_lines(console, _totals(report))
    if report.against is not None:
        console.print(comparison_table(report, console))


def _totals(report):
    """Yield the lines below the table."""
    program = report.program
    if len(program.segments) > 1:
        cycles = ", ".join(f"{phases.cycles:,}" for phases in report.phases)
        yield f"lists: {len(program.segments)}, of {cycles} cycles"
    areas = ", ".join(f"{name} {size:,}" for name, size in program.areas.items())
    places, config = _places(program), program.config
    if config.program_words:
        places += f": {program.program_memory_used:,} of {config.program_bytes:,} bytes"
    yield (
        f"memory: {program.memory_used:,} of {config.memory_bytes:,} bytes ({areas}; {places})"
    )
    words = sum(layer.words for layer in report.layers)
    kept = _kept(program) + _packed(program)
    yield f"weights: {words:,} words of B, which has {program.config.b_words:,}: {kept}"
    sent, received = report.link
    yield f"link: {sent:,} bytes to the core, {received:,} from it"
    if report.rate is not None:
        when = "while the one before computes" if report.overlaps else "after the one before"
        yield f"many inputs: at most {report.rate:,.0f} inferences a second; each is sent {when}"
    yield from report.reasons()
    yield from report.notes


def _kept(program):
    """Which weights stay in B from inference to inference."""
    if program.areas["weights"]:
        return "loaded in each inference"
    computed = sum(
        entry.words for segment in program.segments for entry in unpack_list(segment.run)
        if isinstance(entry, ListLoad) and entry.target == LoadTarget.B
    )
    if computed:
        return f"{computed:,} are computed and loaded in each inference, the others stay there"
    return "they stay there"


def _packed(program):
    """How many loads of weights are of int4, on a core that can unpack them."""
    if not program.config.int4:
        return ""
    loads = [
        entry.packed
        for part in (*program.setup, *(segment.run for segment in program.segments))
        for entry in unpack_list(part)
        if isinstance(entry, ListLoad) and entry.target == LoadTarget.B
    ]
    return f"; {sum(loads):,} of {len(loads):,} loads are of int4"


def _places(program):
    """Where the areas lie."""
    if not program.config.program_words:
        return "setup and maps share their place"
    if program.whole:
        return "setup and maps share their place; nothing is in the program memory"
    if program.lists_on_chip:
        return "all but maps and what is kept are in the program memory"
    inside = "all but maps and products are" if program.products else "all but the maps are"
    return f"{inside} in the program memory"


def _row(layer):
    """The cells of a layer, as `COLUMNS` has them; a layer on the host has an operator alone."""
    name, place = str(min(layer.position)), "Weft" if layer.on_weft else "host"
    macs = f"{layer.macs:,}" if layer.macs else ""
    if not layer.on_weft:
        return name, layer.operator, place, macs, *[""] * 8
    size = "x".join(map(str, layer.output or ("products",) * bool(layer.jobs)))
    if not layer.jobs:
        return name, layer.operator, place, "", size, *[""] * 7
    panels, words = f"{layer.panels:,}", f"{layer.words:,}"
    if not layer.output:
        panels, words = "", ""
    return (
        name, layer.operator, place, macs, size, panels,
        str(layer.panel_rows) if layer.output else "", str(layer.jobs), words,
        f"{layer.cycles:,}", f"{layer.utilization:.1%}", layer.core_bound,
    )


def pictures(report: "NetworkCoreReport") -> dict[str, str]:
    """SVG elements by name: the pictures in `TITLES` that the report has data for."""
    layers, able, drawn = report.on_weft, report.ceilings, {}
    if layers:
        drawn = common_pictures(report)
        drawn["timeline"] = _timeline(report)
        drawn["memory"] = _memory(report)
        drawn["maps"] = layer_bars(report, "bytes of the output map", {
            "maps": [layer.map_bytes for layer in layers],
        })
    if any(layer.work.load_bytes for layer in layers):
        drawn["roofline-load"] = roofline(
            report, "load", "MAC per byte of weights and parameters",
            lambda layer: layer.macs / max(1, layer.work.load_bytes), able.load,
            f"load: {able.load} bytes/cycle",
        )
    if report.against is not None:
        drawn["against"] = comparison(report)
    return drawn


def _timeline(report):
    """Loads, array steps and stores of all jobs over the cycles of an inference."""
    figure, axes = figure_of(2.1, 2 * WIDTH)
    first, spans, layers = 0, [], iter(report.on_weft)
    for segment, phases in zip(report.program.segments, report.phases, strict=True):
        bars = {
            "load": phases.loads,
            "compute": [(job.started, job.computed) for job in phases.jobs],
            "drain": [(max(job.start, job.computed), job.end) for job in phases.jobs],
        }
        for lane, (name, times) in enumerate(bars.items()):
            places = [(first + start, end - start) for start, end in times]
            axes.broken_barh(places, (2 - lane, 0.8), color=MARKS[name], lw=0)
        for step, layer in zip(segment.steps, layers, strict=False):
            jobs = phases.jobs[step.first_job : step.first_job + step.jobs]
            spans.append((layer, first + jobs[0].start, first + jobs[-1].end))
        first += phases.cycles
        axes.axvline(first, color=MARKS["ink"], lw=0.8)
    label = "cycles of the core, list after list (numbers: layers; a line ends a list)"
    if report.products:
        label = label.replace("list after list", "list after list, without single products")
    return timeline_of(
        figure, report, ["load", "compute", "drain, store"], spans, first, label
    )


def _memory(report):
    """The bytes of each area, and the size of the memory."""
    areas = report.program.areas
    figure, axes = figure_of(0.75 + 0.24 * len(areas))
    axes.barh(list(areas), list(areas.values()), 0.72, color=MARKS["maps"])
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelcolor=MARKS["ink"])
    size = report.program.config.memory_bytes
    axes.axvline(size, color=MARKS["ink"], lw=0.8, ls=(0, (4, 3)), label="size of the memory")
    axes.xaxis.set_major_formatter(short_number)
    axes.grid(axis="x", color=MARKS["grid"], lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"bytes; {_places(report.program)}")
    legend(axes)
    return svg_of(figure, "memory")


def page_parts(report: "NetworkCoreReport") -> PageParts:
    """The parts of the page."""
    sent, received = report.link
    program = report.program
    heads, rows = _layers(report)
    return PageParts(
        rate=f"at {program.target.baud:,} baud" if program.target.baud else "",
        lists=f"{len(program.segments)} lists",
        cards=[
            card("bytes to the core", f"{sent:,}", f"{received:,} bytes from it"),
            card(
                "bytes of memory", f"{program.memory_used:,}",
                f"of {program.config.memory_bytes:,}",
            ),
        ],
        heads=heads, rows=rows, titles=TITLES, bounds=BOUNDS,
        bounded="The part that takes longest bounds a layer.",
        omitted="Time on the host is not included.",
    )


def _layers(report):
    """Heads and rows of the table of layers of the page."""
    measured = any(layer.measured is not None for layer in report.layers)
    heads = ["", "operator", "on", "MAC", "output", "panels", "jobs", "words of B", "cycles"]
    heads += ["measured"] * measured + ["used", "bound by", "bytes loaded"]
    heads += ["core ms"] * (report.clock is not None)
    rows = []
    for n, layer in enumerate(report.layers):
        place = "Weft" if layer.jobs else "nothing to do" if layer.on_weft else "host"
        cells = [str(n + 1), layer.operator, place, f"{layer.macs:,}" if layer.macs else ""]
        if layer.output:
            cells.append(" x ".join(map(str, layer.output)))
        if layer.jobs:
            sizes = [f"{layer.panels:,}", f"{layer.jobs:,}", f"{layer.words:,}"]
            if not layer.output:
                sizes = ["products", "", f"{layer.jobs:,}", ""]
            cells += [*sizes, f"{layer.cycles:,}"]
            cells += ["" if layer.measured is None else f"{layer.measured:,}"] * measured
            cells += [f"{layer.utilization:.1%}", layer.core_bound, f"{layer.work.load_bytes:,}"]
            if report.clock is not None:
                cells.append(f"{layer.core_ms:,.3f}")
        cells += [""] * (len(heads) - len(cells))
        rows.append((layer.core_bound if layer.on_weft else "host", layer.name, cells))
    return heads, rows
