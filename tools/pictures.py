"""Draw the pictures of the documents that show computed or measured values.

    make pictures

``results/pictures.json`` has a digest of the values that each picture shows. So a test knows when a
picture is old, on each machine: the pixels depend on fonts and on versions of packages.
"""

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import re
import runpy
import sys
from pathlib import Path

import weft
from tools import chips
from weft.boards.presets import PRESETS
from weft.cli import demo_timeline as demo
from weft.cli import demo_words, story_timeline
from weft.cli.info import cycle_counts
from weft.cli.performance import PerformanceRecords
from weft.config import Config
from weft.models.report import report
from weft.models.report.pictures import COLOURS

__all__ = ["DIGESTS", "main", "shown"]

ROOT = Path(__file__).resolve().parent.parent
STATIC, PAGES = ROOT / "docs" / "_static", ROOT / "docs" / "results"
DIGESTS = ROOT / "results" / "pictures.json"
# Of the page of a report: name, x, y, width, height.
PARTS = [
    ("timeline", 0, 0, 662.4, 136.8), ("roofline-load", 0, 150, 331.2, 216),
    ("roofline-drain", 331.2, 150, 331.2, 216),
]
STAIRS = {"learn-pe.svg": (1, 1), "learn-row.svg": (1, 4), "learn-array.svg": (4, 4)}
BUFFER_WORDS = [64, 128, 256, 512, 4096]
BLUE, ORANGE, GREEN, PALE, INK = "#a9c6f5", "#ffd79a", "#bfe5c8", "#eef1f5", "#1f2933"


def _report(target="ulx3s-85f"):
    """The report of the network of the examples on a board's product core."""
    return report(weft.load(ROOT / "examples" / "digits_cnn.tflite").compile(target))


def _example(name):
    """The names of an example, which prints nothing here."""
    with contextlib.redirect_stdout(io.StringIO()):
        return runpy.run_path(str(ROOT / "examples" / name))


@functools.cache
def _stairs():
    """What the pictures of the staircase for learners show, by the name of the file."""
    simulate = _example("staircase.py")["simulate"]
    layer = _example("layer.py")
    link = {
        target: _report(target).to_json() for target in ("icebreaker-networks", "icebreaker")
    }
    return {
        **{name: simulate(*size)[0] for name, size in STAIRS.items()},
        "learn-buffer.svg": [
            cycle_counts(Config(rows=4, cols=4, a_words=words, b_words=words), 64, 64, 64)[2]
            for words in BUFFER_WORDS
        ],
        "learn-layer.svg": [layer["sums"][:, 0].tolist(), layer["y"][:, 0].tolist()],
        "learn-network.svg": [
            link["icebreaker-networks"]["link"]["sent"],
            link["icebreaker"]["totals"]["streams"]["sent"],
        ],
    }


def _records():
    return PerformanceRecords(ROOT / "results", PAGES)


def shown() -> dict[str, str]:
    """A digest of the values that each picture shows today, by the name of its file."""
    program, heard = demo.compiled(), demo_words.compiled()
    measured = [dataclasses.asdict(record) for record in _records().latest.values()]
    values = {
        "demo.png": [*demo.phases(program, demo.prediction(program))],
        "words.png": [[*demo.phases(heard, demo.prediction(heard))], demo_words.SPOKEN],
        "story.png": story_timeline.predicted()[0],
        "report.svg": _report().to_json(), "performance.png": measured,
        "performance-cost.png": measured, "chips.png": chips.curves(), **_stairs(),
    }
    return {
        name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
        for name, value in values.items()
    }


def _draw_report(path):
    """Three pictures of the page of a report, in the light colours of the page."""
    drawn = _report().pictures()
    colours = "".join(f"--{name}: {light};" for name, (light, _) in COLOURS.items())
    parts = [
        drawn[name].replace("<svg", f'<svg x="{x}" y="{y}" width="{width}" height="{height}"', 1)
        for name, x, y, width, height in PARTS
    ]
    right = max(x + width for _, x, _, width, _ in PARTS)
    bottom = max(y + height for _, _, y, _, height in PARTS)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right} {bottom}"'
        f' style="{colours} background: white; font-family: sans-serif">\n'
        + "\n".join(re.sub(r"[ \t]+$", "", part, flags=re.MULTILINE) for part in parts)
        + "\n</svg>\n", encoding="utf-8",
    )


def _text(x, y, text, anchor="middle"):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'


def _box(x, y, width, height, colour, text=""):
    box = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{colour}"/>'
    return box + (_text(x + width / 2, y + height / 2 + 4, text) if text != "" else "")


