"""The report of a core for networks as one HTML page that needs no network."""

from html import escape

from weft.network.chip.program import memory_bytes
from weft.network.report.chip import ChipReport
from weft.network.report.chip_pictures import chip_pictures
from weft.network.report.page import (
    bullets,
    card,
    cards,
    comparison_table,
    document,
    grid,
    table,
)

__all__ = ["chip_page"]

# By the name of a picture: its heading, and a description.
TITLES = {
    "cycles": (
        "Cycles of the core",
        "The colour of a bar is the part that bounds the layer.",
    ),
    "timeline": (
        "What is busy",
        "Loads; array steps; and the results of each job after its last step. All are exact.",
    ),
    "roofline-load": (
        "Roofline: load",
        "A layer near the slope waits for its weights, unless they load under earlier layers.",
    ),
    "roofline-drain": (
        "Roofline: drain",
        "A layer near the slope waits for its results. More lanes raise the slope.",
    ),
    "memory": ("Memory on the chip", "Areas of the memory."),
    "maps": ("Maps", "Maps that are not needed at the same time share their place."),
}
BOUNDS = (
    ("compute", "The array: a step for each vector of K, tile and panel."),
    ("load", "A job waits for its weights, its parameters or its descriptor."),
    ("drain", "The lanes: results are requantized and stored."),
    ("latency", "Pipelines: more than half of the cycles remain without the other parts."),
)


def chip_page(report: ChipReport) -> str:
    """The report as an HTML page."""
    drawn = chip_pictures(report)
    return document(report, [
        _cards(report), "<h2>Layers</h2>", _layers(report), bullets([*report.reasons()]),
        *comparison_table(report, drawn), "<h2>Pictures</h2>", grid(TITLES, drawn),
        "<h2>How to read this</h2>", _definitions(report),
    ])


def _cards(report):
    sent, received = report.link
    program, lists = report.program, len(report.program.segments)
    shown = [card("MAC", f"{report.macs:,}", f"{report.ceilings.peak} MAC/cycle at most")]
    if report.core_ms is None:
        shown.append(card("cycles of the core", f"{report.cycles:,}", f"{lists} lists"))
    else:
        cycles = f"{report.cycles:,} cycles at {report.clock:g} MHz"
        shown.append(card("core", f"{report.core_ms:,.3f} ms", cycles))
    if report.wire_ms is not None:
        rate = f"at {program.target.baud:,} baud"
        shown.append(card("wire", f"{report.wire_ms:,.1f} ms", rate))
    return cards([
        *shown,
        card("utilization of the array", f"{report.utilization:.1%}"),
        card("bytes to the core", f"{sent:,}", f"{received:,} bytes from it"),
        card(
            "bytes of memory", f"{memory_bytes(program.areas):,}",
            f"of {program.chip.memory_bytes:,}",
        ),
    ])


def _layers(report):
    measured = any(layer.measured is not None for layer in report.layers)
    heads = ["", "operator", "on", "MAC", "output", "panels", "jobs", "words of B", "cycles"]
    heads += ["measured"] * measured + ["used", "bound by", "bytes loaded"]
    heads += ["core ms"] * (report.clock is not None)
    rows = []
    for n, layer in enumerate(report.layers):
        place = "Weft" if layer.jobs else "nothing to do" if layer.on_weft else "host"
        cells = [str(n + 1), layer.operator, place, f"{layer.macs:,}" if layer.macs else ""]
        if layer.on_weft:
            cells.append(" x ".join(map(str, layer.output)))
        if layer.jobs:
            cells += [f"{layer.panels:,}", f"{layer.jobs:,}", f"{layer.words:,}",
                      f"{layer.cycles:,}"]
            cells += ["" if layer.measured is None else f"{layer.measured:,}"] * measured
            cells += [f"{layer.utilization:.1%}", layer.core_bound, f"{layer.work.load_bytes:,}"]
            if report.clock is not None:
                cells.append(f"{layer.core_ms:,.3f}")
        cells += [""] * (len(heads) - len(cells))
        rows.append((layer.core_bound if layer.on_weft else "host", layer.name, cells))
    return table(heads, rows)


def _definitions(report):
    terms = "".join(f"<dt class={name}>{name}</dt><dd>{text}</dd>" for name, text in BOUNDS)
    return (
        "<p>Cycles are predicted by the cycle model, which equals the hardware. The part that takes"
        f" longest bounds a layer.</p><dl>{terms}</dl>"
        "<p>Time on the host is not included. The time on the wire counts the bytes alone: it"
        " leaves out the delays of USB adapters.</p>"
        f"<p>Config {escape(report.config)}, hash {report.program.chip.hash:08x}.</p>"
    )
