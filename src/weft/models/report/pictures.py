"""Pictures of reports, as SVG elements whose colours follow the page, drawn by matplotlib."""

import io
import re

__all__ = [
    "COLOURS", "MARKS", "WIDTH", "common_pictures", "comparison", "figure_of", "layer_bars",
    "legend", "roofline", "short_number", "svg_of", "timeline_of",
]

# By name: (light page, dark page). A page defines each as a CSS variable of this name.
COLOURS = {
    "ink": ("#1f2933", "#e6eaee"),
    "faint": ("#5f6c78", "#9aa7b4"),
    "grid": ("#dfe4e8", "#38424c"),
    "compute": ("#00875f", "#2dbf8f"),
    "load": ("#2478b5", "#5cb3ec"),
    "drain": ("#8650a8", "#c08ae0"),
    "latency": ("#7a8794", "#8b98a5"),
    "wire": ("#c25700", "#f09045"),
    "maps": ("#3f7f93", "#6fb6cc"),
    "other": ("#b58900", "#d9b44a"),
}
WIDTH = 4.6  # inches of 72 units
ROW = 0.19  # inches of a layer
TEXT = 9  # units
# Matplotlib draws with these colours; each stands for the CSS variable of the same place.
MARKS = {name: f"#0000{n + 1:02x}" for n, name in enumerate(COLOURS)}


def common_pictures(report) -> dict[str, str]:
    """The pictures of layers that all kinds of cores have."""
    return {
        "cycles": layer_bars(report, "cycles", {
            part: [layer.cycles * (layer.core_bound == part) for layer in report.on_weft]
            for part in ("compute", "load", "drain", "latency")
        }),
        "roofline-drain": roofline(
            report, "drain", "MAC per result", lambda layer: layer.macs / layer.results,
            report.ceilings.drain, f"drain: {report.ceilings.drain:.3g} results/cycle",
        ),
    }


