"""The report of an exploration as one HTML page that needs no network."""

import base64
import math
from html import escape

from weft.designs import to_toml
from weft.explore.findings import Findings
from weft.explore.space import fields_of
from weft.models.report.interface import card, grid, sheet, table
from weft.models.report.pictures import MARKS, WIDTH, figure_of, legend, short_number, svg_of

__all__ = ["exploration_page"]

TITLES = {
    "front": (
        "Time and area",
        "A dot is a design that was placed and routed, with its best seed. It opens the design.",
    ),
    "energy": ("Time and energy", "The energy is an estimate that compares designs."),
    "parallel": (
        "Fields and time",
        "A line for each design. Strong lines are on the front of all figures.",
    ),
    "seeds": ("Clock over seeds", "Place and route with other seeds gives another clock."),
    "area-errors": (
        "Estimated and measured area",
        "Grey: recorded designs, each estimated by a model that was fitted without it.",
    ),
    "clock-errors": ("Estimated and measured clock", "Grey: recorded designs, as for the area."),
    "boards": (
        "Cost over boards",
        "The own core of each board at its clock: what another board would give.",
    ),
}
STYLE = """<style>
.grid figure:has([aria-label="parallel coordinates"]){grid-column:1/-1}
.grid figure:has([aria-label="parallel coordinates"]) svg{max-width:none;min-width:620px}
details{background:var(--card);border-radius:8px;padding:8px 14px;margin:8px 0}
summary{cursor:pointer;overflow-wrap:anywhere}
details:target{outline:2px solid var(--compute)}
details table{margin:.5em 0}
pre{overflow-x:auto;font-size:.875rem;margin:.5em 0}
img.plan{max-width:100%;height:auto;background:#fff;border-radius:8px}
svg a{cursor:pointer}
</style>"""
# A link to a design opens it.
SCRIPT = """<script>
function show(){const e=document.getElementById(location.hash.slice(1));
 if(e&&e.tagName==="DETAILS")e.open=true}
addEventListener("hashchange",show);show()
</script>"""
TEXT = 9  # font size of the pictures, in points
# The fields of a picture with parallel axes.
PARALLEL = (
    "rows", "cols", "depth", "hop", "dsp_cols", "ram_cols", "lanes", "scale_cycles", "words",
    "a_words", "b_words", "lines", "read_vectors", "bytes_in", "bytes_out", "jobs",
)


def exploration_page(findings: Findings, floorplan: bytes | None = None) -> str:
    """The page; ``floorplan`` is a PNG of the winner."""
    drawn = _pictures(findings)
    pictures = "<h2>Pictures</h2>" + grid(TITLES, drawn)
    plan = ""
    if floorplan is not None:
        data = base64.b64encode(floorplan).decode()
        plan = (
            "<h2>Floorplan of the winner</h2>"
            f'<img class=plan alt="floorplan" src="data:image/png;base64,{data}">'
        )
    guide = findings.guide
    lead = (
        f"Best {guide.objective} on {findings.board.device.name}: {len(findings.designs)} designs"
        f" and {len(guide.outcomes)} runs of place and route."
    )
    body = [STYLE, _cards(findings), "<h2>Designs</h2>", _table(findings), pictures, plan,
            "<h2>Each design</h2>", *_details(findings), SCRIPT]
    return sheet(", ".join(findings.workloads), f"on {findings.board.name}", lead, body)


def _cards(findings):
    ranking, figures = findings.guide.ranking(), findings.guide.measured()
    if not ranking:
        return "<p>No design fits and reaches the rate.</p>"
    best = figures[ranking[0]]
    shown = [
        card("winner", escape(ranking[0].name), f"{ranking[0].peak} MAC/cycle"),
        card("core", f"{best.latency:,.1f} us", f"{best.rate:,.0f} a second"),
        card("LUTs", f"{best.area:,}", f"of {findings.board.device.capacity['LUT']:,}"),
        *[card("energy", f"{best.energy:,.0f} nJ", "compares designs")] * findings.has_energy,
        card("on the front", str(len(findings.guide.front())), f"of {len(figures)} measured"),
    ]
    return f"<div class=cards>{''.join(shown)}</div>"


