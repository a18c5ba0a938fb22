"""What the reports of both kinds of core have: facts, text, pictures, page, JSON."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from weft.models.report.pictures import COLOURS
from weft.models.report.placement import reason_lines
from weft.tables import Column, fitted_table

__all__ = [
    "CYCLES", "DRAIN", "STYLE", "WIDTH", "Ceilings", "PageParts", "Report", "card",
    "comparison_table", "grid", "page", "plain_console", "print_lines", "sheet", "table",
]


WIDTH = 200  # columns of a text that is not for a terminal


@dataclass(frozen=True)
class Ceilings:
    """The peak rates of the parts of a core, and the sizes of its operand buffers.

    Attributes
    ----------
    peak : int
        MAC/cycle of the array.
    load : int
        Bytes/cycle of the command stream.
    drain : float
        Requantized results/cycle of full tiles; without an epilogue, sums/cycle.
    a_bytes, b_bytes : int
        Size of the operand buffers.
    """

    peak: int
    load: int
    drain: float
    a_bytes: int
    b_bytes: int


class Report:
    """A whole network on a target; ``str(report)`` is its text.

    Attributes
    ----------
    name : str
        Name of the network.
    target : str
        Name of the board or the Config.
    config : str
        Name of the Config of the array: its size.
    config_hash : int
        Of the core.
    clock : float or None
        MHz.
    placement : str
        The placement line.
    ceilings : Ceilings
    layers : tuple of ProductCoreLayer or NetworkCoreLayer
        All operators, in the order of execution.
    notes : tuple of str
    against : Report or None
        The same network on another target, of any kind, to compare with.
    """

    name: str
    target: str
    config: str
    config_hash: int
    clock: float | None
    placement: str
    ceilings: Ceilings
    layers: tuple
    notes: tuple[str, ...]
    against: "Report | None"

    @property
    def on_weft(self) -> tuple:
        """The layers on the core."""
        raise NotImplementedError

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations."""
        raise NotImplementedError

    @property
    def cycles(self) -> int:
        """Predicted cycles of one inference."""
        raise NotImplementedError

    @property
    def utilization(self) -> float:
        """MACs on the core, divided by its cycles and its peak; in 0..1."""
        raise NotImplementedError

    @property
    def core_ms(self) -> float | None:
        """Predicted time of the core; None without a clock."""
        raise NotImplementedError

    @property
    def wire_ms(self) -> float | None:
        """Time of the bytes on the link; None without a serial port."""
        raise NotImplementedError

    def with_measured(self, records: Sequence) -> "Report":
        """The report with the measured cycles of the records of a session."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """All data as dicts, lists, strings and numbers, for `json.dumps`."""
        raise NotImplementedError

    def show(self, console) -> None:
        """Print the text on a `plain_console`."""
        raise NotImplementedError

    def pictures(self) -> dict[str, str]:
        """SVG elements by name: the pictures that the report has data for."""
        raise NotImplementedError

    def page_parts(self) -> "PageParts":
        """The parts of the page that only the reports of a kind have."""
        raise NotImplementedError

    def totals(self) -> dict[str, str]:
        """The totals by their names; some are the same for both kinds of core."""
        return {
            "Config": self.config, "MAC/cycle": f"{self.ceilings.peak:,}",
            "operators on Weft": self._operators(),
            "cycles": f"{self.cycles:,}", "utilization": f"{self.utilization:.1%}",
            "core ms": _milliseconds(self.core_ms, 3), "wire ms": _milliseconds(self.wire_ms, 1),
        }

    def _operators(self):
        """``4 of 6``: operators on the core, and all of them."""
        every = {place for layer in self.layers for place in layer.position}
        core = {place for layer in self.layers if layer.on_weft for place in layer.position}
        return f"{len(core)} of {len(every)}"

    def comparison(self) -> list[tuple[str, str, str]]:
        """Rows (name, value, value) of the totals that this report and ``against`` have."""
        second = {} if self.against is None else self.against.totals()
        return [(name, text, second[name]) for name, text in self.totals().items()
                if name in second]

    def reasons(self) -> list[str]:
        """A line for each operator that the host computes, wholly or in part, and why."""
        return reason_lines(
            (layer.operator, layer.on_weft, layer.reason, layer.remedy) for layer in self.layers
        )

    def text(self, width: int = WIDTH) -> str:
        """The report as plain text; its tables are at most ``width`` columns wide."""
        console = plain_console(file=io.StringIO(), width=width)
        self.show(console)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())

    def page(self) -> str:
        """The report as an HTML page."""
        return page(self)

    def __str__(self) -> str:
        return self.text()


def plain_console(**arguments):
    """A `rich.console.Console` that prints text as it is: names may have brackets and colons."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, **arguments)


