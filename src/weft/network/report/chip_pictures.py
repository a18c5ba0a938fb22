"""The pictures of a report of a core for networks, as SVG elements."""

from weft.network.report.chip import ChipReport
from weft.network.report.pictures import (
    MARKS,
    WIDTH,
    comparison,
    figure_of,
    layer_bars,
    legend,
    roofline,
    short_number,
    svg_of,
)

__all__ = ["chip_pictures"]


def chip_pictures(report: ChipReport) -> dict[str, str]:
    """SVG elements by name: the pictures in `TITLES` of the page that the report has data for."""
    layers, able, drawn = report.on_weft, report.ceilings, {}
    if layers:
        drawn["cycles"] = layer_bars(report, "cycles", {
            part: [layer.cycles * (layer.core_bound == part) for layer in layers]
            for part in ("compute", "load", "drain", "latency")
        })
        drawn["timeline"] = _timeline(report)
        drawn["roofline-drain"] = roofline(
            report, "drain", "MAC per result", lambda layer: layer.macs / layer.results,
            able.drain, f"drain: {able.drain:.3g} results/cycle",
        )
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
    first = 0
    for phases in report.phases:
        bars = {
            "load": phases.loads,
            "compute": [(job.start, job.computed) for job in phases.jobs],
            "drain": [(job.computed, job.end) for job in phases.jobs],
        }
        for lane, (name, spans) in enumerate(bars.items()):
            places = [(first + start, end - start) for start, end in spans]
            axes.broken_barh(places, (2 - lane, 0.8), color=MARKS[name], lw=0)
        first += phases.cycles
        axes.axvline(first, color=MARKS["ink"], lw=0.8)
    _number(report, axes, first)
    axes.set_yticks([2.4, 1.4, 0.4], ["load", "compute", "drain, store"])
    axes.tick_params(axis="y", length=0, labelcolor=MARKS["ink"])
    axes.set_xlim(0, first)
    axes.set_ylim(-0.05, 3.1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("cycles of the core, list after list (numbers: layers; a line ends a list)")
    return svg_of(figure, "timeline")


def _number(report, axes, cycles):
    """Write the number of each layer above its jobs, if there is space."""
    first, layers = 0, iter(report.on_weft)
    for segment, phases in zip(report.program.segments, report.phases, strict=True):
        for step, layer in zip(segment.steps, layers, strict=False):
            jobs = phases.jobs[step.first_job : step.first_job + step.jobs]
            start, end = jobs[0].start, jobs[-1].end
            if end - start > cycles / 45:
                axes.text(
                    first + (start + end) / 2, 2.86, report.layers.index(layer) + 1, ha="center",
                    size=9, color=MARKS["faint"],
                )
        first += phases.cycles


def _memory(report):
    """The bytes of each area, and the size of the memory."""
    areas = report.program.areas
    figure, axes = figure_of(0.75 + 0.24 * len(areas))
    axes.barh(list(areas), list(areas.values()), 0.72, color=MARKS["maps"])
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelcolor=MARKS["ink"])
    size = report.program.chip.memory_bytes
    axes.axvline(size, color=MARKS["ink"], lw=0.8, ls=(0, (4, 3)), label="size of the memory")
    axes.xaxis.set_major_formatter(short_number)
    axes.grid(axis="x", color=MARKS["grid"], lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("bytes; setup and maps share their place")
    legend(axes)
    return svg_of(figure, "memory")
