"""Runs the tests marked ``long``, and writes their record.

    python -m tools.long_tests               all: make test-long
    python -m tools.long_tests tests/kit     only those of some files, without a record

Exit code 1 if a test fails; then the record stays as it is.
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

from tools import results

ABOUT = """\
The tests marked `long` compile or simulate more designs than `make test-all`:
[Testing](../testing.md) has the rule. All have passed. The seconds of each file are those of one
worker, with their set-up."""
HEADS = """\
| file | tests | s |
|---|---:|---:|
"""


def counts(report: Path) -> dict[str, tuple[int, float]]:
    """Tests that ran and seconds of each file, in a report of JUnit's form."""
    found = defaultdict(lambda: (0, 0.0))
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is None:
            # The name of a class of tests would follow the file's; none of the long ones has one.
            file = case.get("classname").replace(".", "/") + ".py"
            tests, seconds = found[file]
            found[file] = tests + 1, seconds + float(case.get("time"))
    return dict(found)


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        status = subprocess.run([
            sys.executable, "-m", "pytest", "-n", "auto", "--maxprocesses", "8", "--dist",
            "loadfile", "--no-loadscope-reorder", "-m", "long", f"--junitxml={report}",
            "--record-durations", *arguments,
        ], cwd=results.ROOT).returncode
        if status or arguments:
            return status
        rows = [
            f"| `{file}` | {tests} | {seconds:.0f} |\n"
            for file, (tests, seconds) in sorted(counts(report).items())
        ]
    print(results.save(
        "long-tests", [results.table(HEADS + "".join(rows))], title="Long tests",
        command="make test-long", about=ABOUT,
        of=["tools.long_tests", "weft.hw.serial.accelerator", "weft.host", "weft.kit.build",
            "weft.regress.check", "weft.sim.network_core"],
    ))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
