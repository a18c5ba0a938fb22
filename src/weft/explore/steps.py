"""The two steps of a point, as functions of values: files come in and go out as bytes.

An engine can so move the files from one machine to another.
"""

import json
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.explore.flow import COMMAND, FILES
from weft.explore.limits import OverLimit, RunLimits, run_limited
from weft.explore.points import Point, PointOutcome
from weft.sim.cache import folder

__all__ = ["StepResult", "PointSteps"]


@dataclass(frozen=True)
class StepResult:
    """The result of a step.

    Attributes
    ----------
    outcome : PointOutcome
    files : dict of bytes
        By name, compressed with zlib; empty after a failure.
    """

    outcome: PointOutcome
    files: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class PointSteps:
    """How the steps run.

    Attributes
    ----------
    limits : RunLimits
    command : sequence of str
        The program of a step, as `weft.explore.flow` describes it.
    """

    limits: RunLimits = RunLimits()
    command: Sequence[str] = COMMAND

    def synthesize(self, point: Point, stopped: Callable[[], bool] = lambda: False) -> StepResult:
        """The netlist of a point; it is the same for all seeds."""
        return self._run("synthesize", point, {}, stopped)

    def place(
        self, netlist: StepResult, point: Point, stopped: Callable[[], bool] = lambda: False
    ) -> StepResult:
        """Place and route the netlist; a failed synthesis is the outcome of each seed."""
        if netlist.outcome.failure:
            return netlist
        placed = self._run("place", point, netlist.files, stopped)
        seconds = netlist.outcome.seconds | placed.outcome.seconds
        return StepResult(
            PointOutcome(**vars(placed.outcome) | {"seconds": seconds}), placed.files
        )

    def _run(self, step, point, files, stopped):
        parent = folder() / "explore"
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as name:
            place = Path(name)
            (place / "point.json").write_text(json.dumps(point.to_json()), encoding="utf-8")
            for file, data in files.items():
                (place / file).write_bytes(zlib.decompress(data))
            try:
                status, output = run_limited([*self.command, step], place, self.limits, stopped)
            except OverLimit as over:
                return StepResult(PointOutcome(failure=over.kind, detail=f"{step}: {over}"))
            try:
                text = (place / "outcome.json").read_text(encoding="utf-8")
                outcome = PointOutcome(**json.loads(text))
                names = FILES[step] if outcome.done else ()
                found = {file: zlib.compress((place / file).read_bytes(), 6) for file in names}
            except (OSError, TypeError, ValueError):
                last = output.strip().splitlines()[-1:] or ["no output"]
                detail = f"{step}: exit code {status} without a result: {last[0]}"
                return StepResult(PointOutcome(failure="crash", detail=detail))
            return StepResult(outcome, found)
