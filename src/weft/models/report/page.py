"""The report as one HTML page that needs no network: tables, and pictures as embedded SVG."""

from html import escape

from weft.models.report.energy import FORMULA
from weft.models.report.figures import NetworkReport
from weft.models.report.network_core import NetworkCoreReport
from weft.models.report.pictures import COLOURS, pictures
from weft.models.report.style import STYLE
from weft.models.report.text import (
    HOST_TIME,
    bound_text,
    comparison_rows,
    energy_text,
    measured_text,
    place_text,
    products_text,
    reasons,
)

__all__ = [
    "CYCLES", "DRAIN", "bullets", "card", "cards", "comparison_table", "definitions", "document",
    "grid", "page", "picture", "sheet", "table",
]

# Headings of pictures, and descriptions.
CYCLES = "Cycles of the core", "The colour of a bar is the part that bounds the layer."
DRAIN = (
    "Roofline: drain",
    "A layer near the slope waits for its results. More lanes raise the slope.",
)
TITLES = {  # by the name of the picture
    "cycles": CYCLES,
    "wire": (
        "Time on the wire",
        "Commands and results with their frames, in the slower of the two directions.",
    ),
    "timeline": (
        "What is busy",
        "Height: the share of a layer's cycles in which the part is busy.",
    ),
    "roofline-load": (
        "Roofline: load",
        "A layer near the slope waits for operands. Reuse them more, or widen the stream.",
    ),
    "roofline-drain": DRAIN,
    "chip": (
        "Memory on the chip",
        "Packed weights, and parameters. Weights that exceed the buffer pass through it in parts.",
    ),
    "maps": (
        "Memory on the host",
        "Feature maps that are needed at the end of a layer.",
    ),
    "energy": ("Energy", FORMULA),
    "against": ("Layer by layer", "Both targets."),
}
WIDE = {"timeline"}
BOUNDS = (
    ("compute", "The array: each tile takes K / depth cycles."),
    ("load", "The command stream: operands and parameters are loaded."),
    ("drain", "The output stage: results leave the array and are requantized."),
    ("latency", "Pipelines and headers: more than half of the cycles remain if the rest is ideal."),
    ("wire", "The serial port takes longer than the core. What bounds the core is in brackets."),
)


def page(report: NetworkReport) -> str:
    """The report as an HTML page."""
    drawn = pictures(report)
    body = [
        _cards(report), "<h2>Layers</h2>", _layers(report),
        bullets([*reasons(report), *report.notes]), *comparison_table(report, drawn),
        "<h2>Pictures</h2>", grid(TITLES, drawn), "<h2>How to read this</h2>",
        _definitions(report),
    ]
    return document(report, body)


def document(report: NetworkReport | NetworkCoreReport, body: list[str]) -> str:
    """A page with a heading, the placement line, and the elements of ``body``."""
    return sheet(report.name, f"on {report.target}", report.placement, body)


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
    return f"<div class=grid>{''.join(picture(name, titles, drawn) for name in shown)}</div>"


def comparison_table(report: NetworkReport | NetworkCoreReport, drawn: dict[str, str]) -> list[str]:
    """The totals of both targets, and their picture; empty without a second target."""
    if report.against is None:
        return []
    heads = ["", report.target, report.against.target]
    rows = table(heads, [("", "", list(row)) for row in comparison_rows(report)])
    return [
        f"<h2>{escape(report.target)} and {escape(report.against.target)}</h2>",
        f"<div class=grid>{rows}{picture('against', TITLES, drawn)}</div>",
    ]


def _colours():
    light, dark = (
        "".join(f"--{name}:{pair[n]};" for name, pair in COLOURS.items()) for n in (0, 1)
    )
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"


def card(name: str, value: str, more: str = "") -> str:
    """A number with its name."""
    return f"<div class=card><b>{value}</b><span>{name}</span><small>{more}</small></div>"