def print_lines(console, lines, **style) -> None:
    """Print lines of text; a terminal breaks them at spaces, a file keeps them whole."""
    for line in lines:
        console.print(line, soft_wrap=not console.is_terminal, **style)


def comparison_table(report, console):
    """The totals of a report and of the one to compare with, as a table."""
    names = "", report.target, report.against.target
    return fitted_table(
        console, [Column(name, left=not n) for n, name in enumerate(names)], report.comparison()
    )


def _milliseconds(value, digits):
    return "-" if value is None else f"{value:,.{digits}f}"


STYLE = """
:root{--paper:#fff;--card:#f5f7f9}
@media(prefers-color-scheme:dark){:root{--paper:#14191e;--card:#1d242b}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
 font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1240px;margin:0 auto;padding:24px 20px 60px}
h1{font-size:1.9rem;margin:0 0 .3em;line-height:1.2;overflow-wrap:anywhere}
h1 small{font-weight:400;color:var(--faint);font-size:1.2rem}
h2{font-size:1.25rem;margin:2em 0 .6em}
h3{font-size:1rem;margin:0 0 .5em}
.lead{margin:0;max-width:75ch}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:20px 0}
.card{background:var(--card);border-radius:8px;padding:12px 14px}
.card b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums}
.card span{display:block}
.card small{color:var(--faint)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:5px 12px;text-align:right;white-space:nowrap}
th{color:var(--faint);font-weight:500;border-bottom:1px solid var(--grid)}
td{border-bottom:1px solid var(--grid)}
th.l,td.l{text-align:left}
th:first-child,td:first-child{padding-left:0}
tr.host td{color:var(--faint)}
ul{padding-left:1.2em;max-width:85ch;font-size:.925rem}
li{margin:.2em 0;overflow-wrap:anywhere}
.grid{display:grid;margin-top:16px;
 grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:20px}
figure{margin:0;background:var(--card);border-radius:8px;padding:16px}
figure svg{display:block;width:100%;height:auto;max-width:620px}
figure.wide{grid-column:1/-1}
figure.wide svg{max-width:none;min-width:620px}
figcaption{color:var(--faint);font-size:.85rem;margin-top:8px;max-width:80ch}
dl{display:grid;grid-template-columns:auto 1fr;gap:4px 16px;max-width:90ch}
dt{font-weight:600}
dd{margin:0}
dt.compute{color:var(--compute)}
dt.load{color:var(--load)}
dt.drain{color:var(--drain)}
dt.latency{color:var(--latency)}
dt.wire{color:var(--wire)}
p{max-width:85ch}
@media(max-width:600px){main{padding:16px 14px 40px}h1{font-size:1.5rem}figure{padding:12px}
 .cards{grid-template-columns:1fr 1fr}.card b{font-size:1.05rem}}
"""


# Headings of pictures that all reports have, and descriptions.
CYCLES = "Cycles of the core", "The colour of a bar is the part that bounds the layer."
DRAIN = (
    "Roofline: drain",
    "A layer near the slope waits for its results. More lanes raise the slope.",
)
AGAINST = {"against": ("Layer by layer", "Both targets.")}
WIDE = {"timeline"}


@dataclass(frozen=True)
class PageParts:
    """The parts of a page that only the reports of one kind of core have.

    Attributes
    ----------
    rate : str
        What the time on the wire is for.
    lists : str
        Text below the cycles.
    cards : list of str
        Further numbers of the network.
    heads : list of str
    rows : list of (str, str, list of str)
        The table of layers: class, title and cells of each.
    titles : dict
        Heading and description of each picture, by its name.
    bounds : tuple of (str, str)
        What may bound a layer, and what it is.
    bounded : str
        How the bound of a layer is found.
    omitted : str
        Which time is not included.
    """

    rate: str
    lists: str
    cards: list[str]
    heads: list[str]
    rows: list[tuple[str, str, list[str]]]
    titles: dict[str, tuple[str, str]]
    bounds: tuple[tuple[str, str], ...]
    bounded: str
    omitted: str