def _table(findings):
    figures, front = findings.guide.measured(), set(findings.guide.front())
    heads = ["", "design", "us", "us in steady state", "LUT", "FF", "DSP", "RAM", "MHz",
             *["nJ"] * findings.has_energy, "front"]
    rows = []
    for n, config in enumerate(findings.designs):
        if config not in figures:
            continue
        mine, outcome = figures[config], _best(findings, config)
        used = [f"{outcome.used.get(name, 0):,}" for name in ("LUT", "FF", "DSP", "RAM")]
        rows.append(("", findings.verdict(config), [
            str(n + 1), config.name, f"{mine.latency:,.2f}", f"{mine.throughput:,.2f}", *used,
            f"{outcome.fmax:.1f}", *[f"{mine.energy:,.1f}"] * findings.has_energy,
            "yes" if config in front else "",
        ]))
    return table(heads, rows, ("", "design"))


def _best(findings, config):
    done = [o for (each, _), o in findings.guide.outcomes.items() if each == config and o.done]
    return max(done, key=lambda outcome: outcome.fmax)


def _details(findings):
    """A part for each design: the verdict, its TOML, and its runs."""
    for n, config in enumerate(findings.designs):
        runs = [
            ("", "", [str(seed), str(outcome), outcome.path])
            for (each, seed), outcome in findings.guide.outcomes.items() if each == config
        ]
        yield (
            f"<details id={_anchor(n)}><summary><b>{n + 1}</b> {escape(config.name)}:"
            f" {escape(findings.verdict(config))}</summary>"
            f"<pre>{escape(to_toml(config, chosen=True))}</pre>"
            f"{table(['seed', 'outcome', ''], runs, ('outcome', ''))}</details>"
        )


def _anchor(place: int) -> str:
    """The name of the part of the page about a design, by its place."""
    return f"design-{place + 1}"


def _pictures(findings: Findings) -> dict[str, str]:
    """SVG elements by name: the pictures that the exploration has data for."""
    drawn = {}
    if findings.guide.measured():
        drawn["front"] = _front(findings, "area", "LUTs")
        if findings.has_energy:
            drawn["energy"] = _front(findings, "energy", "nJ, which compares designs")
        drawn["parallel"] = _parallel(findings)
        drawn["seeds"] = _seeds(findings)
    drawn["area-errors"] = _errors(findings, "LUT", "LUTs")
    if findings.errors.of("fmax").size:
        drawn["clock-errors"] = _errors(findings, "fmax", "MHz")
    if findings.boards:
        drawn["boards"] = _boards(findings)
    return drawn


def _front(findings, name, label):
    """Microseconds against another figure; the designs that no other dominates are filled."""
    figures, best = findings.guide.measured(), set(findings.guide.front())
    figure, axes = figure_of(3.4)
    for chosen, style in ((False, {"facecolors": "none"}), (True, {})):
        numbers = [
            n for n, c in enumerate(findings.designs) if c in figures and (c in best) == chosen
        ]
        shown = [figures[findings.designs[n]] for n in numbers]
        colour = MARKS["compute" if chosen else "latency"]
        style = style or {"facecolors": colour}
        dots = axes.scatter(
            [getattr(each, name) for each in shown], [each.latency for each in shown], s=44,
            edgecolors=colour, linewidths=1.4, zorder=3,
            label="on the front" if chosen else "dominated", **style,
        )
        dots.set_urls([f"#{_anchor(n)}" for n in numbers])
    for n, config in enumerate(findings.designs[:6]):
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


