"""Compare the designs of hardware records with the designs that the sources make today.

    python -m tools.compare area boards      make compare ARGS='area boards'
    python -m tools.compare                  all records of hardware

It needs no tool for synthesis. The pages of the records then tell what it has found.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from amaranth.hdl import UnusedElaboratable

from tools import area, board_builds, results, sdram, wrappers
from weft.bench.measure import preset_digests
from weft.boards.presets import PRESETS
from weft.boards.toolchain import VERSIONS

__all__ = ["TODAY", "compared", "main"]

# For each record, yields the name of each design of today, and a function for its digests.
Designs = Iterator[tuple[str, Callable[[], dict[str, str]]]]


def _presets() -> Designs:
    for name, preset in PRESETS.items():
        yield name, lambda preset=preset: preset_digests(preset)


TODAY: Mapping[str, Callable[[], Designs]] = {
    "area": area.designs, "bench": _presets, "boards": board_builds.designs,
    "gowin-boards": board_builds.gowin_designs, "language-boards": board_builds.language_designs,
    "microgpt-boards": board_builds.microgpt_designs,
    "fast-boards": board_builds.fast_designs,
    "sdram": sdram.designs, "wrappers": wrappers.designs,
}


def compared(record: dict, today: Designs, say=lambda text: None) -> dict:
    """What differs between a record and the designs of today, as names of the designs.

    ``designs`` and ``conditions`` have changed, ``gone`` are no longer made, and the record has no
    digests of the ones in ``unknown``. ``tools`` have other versions today.
    """
    recorded = record["designs"]
    found = {"designs": [], "conditions": [], "gone": dict.fromkeys(recorded), "unknown": []}
    for name, digests in today:
        if name not in recorded:
            found["unknown"].append(name)
            continue
        found["gone"].pop(name, None)
        new, changed = digests(), []
        for kind, what in (("design", "designs"), ("conditions", "conditions")):
            if new[kind] != recorded[name][kind]:
                found[what].append(name)
                changed.append(what)
        say(f"{name}: {'other ' + ' and '.join(changed) if changed else 'the same'}")
    found["gone"] = [*found["gone"]]
    found["tools"] = [
        f"{name} {version}" for name, version in VERSIONS.items()
        if record["tools"].get(name) != version
    ]
    return found


def main(names: list[str], root: Path = results.ROOT) -> int:
    """Compare the records; the exit code."""
    for name in names:
        if name not in TODAY:
            print(f"a record to compare must be one of {', '.join(TODAY)}, not {name}",
                  file=sys.stderr)
            return 2
    # Some components are constructed for their shapes only, or their names.
    warnings.simplefilter("ignore", UnusedElaboratable)
    records = {name: results.load(name, root) for name in names or TODAY}
    for name, record in records.items():
        if "designs" not in record:
            text = f"{name} has no digests of its designs; measure it again: {record['command']}"
            print(text, file=sys.stderr)
    for name, record in records.items():
        if "designs" in record:
            # Before the work: the sources may change meanwhile.
            place = results.place(record["of"], root)
            record["compared"] = place | compared(
                record, TODAY[name](), lambda text, name=name: print(name, text, flush=True)
            )
            results.store(name, record, root)
    results.write(root)
    print(root / "docs" / "results.md")
    return 2 if names and any("designs" not in record for record in records.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
