"""Writes the record of the tests marked ``long``, from the report of a run in which all passed.

    python -m tools.long_tests     the last step of make test-long
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

from tools import results

REPORT = results.ROOT / "build" / "long-tests.xml"
ABOUT = """\
The tests marked `long` compile or simulate more designs than `make test-all`:
[Testing](../testing.md) has the rule. All have passed. The seconds of each file are those of one
worker, with their set-up."""
HEADS = """\
| file | tests | s |
|---|---:|---:|
"""


def counts(report: Path) -> dict[str, tuple[int, float]]:
    """Tests that ran and seconds of each file, in a report of JUnit's form.

    Raises SystemExit if a test failed: the record says that all have passed.
    """
    found = defaultdict(lambda: (0, 0.0))
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            raise SystemExit(f"{report}: {case.get('name')} must pass; the record stays as it is")
        if case.find("skipped") is None:
            # The name of a class of tests would follow the file's; none of the long ones has one.
            file = case.get("classname").replace(".", "/") + ".py"
            tests, seconds = found[file]
            found[file] = tests + 1, seconds + float(case.get("time"))
    return dict(found)


def main() -> int:
    """Write the record; 0."""
    rows = [
        f"| `{file}` | {tests} | {seconds:.0f} |\n"
        for file, (tests, seconds) in sorted(counts(REPORT).items())
    ]
    print(results.save(
        "long-tests", [results.table(HEADS + "".join(rows))], title="Long tests",
        command="make test-long", about=ABOUT,
        of=["tools.long_tests", "weft.hw.serial.accelerator", "weft.host", "weft.kit.build",
            "weft.regress.check", "weft.sim.network_core"],
    ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
