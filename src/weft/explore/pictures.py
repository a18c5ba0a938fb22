"""The pictures of an exploration's report, as SVG elements; points link to their designs."""

import math

from weft.explore.config_fields import fields_of
from weft.explore.findings import Findings
from weft.models.report.pictures import MARKS, WIDTH, figure_of, legend, short_number, svg_of

__all__ = ["anchor", "exploration_pictures"]

TEXT = 9
PARALLEL = (
    "rows", "cols", "depth", "hop", "dsp_cols", "ram_cols", "lanes", "scale_cycles", "words",
    "a_words", "b_words", "lines", "read_vectors", "bytes_in", "bytes_out", "jobs",
)


def anchor(place: int) -> str:
    """The name of the part of the page about a design, by its place."""
    return f"design-{place + 1}"


def exploration_pictures(found: Findings) -> dict[str, str]:
    """SVG elements by name: the pictures that the exploration has data for."""
    drawn = {}
    if found.guide.measured():
        drawn["front"] = _front(found, "area", "LUTs")
        if found.has_energy:
            drawn["energy"] = _front(found, "energy", "nJ, which compares designs")
        drawn["parallel"] = _parallel(found)
        drawn["seeds"] = _seeds(found)
    drawn["area-errors"] = _errors(found, "LUT", "LUTs")
    if found.errors.of("fmax").size:
        drawn["clock-errors"] = _errors(found, "fmax", "MHz")
    if found.boards:
        drawn["boards"] = _boards(found)
    return drawn


def _front(found, name, label):
    """Microseconds against another figure; the designs that no other dominates are filled."""
    figures, best = found.guide.measured(), set(found.guide.front())
    figure, axes = figure_of(3.4)
    for chosen, style in ((False, {"facecolors": "none"}), (True, {})):
        places = [n for n, c in enumerate(found.designs) if c in figures and (c in best) == chosen]
        shown = [figures[found.designs[n]] for n in places]
        colour = MARKS["compute" if chosen else "latency"]
        style = style or {"facecolors": colour}
        dots = axes.scatter(
            [getattr(each, name) for each in shown], [each.latency for each in shown], s=44,
            edgecolors=colour, linewidths=1.4, zorder=3,
            label="on the front" if chosen else "dominated", **style,
        )
        dots.set_urls([f"#{anchor(n)}" for n in places])
    for n, config in enumerate(found.designs[:6]):
        if config in figures:
            axes.annotate(
                n + 1, (getattr(figures[config], name), figures[config].latency), (6, 3),
                textcoords="offset points", size=TEXT - 1, color=MARKS["faint"],
            )
    _logarithmic(axes.xaxis, [getattr(each, name) for each in figures.values()])
    _logarithmic(axes.yaxis, [each.latency for each in figures.values()])
    axes.set(xlabel=label, ylabel="us of the core")
    legend(axes, 2)
    return svg_of(figure, f"latency and {name}")


