"""The result of a regression: counts, each failure with the command that repeats it, and JSON."""

import dataclasses
import json
import shlex
import zlib
from collections import Counter
from pathlib import Path

from weft.files import write_bytes, write_text

__all__ = ["Regression", "repeat_command"]


def repeat_command(case, file: str | None) -> str:
    """The command that repeats a case alone; ``file`` has the Config if it is not drawn."""
    words = ["weft", "regress", "--only", str(case)]
    if file is not None:
        words += ["--config", file]
    if case.tests:
        words += ["--tests", *case.tests]
    return shlex.join(words)


class Regression:
    """The outcomes of cases, as they arrive.

    Parameters
    ----------
    cases : list of Case
    file : str, optional
        Has the Config of the cases if it is not drawn.

    Attributes
    ----------
    status : int
        Exit code: 1 if a case failed, none was finished, or one did not run that no other process
        is known to run.
    """

    def __init__(self, cases, file: str | None = None):
        self._cases, self._file = cases, file
        self._found = {}  # case -> outcome, whether the store had it
        self._left = {}  # case -> the process that claims it
        self._logs = {}

    def add(self, case, outcome, known: bool, log: bytes | None) -> None:
        """Keep the outcome of a case, and its compressed log."""
        self._found[case] = outcome, known
        if log is not None:
            self._logs[case] = log

    def leave(self, case, other) -> None:
        """Keep the process that a case is left to, a `weft.tasks.store.Claimant`."""
        self._left[case] = other.describe(), other.alive

    @property
    def status(self) -> int:
        unknown = [case for case in self._not_run() if not self._left.get(case, ("", False))[1]]
        return int(not self._found or bool(self._failures()) or bool(unknown))

    def save_logs(self, say) -> None:
        """Write the logs of failed cases into Weft's build folder."""
        from weft.sim.cache import folder

        for case, log in self._logs.items():
            path = folder() / "regress" / f"{str(case).replace('/', '-')}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, zlib.decompress(log))
            say(f"{case}: test.log is {path}")

    def write(self, path: Path) -> None:
        """Write all cases as JSON."""
        from weft.regress.case import versions

        counts = Counter(self._state(case) for case in self._cases)
        values = {
            "versions": versions(),
            **{name: counts[name] for name in ("passed", "failed", "not run")},
            "cases": [self._values(case) for case in self._cases],
        }
        write_text(path, json.dumps(values, indent=1) + "\n")

    def print(self) -> None:
        """Print the failures and the table."""
        for case, outcome in self._failures().items():
            print(f"\nFAILED  {case}  {outcome.failure}\n{case.config}\n{outcome.detail}")
            print(f"repeat: {repeat_command(case, self._file)}")
        self._table()
        reasons = Counter(map(self._reason, self._not_run()))
        for reason, count in reasons.items():
            print(f"{count} of {len(self._cases)} cases did not run: {reason}")
        if reasons:
            print("the same command continues")

    def _failures(self):
        return {case: found for case, (found, _) in self._found.items() if not found.done}

    def _not_run(self):
        return [case for case in self._cases if case not in self._found]

    def _reason(self, case):
        """Why a case did not run."""
        return self._left.get(case, ("the command ended before their start",))[0]

    def _state(self, case):
        if case not in self._found:
            return "not run"
        return "passed" if self._found[case][0].done else "failed"

    def _values(self, case):
        values = {
            "case": str(case), **case.to_json(), "result": self._state(case),
            "repeat": repeat_command(case, self._file),
        }
        if case in self._found:
            outcome, known = self._found[case]
            return values | {"outcome": dataclasses.asdict(outcome), "known": known}
        return values | {"reason": self._reason(case)}

    def _table(self):
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        columns = "check", "cases", "passed", "failed", "not run", "known", "tests", "cycles", "s"
        for name in columns:
            table.add_column(name, justify="left" if name == "check" else "right")
        for check in dict.fromkeys(case.check for case in self._cases):
            cases = [case for case in self._cases if case.check == check]
            states = Counter(map(self._state, cases))
            found = [self._found[case] for case in cases if case in self._found]
            table.add_row(
                check, str(len(cases)),
                *(str(states[name]) for name in ("passed", "failed", "not run")),
                str(sum(known for _, known in found)),
                *(f"{sum(getattr(one, name) for one, _ in found):,.0f}"
                  for name in ("tests", "cycles", "seconds")),
            )
        Console().print(table)
