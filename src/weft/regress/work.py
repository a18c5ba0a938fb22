"""The cases as tasks of an engine."""

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.regress.case import CHECKS, LOG, Case, CaseOutcome, versions
from weft.regress.check import COMMAND
from weft.tasks.engine import Task
from weft.tasks.limits import RunLimits
from weft.tasks.program import StepResult, run_program

__all__ = ["CaseWork"]


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
            self.command, {"case.json": zlib.compress(text)}, CaseOutcome, place="regress",
            title=str(case), limits=self.limits, stopped=stopped,
            outputs=lambda outcome: (LOG,) if outcome.has_log else (),
        )