def _logarithmic(axis, values):
    """A logarithmic axis with round ticks, also over less than a decade."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes, name = axis.axes, axis.axis_name
    low, high = min(values) / 1.15, max(values) * 1.15
    getattr(axes, f"set_{name}scale")("log")
    getattr(axes, f"set_{name}lim")(low, high)
    decades = math.log10(high / low)
    subs = (1,) if decades > 2 else (1, 2, 5) if decades > 0.8 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(short_number)
    axis.set_minor_formatter(NullFormatter())
    axes.grid(color=MARKS["grid"], lw=0.6)
    axes.set_axisbelow(True)


def _parallel(found):
    """A line for each measured design through its fields and its latency."""
    figures = found.guide.measured()
    designs = [config for config in found.designs if config in figures]
    fields = [fields_of(config) for config in designs]
    names = [
        name for name in PARALLEL if len({each.get(name) for each in fields}) > 1
    ] or ["rows"]
    columns = {name: [each[name] for each in fields] for name in names}
    columns["us"] = [figures[config].latency for config in designs]
    figure, axes = figure_of(3.0, 2 * WIDTH)
    axes.spines["left"].set_visible(False)
    places = {name: _scaled(values) for name, values in columns.items()}
    best = set(found.guide.front())
    for n, config in enumerate(designs):
        heights = [places[name][n] for name in columns]
        chosen = config in best
        [line] = axes.plot(
            range(len(columns)), heights, lw=1.8 if chosen else 0.9, zorder=3 if chosen else 2,
            color=MARKS["compute" if chosen else "latency"], alpha=0.9 if chosen else 0.5,
        )
        line.set_url(f"#{anchor(found.designs.index(config))}")
    for x, values in enumerate(columns.values()):
        axes.axvline(x, color=MARKS["grid"], lw=0.8)
        for height, value in sorted(set(zip(_scaled(values), values, strict=True)))[:: max(
            1, len(set(values)) // 6
        )]:
            axes.text(x + 0.03, height, short_number(value), size=TEXT - 1, color=MARKS["faint"])
    axes.set_xticks(range(len(columns)), list(columns), color=MARKS["ink"])
    axes.set(yticks=[], ylim=(-0.06, 1.08), xlim=(-0.1, len(columns) - 0.6))
    return svg_of(figure, "parallel coordinates")


def _scaled(values):
    """Heights of 0 to 1 on a logarithmic scale."""
    logs = [math.log2(1 + value) for value in values]
    low, high = min(logs), max(logs)
    return [(each - low) / (high - low) if high > low else 0.5 for each in logs]


def _seeds(found):
    """fmax of each seed, for the designs with the most seeds."""
    by_design = {}
    for (config, _), outcome in found.guide.outcomes.items():
        if outcome.done:
            by_design.setdefault(config, []).append(outcome.fmax)
    designs = sorted(by_design, key=lambda c: (-len(by_design[c]), found.designs.index(c)))[:8]
    figure, axes = figure_of(1.0 + 0.24 * len(designs))
    for row, config in enumerate(designs):
        values = by_design[config]
        axes.plot([min(values), max(values)], [row, row], color=MARKS["grid"], lw=3)
        dots = axes.scatter(values, [row] * len(values), s=26, color=MARKS["load"], zorder=3)
        dots.set_urls([f"#{anchor(found.designs.index(config))}"] * len(values))
    labels = [f"{found.designs.index(config) + 1}  {config.name}" for config in designs]
    axes.set_yticks(range(len(designs)), labels, color=MARKS["ink"])
    axes.set_ylim(len(designs) - 0.4, -0.6)
    axes.grid(axis="x", color=MARKS["grid"], lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("fmax in MHz, a dot for each seed")
    return svg_of(figure, "fmax over seeds")


def _errors(found, name, label):
    """Estimated against measured: the recorded points, and the designs of this exploration."""
    pairs = found.errors.pairs(name)
    ours = [
        (_value(outcome, name), _estimated(found.estimates[config].area, name), config)
        for (config, _), outcome in found.guide.outcomes.items() if outcome.done
    ]
    figure, axes = figure_of(3.2)
    if pairs:
        axes.scatter(*zip(*pairs, strict=True), s=16, color=MARKS["latency"], alpha=0.7, lw=0,
                     label="recorded, left out")
    if ours:
        x, y, configs = zip(*ours, strict=True)
        dots = axes.scatter(x, y, s=28, color=MARKS["compute"], zorder=3, label="explored")
        dots.set_urls([f"#{anchor(found.designs.index(config))}" for config in configs])
    values = [value for pair in pairs for value in pair] + [v for pair in ours for v in pair[:2]]
    ends = [min(values) / 1.1, max(values) * 1.1]
    axes.plot(ends, ends, color=MARKS["faint"], lw=0.8)
    for axis in (axes.xaxis, axes.yaxis):
        _logarithmic(axis, values)
    axes.set(xlabel=f"measured, {label}", ylabel="estimated")
    legend(axes, 2)
    return svg_of(figure, f"estimates of {label}")


def _value(outcome, name):
    return outcome.fmax if name == "fmax" else outcome.used[name]


def _estimated(area, name):
    return area.fmax if name == "fmax" else area.used[name]


def _boards(found):
    """Microseconds of the core and of the wire for the own core of each board."""
    figure, axes = figure_of(1.0 + 0.34 * len(found.boards))
    for row, cost in enumerate(found.boards):
        for shift, value, colour, text in (
            (-0.18, cost.core, "compute", "core"), (0.18, cost.wire, "wire", "serial port"),
        ):
            axes.barh(row + shift, value, 0.32, color=MARKS[colour], label=text if not row else "")
    labels = [f"{cost.name}\n{cost.clock:g} MHz" for cost in found.boards]
    axes.set_yticks(range(len(labels)), labels, color=MARKS["ink"])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(short_number)
    axes.grid(axis="x", color=MARKS["grid"], lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("us for all workloads")
    legend(axes, 2)
    return svg_of(figure, "cost over boards")