def page(report: "Report") -> str:
    """The report as an HTML page."""
    drawn, parts = report.pictures(), report.page_parts()
    return sheet(report.name, f"on {report.target}", report.placement, [
        _cards(report, parts), "<h2>Layers</h2>", table(parts.heads, parts.rows),
        _bullets([*report.reasons(), *report.notes]), *_comparison(report, drawn),
        "<h2>Pictures</h2>", grid(parts.titles, drawn), "<h2>How to read this</h2>",
        _definitions(report, parts),
    ])


def sheet(name: str, small: str, lead: str, body: list[str]) -> str:
    """A page with a heading of two parts, a first paragraph, and the elements of ``body``."""
    body = [
        f"<header><h1>{escape(name)} <small>{escape(small)}</small></h1>",
        f"<p class=lead>{escape(lead)}</p></header>", *body,
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(name)} {escape(small)}</title>"
        f"<style>{_colours()}{STYLE}</style></head><body><main>\n"
        + "\n".join(body) + "\n</main></body></html>\n"
    )


def grid(titles: dict[str, tuple[str, str]], drawn: dict[str, str]) -> str:
    """The pictures that are drawn, except the comparison."""
    shown = [name for name in titles if name in drawn and name != "against"]
    return f"<div class=grid>{''.join(_picture(name, titles, drawn) for name in shown)}</div>"


def _comparison(report, drawn):
    """The totals of both targets, and their picture; empty without a second target."""
    if report.against is None:
        return []
    heads = ["", report.target, report.against.target]
    rows = table(heads, [("", "", list(row)) for row in report.comparison()])
    return [
        f"<h2>{escape(report.target)} and {escape(report.against.target)}</h2>",
        f"<div class=grid>{rows}{_picture('against', AGAINST, drawn)}</div>",
    ]


def _colours():
    light, dark = (
        "".join(f"--{name}:{pair[n]};" for name, pair in COLOURS.items()) for n in (0, 1)
    )
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"


def card(name: str, value: str, more: str = "") -> str:
    """A number with its name."""
    return f"<div class=card><b>{value}</b><span>{name}</span><small>{more}</small></div>"


def _cards(report, parts):
    """The numbers of a network side by side."""
    shown = [card("MAC", f"{report.macs:,}", f"{report.ceilings.peak} MAC/cycle at most")]
    if report.core_ms is None:
        shown.append(card("cycles of the core", f"{report.cycles:,}", parts.lists))
    else:
        cycles = f"{report.cycles:,} cycles at {report.clock:g} MHz"
        shown.append(card("core", f"{report.core_ms:,.3f} ms", cycles))
    if report.wire_ms is not None:
        shown.append(card("wire", f"{report.wire_ms:,.1f} ms", parts.rate))
    shown.append(card("utilization of the array", f"{report.utilization:.1%}"))
    return f"<div class=cards>{''.join([*shown, *parts.cards])}</div>"


def table(
    heads: list[str], rows: list[tuple[str, str, list[str]]],
    texts: tuple[str, ...] = ("", "operator", "on", "bound by"),
) -> str:
    """A table; each row has a class, a title and its cells.

    Columns whose heads are in ``texts`` begin at the left, others end at the right.
    """
    left = [" class=l" if name in texts else "" for name in heads]
    head = "".join(f"<th{c}>{escape(name)}</th>" for c, name in zip(left, heads, strict=True))
    lines = []
    for kind, title, cells in rows:
        data = "".join(f"<td{c}>{escape(cell)}</td>" for c, cell in zip(left, cells, strict=True))
        lines.append(f'<tr class="{kind}" title="{escape(title)}">{data}</tr>')
    return (
        f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>"
        f"{''.join(lines)}</tbody></table></div>"
    )


def _bullets(lines):
    """Lines as a list; empty without lines."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _picture(name, titles, drawn):
    """A picture with its heading and its description."""
    heading, text = titles[name]
    kind = ' class="wide"' if name in WIDE else ""
    return (
        f"<figure{kind}><h3>{heading}</h3><div class=scroll>{drawn[name]}</div>"
        f"<figcaption>{escape(text)}</figcaption></figure>"
    )


def _definitions(report, parts):
    """How to read the page: two paragraphs around the names of bounds, and the core."""
    terms = "".join(f"<dt class={name}>{name}</dt><dd>{text}</dd>" for name, text in parts.bounds)
    return (
        "<p>Cycles are predicted by the cycle model, which equals the hardware."
        f" {parts.bounded}</p><dl>{terms}</dl><p>{escape(parts.omitted)} The time on the wire"
        " counts the bytes alone: it leaves out the delays of USB adapters.</p>"
        f"<p>Config {escape(report.config)}, hash {report.config_hash:08x}.</p>"
    )
