"""The record of bitstreams: what ``weft build`` reached for each board.

    python -m tools.board_builds

It reads the reports in ``out``, which the builds have written with the sources of today. A core
without a report keeps its row; the last column has the commit that it was built at. The boards
with Gowin FPGAs, whose tools are others, have a record of their own, and so have the language
cores and the network cores `networks-fast`.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools import results
from weft.boards.bitstream import prepare
from weft.boards.catalog import BOARDS
from weft.boards.toolchain import GOWIN_VERSIONS

__all__ = [
    "designs", "fast_designs", "gowin_designs", "language_designs", "main", "measured",
    "microgpt_designs", "table", "with_rows_of",
]

OUT = results.ROOT / "out"
ABOUT = """\
The cores of the boards, as `weft build` places and routes them, with the first seed that meets the
clock. `ecpix5-45f` and `ecpix5-85f` have the cores of `ulx3s-45f` and `ulx3s-85f`, and speed grade
8 instead of 6. `colorlight-i9` has the core of `ulx3s-45f` with other pins. `ulx3s-12f`,
`colorlight-i5`, `icepi-zero` and `icesugar-pro` have the core of `ulx3s-25f`. `orangecrab-25f`,
`orangecrab-85f` and `butterstick` have the cores of `ulx3s-25f` and `ulx3s-85f`, speed grade 8, and
USB as their link. The other names are the ones of network cores."""
RESOURCES = "LUT", "DSP", "RAM"
ABOUT_LANGUAGE = """\
The language cores of the boards, as `weft build --for language` places and routes them, with the
first seed of the board."""
ABOUT_MICROGPT = """\
The language cores with a microprogram, which compute a microGPT, as `weft build --for language`
places and routes them, with the first seed that meets the clock."""
MICROGPT_RESOURCES = "LUT", "DSP", "RAM", "SPRAM"
ABOUT_FAST = """\
The network cores of the boards, as `weft build --for networks-fast` places and routes them, with
the first seed of the board."""
ABOUT_GOWIN = f"""\
The cores of the boards with Gowin FPGAs, as `weft build` places and routes them, with
{' and '.join(' '.join(each) for each in GOWIN_VERSIONS.items())}. A core meets its clock if nextpnr
reaches 1.2 times as much, because nextpnr does not time DSP blocks, and its other delays are too
small. A DSP block is a multiplier of 9 x 9 bits."""
GOWIN_RESOURCES = "LUT", "FF", "DSP", "RAM"


def _reports(folder, record):
    """The reports of a record, by the name of the core."""
    reports = {
        path.parent.name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*/report.json"))
    }
    return {
        name: each for name, each in reports.items() if _record(each["board"], name) == record
    }


def _record(board, core):
    """The record of a core, from the names of its board and of the folder of its build."""
    if BOARDS[board].device.target == "gowin":
        return "gowin-boards"
    purpose = core.removeprefix(f"{board}-")
    if purpose == "networks-fast":
        return "fast-boards"
    design = BOARDS[board].languages.get(purpose)
    if design is None:
        return "boards"
    return "microgpt-boards" if design.config.microprogram else "language-boards"


def table(
    reports: Mapping[str, dict], commit: str, resources: tuple[str, ...] = RESOURCES,
) -> str:
    """A row for each report, by the name of its core, as Markdown; ``commit`` is the last cell."""
    lines = [
        f"| core | {' | '.join(resources)} | clock | reached | built at |",
        f"|---|{'---:|' * (len(resources) + 2)}---|",
    ]
    for name, report in reports.items():
        used = (
            f"{report['used'][kind]:,} of {report['capacity'][kind]:,}"
            if report["capacity"].get(kind) else "-" for kind in resources
        )
        lines.append(
            f"| `{name}` | {' | '.join(used)} | {report['clock']:.1f} MHz"
            f" | {report['fmax']:.1f} MHz | {commit} |"
        )
    return "\n".join(lines)


def measured(reports: Mapping[str, dict]) -> dict[str, dict[str, str]]:
    """The digests of the designs that the builds have reported, by the name of the core."""
    return {name: report["digests"] for name, report in reports.items() if "digests" in report}


def designs(record: str = "boards") -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """The name of each core of a record, as a build names its folder, and a function for its
    digests.
    """
    for name, board in BOARDS.items():
        for purpose in (None, *board.others):
            core = f"{name}-{purpose}" if purpose else name
            if _record(name, core) == record:
                built = board.built_for(purpose) if purpose else board
                yield core, lambda built=built: prepare(built, built.config).digests


def gowin_designs() -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """The `designs` of boards with a Gowin FPGA."""
    return designs("gowin-boards")


def language_designs() -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """The `designs` of language cores."""
    return designs("language-boards")


def microgpt_designs() -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """The `designs` of language cores with a microprogram."""
    return designs("microgpt-boards")


def fast_designs() -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """The `designs` of network cores with a faster clock."""
    return designs("fast-boards")


def with_rows_of(before: dict, new: dict) -> list[list]:
    """The rows of a new table, and those of a record for the other cores, by their names."""
    named = {row[0]: row for one in (*before["tables"], new) for row in one["rows"]}
    return [named[name] for name in sorted(named)]


def main(folder: Path = OUT) -> int:
    """Make the records; the exit code."""
    if not any(folder.glob("*/report.json")):
        print(f"{folder} must have the reports of weft build, in a folder for each core",
              file=sys.stderr)
        return 2
    for name, title, about, resources in (
        ("boards", "Bitstreams of the boards", ABOUT, RESOURCES),
        ("gowin-boards", "Bitstreams of boards with Gowin FPGAs", ABOUT_GOWIN, GOWIN_RESOURCES),
        ("language-boards", "Bitstreams of language cores", ABOUT_LANGUAGE, RESOURCES),
        (
            "microgpt-boards", "Bitstreams of language cores with a microprogram", ABOUT_MICROGPT,
            MICROGPT_RESOURCES,
        ),
        ("fast-boards", "Bitstreams of fast network cores", ABOUT_FAST, RESOURCES),
    ):
        if not (reports := _reports(folder, name)):
            continue
        of = ["weft.boards.catalog", "weft.boards.bitstream"]
        before = results.load(name)
        new = results.table(table(reports, results.place(of)["commit"], resources))
        kept = {row[0] for row in before["tables"][0]["rows"]} - {row[0] for row in new["rows"]}
        print(results.save(
            name, [{**new, "rows": with_rows_of(before, new)}], title=title,
            command="make boards", about=about, of=of, before=before if kept else None,
            designs=dict(sorted((before.get("designs", {}) | measured(reports)).items())),
        ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