def figure_of(height, width=WIDTH):
    """An empty figure of ``height`` inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot(facecolor="none")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(MARKS["grid"])
    axes.tick_params(colors=MARKS["faint"], labelsize=TEXT, length=2)
    axes.xaxis.label.set(color=MARKS["faint"], size=TEXT)
    axes.yaxis.label.set(color=MARKS["faint"], size=TEXT)
    return figure, axes


def layer_bars(report, label, parts, names=None, line=None, layers=None):
    """Horizontal bars, one for each layer, of stacked parts."""
    layers = report.on_weft if layers is None else layers
    figure, axes = figure_of(0.75 + ROW * len(layers))
    rows = range(len(layers))
    left = [0.0] * len(layers)
    for part, values in parts.items():
        if any(values):
            name = (names or {}).get(part, part)
            axes.barh(rows, values, 0.72, left, color=MARKS[part], label=name)
            left = [a + b for a, b in zip(left, values, strict=True)]
    _layer_axis(axes, report, layers)
    axes.set_xlabel(label)
    if line is not None:
        axes.axvline(line, color=MARKS["ink"], lw=0.8, ls=(0, (4, 3)), label="size of the buffer")
    if names is None and len(parts) > 1 or names:
        legend(axes)
    return svg_of(figure, label)


def _layer_axis(axes, report, layers):
    """A row for each layer, from top to bottom, with its number and its operator."""
    axes.set_yticks(
        range(len(layers)),
        [f"{report.layers.index(layer) + 1}  {layer.operator}" for layer in layers],
        color=MARKS["ink"],
    )
    axes.set_ylim(len(layers) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(short_number)
    axes.xaxis.set_major_locator(_locator())
    axes.grid(axis="x", color=MARKS["grid"], lw=0.6)
    axes.set_axisbelow(True)


def _locator():
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5)


def short_number(value, _=None):
    """``1.5k``, ``20M``: a number in few characters."""
    for unit in ("", "k", "M", "G"):
        if abs(value) < 1000 or unit == "G":
            return f"{value:.3g}{unit}"
        value /= 1000
    return ""


def legend(axes, count=4):
    """Add the legend above the axes."""
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=count, frameon=False, fontsize=TEXT,
        labelcolor=MARKS["ink"], handlelength=0.9, handleheight=0.9, columnspacing=1.2,
        handletextpad=0.5, borderaxespad=0.2,
    )


def timeline_of(figure, report, lanes, spans, cycles, label):
    """A timeline with three lanes, and the numbers of the layers that have space for them.

    ``spans`` has the first and the last cycle of each layer.
    """
    axes = figure.axes[0]
    for layer, start, end in spans:
        if end - start > cycles / 45:
            axes.text(
                (start + end) / 2, 2.86, report.layers.index(layer) + 1, ha="center", size=TEXT,
                color=MARKS["faint"],
            )
    axes.set_yticks([2.4, 1.4, 0.4], lanes)
    axes.tick_params(axis="y", length=0, labelcolor=MARKS["ink"])
    axes.set_xlim(0, cycles)
    axes.set_ylim(-0.05, 3.1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel(label)
    return svg_of(figure, "timeline")


def roofline(report, part, label, intensity, slope, text):
    """MAC/cycle of each layer against an intensity, under the peak and a sloped ceiling."""
    figure, axes = figure_of(3.0)
    peak = report.ceilings.peak
    points = [
        (intensity(layer), layer.macs / layer.cycles, layer)
        for layer in report.on_weft if layer.macs and layer.cycles
    ]
    ridge = peak / slope
    xs = [ridge, *(x for x, _, _ in points)]
    low, high = min(xs) / 2, max(xs) * 3
    bottom = min([y for _, y, _ in points], default=1) / 2.5
    axes.loglog([max(low, bottom / slope), ridge], [max(low * slope, bottom), peak],
                color=MARKS[part], lw=1.4)
    axes.plot([ridge, high], [peak, peak], color=MARKS["compute"], lw=1.4)
    axes.text(high, peak * 1.12, f"array: {peak} MAC/cycle", ha="right", size=TEXT,
              color=MARKS["compute"])
    axes.text(0.02, 0.97, text, transform=axes.transAxes, size=TEXT, color=MARKS[part], va="top")
    for x, y, layer in points:
        axes.plot(x, y, "o", ms=5, color=MARKS[layer.core_bound], mew=0, alpha=0.8)
    for (x, y), numbers in _labels(report, points).items():
        axes.annotate(numbers, (x, y), (4, -9), textcoords="offset points", size=TEXT - 1,
                      color=MARKS["faint"])
    axes.set(xlim=(low, high), ylim=(bottom, peak * 2.2), xlabel=label, ylabel="MAC/cycle")
    axes.xaxis.set_major_formatter(short_number)
    axes.yaxis.set_major_formatter(short_number)
    axes.minorticks_off()
    axes.grid(color=MARKS["grid"], lw=0.6)
    axes.set_axisbelow(True)
    return svg_of(figure, f"roofline, {label}")


def _labels(report, points):
    """The numbers of layers by their point; layers that nearly share a point share a label."""
    labels: dict = {}
    for x, y, layer in points:
        number = report.layers.index(layer) + 1
        for (u, v), numbers in labels.items():
            if max(x / u, u / x) < 1.9 and max(y / v, v / y) < 1.3:
                numbers.append(number)
                break
        else:
            labels[x, y] = [number]
    return {
        place: ", ".join(map(str, numbers[:4])) + ", ..." * (len(numbers) > 4)
        for place, numbers in labels.items()
    }


def comparison(report):
    """The cycles, or the ms, of each layer that one of the targets computes."""
    other = report.against
    timed = None not in (report.core_ms, other.core_ms)
    values = [
        [(layer.core_ms or 0) if timed else layer.cycles for layer in each.layers]
        for each in (report, other)
    ]
    values[1] = _by_layer(report, other, values[1])
    rows = [n for n, pair in enumerate(zip(*values, strict=True)) if any(pair)]
    figure, axes = figure_of(0.9 + 1.5 * ROW * len(rows))
    for n, (target, colour) in enumerate(((report.target, "compute"), (other.target, "other"))):
        places = [place + 0.4 * n - 0.2 for place in range(len(rows))]
        lengths = [values[n][row] for row in rows]
        axes.barh(places, lengths, 0.36, color=MARKS[colour], label=target)
    _layer_axis(axes, report, [report.layers[row] for row in rows])
    axes.set_xlabel("ms of the core" if timed else "cycles of the core")
    legend(axes, 2)
    return svg_of(figure, "comparison")


def _by_layer(report, other, values):
    """The values of the layers of ``other``, added up for each layer of ``report``.

    A Config with a table fuses operators, so the layers of two targets may differ.
    """
    if [layer.position for layer in report.layers] == [layer.position for layer in other.layers]:
        return values
    place: dict = {}
    for n, layer in enumerate(report.layers):
        for operator in layer.position:
            place.setdefault(operator, n)
    sums = [0.0] * len(report.layers)
    for layer, value in zip(other.layers, values, strict=True):
        sums[place[layer.position[0]]] += value
    return sums


def svg_of(figure, name):
    """The figure as an SVG element without fixed size, fonts and colours, and links in the page."""
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = re.sub(r"font-family: [^;\"]*(; )?", "", text)
    text = text.replace(' target="_blank"', "")
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda m: m[0] if m[1] in used else "", text)
    for colour, mark in MARKS.items():
        text = text.replace(mark, f"var(--{colour})")
    return text.replace("<svg", f'<svg role="img" aria-label="{name}"', 1)