def cards(report: NetworkReport | NetworkCoreReport, rate: str, lists: str, more: list[str]) -> str:
    """The numbers of a network side by side.

    ``rate`` is that of the wire, ``lists`` the text below the cycles, ``more`` are further cards.
    """
    shown = [card("MAC", f"{report.macs:,}", f"{report.ceilings.peak} MAC/cycle at most")]
    if report.core_ms is None:
        shown.append(card("cycles of the core", f"{report.cycles:,}", lists))
    else:
        cycles = f"{report.cycles:,} cycles at {report.clock:g} MHz"
        shown.append(card("core", f"{report.core_ms:,.3f} ms", cycles))
    if report.wire_ms is not None:
        shown.append(card("wire", f"{report.wire_ms:,.1f} ms", rate))
    shown.append(card("utilization of the array", f"{report.utilization:.1%}"))
    return f"<div class=cards>{''.join([*shown, *more])}</div>"


def _cards(report):
    moved, rate = report.streams, report.baud and f"at least, at {report.baud:,} baud"
    return cards(report, rate, "", [
        card(
            "bytes of commands", f"{moved.commands:,}", f"{moved.results:,} bytes of results"
        ),
        card("energy", energy_text(report.energy.total), "an estimate"),
    ])


def _layers(report):
    measured = any(layer.measured is not None for layer in report.layers)
    heads = ["", "operator", "on", "MAC", "M x K x N", "jobs", "cycles"]
    heads += ["measured"] * measured
    heads += ["used", "bound by", "bytes in", "bytes out"]
    heads += ["core ms"] * (report.clock is not None) + ["wire ms"] * (report.baud is not None)
    rows = []
    for n, layer in enumerate(report.layers):
        macs = f"{layer.macs:,}" if layer.macs else ""
        cells = [str(n + 1), layer.operator, place_text(layer), macs]
        if layer.on_weft:
            cells += [products_text(layer.products), f"{layer.jobs:,}", f"{layer.cycles:,}"]
            cells += [measured_text(layer)] * measured
            cells += [
                f"{layer.utilization:.1%}", bound_text(layer), f"{layer.streams.commands:,}",
                f"{layer.streams.results:,}",
            ]
            if report.clock is not None:
                cells.append(f"{layer.core_ms:,.3f}")
            if report.baud is not None:
                cells.append(f"{layer.wire_ms:,.1f}")
        cells += [""] * (len(heads) - len(cells))
        rows.append(("host" if not layer.on_weft else layer.core_bound, layer.name, cells))
    return table(heads, rows)


def table(heads: list[str], rows: list[tuple[str, str, list[str]]]) -> str:
    """A table; each row has a class, a title and its cells."""
    text = ["operator", "on", "bound by", ""]
    left = [" class=l" if name in text else "" for name in heads]
    head = "".join(f"<th{c}>{escape(name)}</th>" for c, name in zip(left, heads, strict=True))
    lines = []
    for kind, title, cells in rows:
        data = "".join(f"<td{c}>{escape(cell)}</td>" for c, cell in zip(left, cells, strict=True))
        lines.append(f'<tr class="{kind}" title="{escape(title)}">{data}</tr>')
    return (
        f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>"
        f"{''.join(lines)}</tbody></table></div>"
    )


def bullets(lines: list[str]) -> str:
    """Lines as a list; empty without lines."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def picture(name: str, titles: dict[str, tuple[str, str]], drawn: dict[str, str]) -> str:
    """A picture with its heading and its description."""
    heading, text = titles[name]
    kind = ' class="wide"' if name in WIDE else ""
    return (
        f"<figure{kind}><h3>{heading}</h3><div class=scroll>{drawn[name]}</div>"
        f"<figcaption>{escape(text)}</figcaption></figure>"
    )


def definitions(bounds, first: str, second: str, config: str, config_hash: int) -> str:
    """How to read a page: two paragraphs around the names of ``bounds``, and the core."""
    terms = "".join(f"<dt class={name}>{name}</dt><dd>{text}</dd>" for name, text in bounds)
    return (
        f"<p>Cycles are predicted by the cycle model, which equals the hardware. {first}</p>"
        f"<dl>{terms}</dl><p>{second} The time on the wire counts the bytes alone: it leaves out"
        " the delays of USB adapters.</p>"
        f"<p>Config {escape(config)}, hash {config_hash:08x}.</p>"
    )


def _definitions(report):
    return definitions(
        BOUNDS,
        "Each layer is predicted again with an ideal load, an ideal array and an ideal drain; the"
        " part that takes longest alone bounds the layer.",
        escape(HOST_TIME), report.config, report.config_hash,
    )
