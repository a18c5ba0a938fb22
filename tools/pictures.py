"""Draw the pictures of the documents that show computed or measured values.

    make pictures

``results/pictures.json`` has a digest of the values that each picture shows. So a test knows when a
picture is old, on each machine: the pixels depend on fonts and on versions of packages.
"""

import dataclasses
import hashlib
import json
import re
import sys
from pathlib import Path

import weft
from weft.boards.presets import PRESETS
from weft.cli import demo_timeline as demo
from weft.cli.performance import PerformanceRecords
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


def _report():
    """The report of the network of the examples on a board's product core."""
    return report(weft.load(ROOT / "examples" / "digits_cnn.tflite").compile("ulx3s-85f"))


def _records():
    return PerformanceRecords(ROOT / "results", PAGES)


def shown() -> dict[str, str]:
    """A digest of the values that each picture shows today, by the name of its file."""
    program = demo.compiled()
    measured = [dataclasses.asdict(record) for record in _records().latest.values()]
    values = {
        "demo.png": [*demo.phases(program, demo.prediction(program))],
        "report.svg": _report().to_json(), "performance.png": measured,
        "performance-cost.png": measured,
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


def main() -> int:
    """Draw all pictures; the exit code."""
    program = demo.compiled()
    demo.draw(program, demo.prediction(program), STATIC / "demo.png")
    _draw_report(STATIC / "report.svg")
    _records().save(PRESETS)
    DIGESTS.write_text(json.dumps(shown(), indent=1) + "\n", encoding="utf-8")
    print(*shown(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