def _save(name, width, height, parts):
    (STATIC / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' font-family="sans-serif" font-size="11" fill="{INK}">\n'
        + "\n".join([_box(0, 0, width, height, "white"), *parts]) + "\n</svg>\n",
        encoding="utf-8",
    )


def _draw_steps(name, cycles):
    """A line for each PE and for each column of results, with the cycles from left to right."""
    rows, cols = STAIRS[name]
    product_steps = _example("staircase.py")["K"]
    wide, high, left, top = 34, 20, 110, 24
    lanes = [top + n * high for n in range(rows * cols)]
    lanes += [lanes[-1] + high + 8 + c * high for c in range(cols)]
    parts = [_text(left - 8, 16, "cycle", "end")]
    parts += [_box(left, y, len(cycles) * wide - 2, high - 2, PALE) for y in lanes]
    steps = [0] * (rows * cols)  # of each PE
    for t, (_, _, cells, leaving) in enumerate(cycles):
        x = left + t * wide
        parts.append(_text(x + wide / 2 - 1, 16, t))
        for n, (enabled, total) in enumerate(cells):
            # The steps before this one tell to which of both products it belongs.
            colour = BLUE if steps[n] < product_steps else ORANGE
            steps[n] += enabled
            if enabled or rows == 1:
                parts.append(_box(
                    x, lanes[n], wide - 2, high - 2, colour if enabled else PALE,
                    total if rows == 1 else "",
                ))
        parts += [
            _box(x, y, wide - 2, high - 2, GREEN, value)
            for y, value in zip(lanes[rows * cols :], leaving, strict=True) if value is not None
        ]
    names = [f"PE {p}, {c}" for p in range(rows) for c in range(cols)]
    names += [f"out of column {c}" for c in range(cols)]
    parts += [
        _text(left - 8, y + 13, text, "end") for y, text in zip(lanes, names, strict=True)
    ]
    _save(name, left + len(cycles) * wide + 8, lanes[-1] + high + 6, parts)


def _draw_bars(name, title, bars):
    """A bar for each (label, value)."""
    left, across, high = 150, 480, 24
    most = max(value for _, value in bars)
    parts = [_text(8, 18, title, "start")]
    for n, (label, value) in enumerate(bars):
        y, width = 30 + n * high, round(across * value / most, 1)
        parts += [
            _text(left - 8, y + 15, label, "end"), _box(left, y, width, high - 4, BLUE),
            _text(left + width + 6, y + 15, f"{value:,.0f}", "start"),
        ]
    _save(name, left + across + 70, 38 + len(bars) * high, parts)


def _draw_layer(name, sums, results):
    """A point for each result: its sum from left to right, its byte from below."""
    left, top, wide, high = 60, 16, 560, 255
    low, most = min(sums), max(sums)
    parts = [
        f'<path d="M{left} {top}V{top + high}H{left + wide}" fill="none" stroke="{INK}"/>',
        _text(left - 6, top + 4, 127, "end"), _text(left - 6, top + high + 4, -128, "end"),
        _text(left - 6, top + high // 2, "byte", "end"),
        _text(left, top + high + 18, f"sum {low:,}", "start"),
        _text(left + wide, top + high + 18, f"{most:,}", "end"),
    ]
    for total, result in zip(sums, results, strict=True):
        x = round(left + wide * (total - low) / (most - low), 1)
        parts.append(f'<circle cx="{x}" cy="{top + 127 - result}" r="4" fill="#2478b5"/>')
    _save(name, left + wide + 20, top + high + 28, parts)


def _draw_stairs():
    values = _stairs()
    for name in STAIRS:
        _draw_steps(name, values[name])
    _draw_bars("learn-buffer.svg", "cycles of 64 x 64 x 64, by the words of each buffer", [
        (f"{words} words", cycles)
        for words, cycles in zip(BUFFER_WORDS, values["learn-buffer.svg"], strict=True)
    ])
    _draw_layer("learn-layer.svg", *values["learn-layer.svg"])
    names = "whole network", "product by product"
    _draw_bars("learn-network.svg", "bytes to the board for an image",
               [*zip(names, values["learn-network.svg"], strict=True)])


def main() -> int:
    """Draw all pictures; the exit code."""
    program = demo.compiled()
    demo.draw(program, demo.prediction(program), STATIC / "demo.png")
    demo_words.draw_golden(STATIC / "words.png")
    story_timeline.draw(*story_timeline.predicted(), STATIC / "story.png")
    _draw_report(STATIC / "report.svg")
    _draw_stairs()
    chips.draw(STATIC / "chips.png")
    _records().save(PRESETS)
    DIGESTS.write_text(json.dumps(shown(), indent=1) + "\n", encoding="utf-8")
    print(*shown(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
