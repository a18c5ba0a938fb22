"""The report of a network core as one HTML page that needs no network."""

from weft.models.report.network_core import NetworkCoreReport
from weft.models.report.network_core_pictures import network_core_pictures
from weft.models.report.page import (
    CYCLES,
    DRAIN,
    bullets,
    card,
    cards,
    comparison_table,
    definitions,
    document,
    grid,
    table,
)

__all__ = ["network_core_page"]

TITLES = {  # as in `weft.models.report.page`
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


def network_core_page(report: NetworkCoreReport) -> str:
    """The report as an HTML page."""
    drawn = network_core_pictures(report)
    return document(report, [
        _cards(report), "<h2>Layers</h2>", _layers(report), bullets([*report.reasons()]),
        *comparison_table(report, drawn), "<h2>Pictures</h2>", grid(TITLES, drawn),
        "<h2>How to read this</h2>", _definitions(report),
    ])


def _cards(report):
    sent, received = report.link
    program = report.program
    rate = program.target.baud and f"at {program.target.baud:,} baud"
    return cards(report, rate, f"{len(program.segments)} lists", [
        card("bytes to the core", f"{sent:,}", f"{received:,} bytes from it"),
        card(
            "bytes of memory", f"{program.memory_used:,}",
            f"of {program.config.memory_bytes:,}",
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
    return table(heads, rows)


def _definitions(report):
    return definitions(
        BOUNDS, "The part that takes longest bounds a layer.",
        "Time on the host is not included.", report.config, report.program.config.hash,
    )
