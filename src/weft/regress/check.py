"""The process of one case: lint, random products, or the cocotb benches in a simulator.

    python -m weft.regress.check

It works in the current folder. ``case.json`` has the `Case`. ``outcome.json`` gets the fields of a
`CaseOutcome`, and ``test.log`` the output of the simulator. Any other program with these files can
take the place of this one.
"""

import json
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path

from weft.files import write_bytes, write_text
from weft.regress.case import LOG, Case, CaseOutcome
from weft.regress.products import run_products
from weft.sim.lint import lint
from weft.sim.runner import BenchError, run
from weft.tasks.limits import end_with_parent

__all__ = ["COMMAND", "checked", "main"]

COMMAND = sys.executable, "-m", "weft.regress.check"


def checked(case: Case, place: Path) -> CaseOutcome:
    """Run a case in a folder; any failure is an outcome."""
    start = time.monotonic()
    try:
        found = _CHECKS.get(case.check, _benches)(case, place)
    except Exception:  # of a broken design or a missing tool; the outcome has the text
        found = {"failure": "error", "detail": traceback.format_exc().strip()}
    return CaseOutcome(**found, seconds=round(time.monotonic() - start, 2))


def main() -> int:
    """Run the case of the current folder."""
    end_with_parent()
    case = Case.from_json(json.loads(Path("case.json").read_text(encoding="utf-8")))
    outcome = checked(case, Path.cwd())
    write_text(Path("outcome.json"), json.dumps(asdict(outcome)))
    return 0


def _wrong(text):
    return {"failure": "wrong", "detail": text.strip()} if text else {}


def _benches(case, place):
    try:
        outcome = run(
            case.config, case.check, build_dir=place / "bench", testcase=case.tests or None,
            seed=case.seed,
        )
    except BenchError as error:
        counts, text = _counts(error.outcome), str(error)
        for log in (place / "bench").rglob(LOG):
            write_bytes(place / LOG, log.read_bytes())
            text = text.replace(str(log), LOG)
        return counts | _wrong(text)
    return _counts(outcome)


def _counts(outcome):
    return {} if outcome is None else {"tests": outcome.tests, "cycles": outcome.cycles}


_CHECKS = {
    "lint": lambda case, place: _wrong(lint(case.config)),
    "products": lambda case, place: _wrong(run_products(case.config, case.seed)),
}


if __name__ == "__main__":
    sys.exit(main())
