"""The cases as tasks of an engine, and the store of their outcomes."""

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.regress.case import CHECKS, LOG, Case, CaseOutcome, versions
from weft.regress.check import COMMAND
from weft.tasks.engine import Task
from weft.tasks.program import RunLimits, StepResult, run_program
from weft.tasks.store import ResultStore

__all__ = ["CaseStore", "CaseWork"]


@dataclass(frozen=True)
class CaseWork:
    """How cases run; the work of an engine (`weft.tasks.engine.Work`).

    Attributes
    ----------
    checks : sequence of str
        The checks whose programs every machine must have.
    limits : RunLimits
    command : sequence of str
        The program of a case, as `weft.regress.check` describes it.
    """

    checks: Sequence[str] = tuple(CHECKS)
    limits: RunLimits = RunLimits()
    command: Sequence[str] = COMMAND

    def task(self, case: Case) -> Task:
        """Run a case in a process of its own."""
        return Task(f"case-{case.key}", self.run, (case,))

    def failed(self, detail: str) -> StepResult:
        """The result of a case whose worker failed or was lost."""
        return StepResult(CaseOutcome(failure="crash", detail=detail))

    def versions(self) -> dict[str, str]:
        """The versions of Weft and of the simulators in this process."""
        return versions()

    def set_up(self) -> None:
        """Find the programs of the checks on this machine; raises ToolError."""
        for check in self.checks:
            for tool in CHECKS[check]:
                tool()

    def run(self, case: Case, stopped: Callable[[], bool] = lambda: False) -> StepResult:
        """The outcome of a case, with the log of the simulator if a bench failed."""
        text = json.dumps(case.to_json()).encode()
        return run_program(
            self.command, {"case.json": zlib.compress(text)}, CaseOutcome, subfolder="regress",
            title=str(case), limits=self.limits, stopped=stopped,
            outputs=lambda outcome: (LOG,) if outcome.has_log else (),
        )


class CaseStore(ResultStore):
    """The outcomes of cases; a context manager, as `weft.tasks.store.ResultStore` describes.

    The data of a case are the log of its simulator, compressed with zlib, if a bench failed.
    """

    SCHEMA = """
    CREATE TABLE IF NOT EXISTS cases (
        key TEXT PRIMARY KEY,      -- Config, check, seed, tests, versions
        design TEXT NOT NULL,      -- name of the Config in the matrix
        case_json TEXT NOT NULL,   -- JSON of the Case
        versions TEXT NOT NULL,    -- JSON: sources, packages, simulators
        failure TEXT NOT NULL,     -- empty if the case passed
        outcome TEXT NOT NULL,     -- JSON of the CaseOutcome
        log BLOB,                  -- output of the simulator, compressed
        time REAL NOT NULL         -- seconds since 1970
    );
    """
    TABLE = "cases"
    COLUMNS = "key", "design", "case_json", "versions", "failure", "outcome", "log", "time"

    def versions(self) -> dict[str, str]:
        """The versions of Weft's sources, of packages and of the simulators."""
        return versions()

    def group(self, item: Case) -> str:
        """The name of the Config in the matrix."""
        return item.design

    def item(self, values: dict[str, Any]) -> Case:
        """The case of its ``to_json``."""
        return Case.from_json(values)

    def outcome(self, values: dict[str, Any]) -> CaseOutcome:
        """The outcome with these fields."""
        return CaseOutcome(**values)

    def keep(self, item: Case, result: StepResult) -> CaseOutcome:
        """Record the result of a case if its outcome is final; its outcome."""
        if result.outcome.final:
            self.record(item, result.outcome, result.files.get(LOG))
        return result.outcome
