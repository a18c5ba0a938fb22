"""The steps of a point, as functions of values that an engine runs."""

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.boards.toolchain import Toolchain
from weft.explore.flow import COMMAND, FILES
from weft.explore.points import PACKED, Point, PointOutcome, versions
from weft.sim.cache import folder
from weft.tasks.engine import Task
from weft.tasks.limits import RunLimits
from weft.tasks.program import StepResult, run_program

__all__ = ["PointSteps"]


@dataclass(frozen=True)
class PointSteps:
    """How the steps run; the work of an engine (`weft.tasks.engine.Work`).

    Attributes
    ----------
    limits : RunLimits
    command : sequence of str
        The program of a step, as `weft.explore.flow` describes it.
    """

    limits: RunLimits = RunLimits()
    command: Sequence[str] = COMMAND

    def task(self, point: Point) -> Task:
        """Place and route a point, or pack it; its design is synthesized once for all seeds."""
        netlist = Task(f"synthesize-{point.design}", self.synthesize, (point,))
        function = self.pack if point.seed == PACKED else self.place
        return Task(f"{function.__name__}-{point.key}", function, (netlist, point))

    def failed(self, detail: str) -> StepResult:
        """The result of a point whose worker failed or was lost."""
        return StepResult(PointOutcome(failure="crash", detail=detail))

    def versions(self) -> dict[str, str]:
        """The versions of Weft and of the tools in this process."""
        return versions()

    def set_up(self) -> None:
        """Install the tools on this machine, if needed; raises ToolchainError."""
        Toolchain(folder(), say=lambda text: None).set_up()

    def synthesize(self, point: Point, stopped: Callable[[], bool] = lambda: False) -> StepResult:
        """The netlist of a point; it is the same for all seeds."""
        return self._run("synthesize", point, {}, stopped)

    def place(
        self, netlist: StepResult, point: Point, stopped: Callable[[], bool] = lambda: False
    ) -> StepResult:
        """Place and route the netlist; a failed synthesis is the outcome of each seed."""
        return self._after(netlist, "place", point, stopped)

    def pack(
        self, netlist: StepResult, point: Point, stopped: Callable[[], bool] = lambda: False
    ) -> StepResult:
        """Pack the netlist; a failed synthesis is the outcome."""
        return self._after(netlist, "pack", point, stopped)

    def _after(self, netlist, step, point, stopped):
        """The result of a step after the synthesis."""
        if netlist.outcome.failure:
            return netlist
        made = self._run(step, point, netlist.files, stopped)
        seconds = netlist.outcome.seconds | made.outcome.seconds
        return StepResult(PointOutcome(**vars(made.outcome) | {"seconds": seconds}), made.files)

    def _run(self, step, point, files, stopped):
        text = json.dumps(point.to_json()).encode()
        return run_program(
            [*self.command, step], files | {"point.json": zlib.compress(text)}, PointOutcome,
            place="explore", title=step, limits=self.limits, stopped=stopped,
            outputs=lambda outcome: FILES[step] if outcome.done else (),
        )