def _parallel(findings):
    """A line for each measured design through its fields and its latency."""
    figures = findings.guide.measured()
    designs = [config for config in findings.designs if config in figures]
    fields = [fields_of(config) for config in designs]
    names = [
        name for name in PARALLEL if len({each.get(name) for each in fields}) > 1
    ] or ["rows"]
    columns = {name: [each[name] for each in fields] for name in names}
    columns["us"] = [figures[config].latency for config in designs]
    figure, axes = figure_of(3.0, 2 * WIDTH)
    axes.spines["left"].set_visible(False)
    places = {name: _scaled(values) for name, values in columns.items()}
    best = set(findings.guide.front())
    for n, config in enumerate(designs):
        heights = [places[name][n] for name in columns]
        chosen = config in best
        [line] = axes.plot(
            range(len(columns)), heights, lw=1.8 if chosen else 0.9, zorder=3 if chosen else 2,
            color=MARKS["compute" if chosen else "latency"], alpha=0.9 if chosen else 0.5,
        )
        line.set_url(f"#{_anchor(findings.designs.index(config))}")
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


def _seeds(findings):
    """fmax of each seed, for the designs with the most seeds."""
    by_design = {}
    for (config, _), outcome in findings.guide.outcomes.items():
        if outcome.done:
            by_design.setdefault(config, []).append(outcome.fmax)
    designs = sorted(by_design, key=lambda c: (-len(by_design[c]), findings.designs.index(c)))[:8]
    figure, axes = figure_of(1.0 + 0.24 * len(designs))
    for row, config in enumerate(designs):
        values = by_design[config]
        axes.plot([min(values), max(values)], [row, row], color=MARKS["grid"], lw=3)
        dots = axes.scatter(values, [row] * len(values), s=26, color=MARKS["load"], zorder=3)
        dots.set_urls([f"#{_anchor(findings.designs.index(config))}"] * len(values))
    labels = [f"{findings.designs.index(config) + 1}  {config.name}" for config in designs]
    axes.set_yticks(range(len(designs)), labels, color=MARKS["ink"])
    axes.set_ylim(len(designs) - 0.4, -0.6)
    axes.grid(axis="x", color=MARKS["grid"], lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("fmax in MHz, a dot for each seed")
    return svg_of(figure, "fmax over seeds")


def _errors(findings, name, label):
    """Estimated against measured: the recorded points, and the designs of this exploration."""
    pairs = findings.errors.pairs(name)
    ours = [
        (_value(outcome, name), _estimated(findings.estimates[config].area, name), config)
        for (config, _), outcome in findings.guide.outcomes.items() if outcome.done
    ]
    figure, axes = figure_of(3.2)
    if pairs:
        axes.scatter(*zip(*pairs, strict=True), s=16, color=MARKS["latency"], alpha=0.7, lw=0,
                     label="recorded, left out")
    if ours:
        x, y, configs = zip(*ours, strict=True)
        dots = axes.scatter(x, y, s=28, color=MARKS["compute"], zorder=3, label="explored")
        dots.set_urls([f"#{_anchor(findings.designs.index(config))}" for config in configs])
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


def _boards(findings):
    """Microseconds of the core and of the wire for the own core of each board."""
    figure, axes = figure_of(1.0 + 0.34 * len(findings.boards))
    for row, cost in enumerate(findings.boards):
        for shift, value, colour, text in (
            (-0.18, cost.core, "compute", "core"), (0.18, cost.wire, "wire", "serial port"),
        ):
            if value is not None:
                label = text if not row else ""
                axes.barh(row + shift, value, 0.32, color=MARKS[colour], label=label)
    labels = [f"{cost.name}\n{cost.clock:g} MHz" for cost in findings.boards]
    axes.set_yticks(range(len(labels)), labels, color=MARKS["ink"])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(short_number)
    axes.grid(axis="x", color=MARKS["grid"], lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("us for all workloads")
    legend(axes, 2)
    return svg_of(figure, "cost over boards")
