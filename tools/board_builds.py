"""The record of bitstreams: what ``weft build`` reached for each board.

    python -m tools.board_builds

It reads the reports in ``out``, which the builds have written. A core that was not built is left
out, so build all of them first.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tools import results
from weft.boards.bitstream import prepare
from weft.boards.catalog import BOARDS

__all__ = ["designs", "main", "measured", "table"]

OUT = results.ROOT / "out"
ABOUT = """\
The cores of the boards, as `weft build` places and routes them, with the first seed that meets the
clock. `ecpix5-45f` and `ecpix5-85f` have the cores of `ulx3s-45f` and `ulx3s-85f`, and speed grade
8 instead of 6. `colorlight-i9` has the core of `ulx3s-45f` with other pins. `ulx3s-12f`,
`colorlight-i5`, `icepi-zero` and `icesugar-pro` have the core of `ulx3s-25f`. `orangecrab-25f`,
`orangecrab-85f` and `butterstick` have the cores of `ulx3s-25f` and `ulx3s-85f`, speed grade 8, and
USB as their link. The other names are the ones of network cores."""
RESOURCES = "LUT", "DSP", "RAM"


def table(folder: Path) -> str:
    """A row for each report below a folder, as Markdown."""
    lines = [
        f"| core | {' | '.join(RESOURCES)} | clock | reached |",
        f"|---|{'---:|' * (len(RESOURCES) + 2)}",
    ]
    for path in sorted(folder.glob("*/report.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        used = (
            f"{report['used'][name]:,} of {report['capacity'][name]:,}"
            if report["capacity"].get(name) else "-" for name in RESOURCES
        )
        lines.append(
            f"| `{path.parent.name}` | {' | '.join(used)} | {report['clock']:.1f} MHz"
            f" | {report['fmax']:.1f} MHz |"
        )
    return "\n".join(lines)


def measured(folder: Path) -> dict[str, dict[str, str]]:
    """The digests of the designs that the builds have reported, by the name of the core."""
    reports = {
        path.parent.name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*/report.json"))
    }
    return {name: report["digests"] for name, report in reports.items() if "digests" in report}


def designs() -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """The name of each core, as a build names its folder, and a function for its digests."""
    for name, board in BOARDS.items():
        for purpose in (None, *board.networks):
            built = board.built_for(purpose) if purpose else board
            yield f"{name}-{purpose}" if purpose else name, lambda built=built: (
                prepare(built, built.config).digests
            )


def main(folder: Path = OUT) -> int:
    """Make the record; the exit code."""
    if not any(folder.glob("*/report.json")):
        print(f"{folder} must have the reports of weft build, in a folder for each core",
              file=sys.stderr)
        return 2
    print(results.save(
        "boards", [results.table(table(folder))], title="Bitstreams of the boards",
        command="make boards", about=ABOUT, of=["weft.boards.catalog", "weft.boards.bitstream"],
        designs=measured(folder),
    ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
