"""A stand-in for `weft.regress.check`: its outcome follows from the case, at once.

Numbers of rows choose what happens: 60 hangs, 62 ends without an outcome, 63 is wrong. An argument
is the seconds that a case takes. Each run adds a line to the file FAKE_LOG.
"""

import json
import os
import sys
import time
from pathlib import Path

HANGS, CRASHES, WRONG = 60, 62, 63


def main():
    case = json.loads(Path("case.json").read_text())
    rows = case["config"]["rows"]
    if "FAKE_LOG" in os.environ:
        with open(os.environ["FAKE_LOG"], "a") as log:
            log.write(f"{case['check']} {rows} {case['seed']} {os.getpid()}\n")
    if rows == HANGS:
        time.sleep(600)
    if rows == CRASHES:
        sys.exit("the check has a bug")
    time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
    outcome = {"tests": 3, "cycles": 1000 * case["seed"], "seconds": 0.5}
    if rows == WRONG:
        outcome |= {"failure": "wrong", "detail": "1 of 3 failed; see test.log\n  short_k: 1 != 2"}
        Path("test.log").write_text(f"log of {case['check']}")
    Path("outcome.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
