"""The pictures of a report of a network core, as SVG elements."""

from weft.models.report.network_core import NetworkCoreReport
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

__all__ = ["network_core_pictures"]


def network_core_pictures(report: NetworkCoreReport) -> dict[str, str]:
    """SVG elements by name: the pictures in `TITLES` of the page that the report has data for."""
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
            "compute": [(job.start, job.computed) for job in phases.jobs],
            "drain": [(job.computed, job.end) for job in phases.jobs],
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
    axes.set_xlabel("bytes; setup and maps share their place")
    legend(axes)
    return svg_of(figure, "memory")
