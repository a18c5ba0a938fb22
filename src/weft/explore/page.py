"""The report of an exploration as one HTML page that needs no network."""

import base64
from html import escape

from weft.designs import to_toml
from weft.explore.findings import Findings
from weft.explore.pictures import anchor, exploration_pictures
from weft.models.report.page import card, grid, sheet, table

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
    "clock-errors": ("Estimated and measured clock", "As before, for fmax."),
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


def exploration_page(found: Findings, floorplan: bytes | None = None) -> str:
    """The page; ``floorplan`` is a PNG of the winner."""
    drawn = exploration_pictures(found)
    pictures = "<h2>Pictures</h2>" + grid(TITLES, drawn)
    plan = ""
    if floorplan is not None:
        data = base64.b64encode(floorplan).decode()
        plan = (
            "<h2>Floorplan of the winner</h2>"
            f'<img class=plan alt="floorplan" src="data:image/png;base64,{data}">'
        )
    guide = found.guide
    lead = (
        f"Best {guide.objective} on {found.board.device.name}: {len(found.designs)} designs and"
        f" {len(guide.outcomes)} runs of place and route."
    )
    body = [STYLE, _cards(found), "<h2>Designs</h2>", _table(found), pictures, plan,
            "<h2>Each design</h2>", *_details(found), SCRIPT]
    return sheet(", ".join(found.workloads), f"on {found.board.name}", lead, body)


def _cards(found):
    ranking, figures = found.guide.ranking(), found.guide.measured()
    if not ranking:
        return "<p>No design fits and reaches the rate.</p>"
    best = figures[ranking[0]]
    shown = [
        card("winner", escape(ranking[0].name), f"{ranking[0].peak} MAC/cycle"),
        card("core", f"{best.latency:,.1f} us", f"{best.rate:,.0f} a second"),
        card("LUTs", f"{best.area:,}", f"of {found.board.device.capacity['LUT']:,}"),
        *[card("energy", f"{best.energy:,.0f} nJ", "compares designs")] * found.has_energy,
        card("on the front", str(len(found.guide.front())), f"of {len(figures)} measured"),
    ]
    return f"<div class=cards>{''.join(shown)}</div>"


def _table(found):
    figures, front = found.guide.measured(), set(found.guide.front())
    heads = ["", "operator", "us", "us in steady state", "LUT", "FF", "DSP", "RAM", "MHz",
             *["nJ"] * found.has_energy, "front"]
    rows = []
    for n, config in enumerate(found.designs):
        if config not in figures:
            continue
        mine, outcome = figures[config], _best(found, config)
        used = [f"{outcome.used.get(name, 0):,}" for name in ("LUT", "FF", "DSP", "RAM")]
        rows.append(("", found.verdict(config), [
            str(n + 1), config.name, f"{mine.latency:,.2f}", f"{mine.throughput:,.2f}", *used,
            f"{outcome.fmax:.1f}", *[f"{mine.energy:,.1f}"] * found.has_energy,
            "yes" if config in front else "",
        ]))
    return table(heads, rows).replace(">operator<", ">design<")


def _best(found, config):
    done = [o for (each, _), o in found.guide.outcomes.items() if each == config and o.done]
    return max(done, key=lambda outcome: outcome.fmax)


def _details(found):
    """A part for each design: the verdict, its TOML, and its runs."""
    for n, config in enumerate(found.designs):
        runs = [
            ("", "", [str(seed), escape(str(outcome)), outcome.path])
            for (each, seed), outcome in found.guide.outcomes.items() if each == config
        ]
        yield (
            f"<details id={anchor(n)}><summary><b>{n + 1}</b> {escape(config.name)}:"
            f" {escape(found.verdict(config))}</summary>"
            f"<pre>{escape(to_toml(config, chosen=True))}</pre>"
            f"{table(['seed', 'on', ''], runs).replace('>on<', '>outcome<')}</details>"
        )
