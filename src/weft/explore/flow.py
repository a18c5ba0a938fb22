"""One tool run: synthesize a design, pack its netlist, or place and route it.

`PointSteps` starts a process for each run, as a task of an engine (`weft.tasks`).

    python -m weft.explore.flow synthesize|pack|place

It works in the current folder. ``point.json`` has the `Point`. ``outcome.json`` gets the fields
of a `PointOutcome`. A synthesis writes the netlist, ``top.json`` and ``cells.json``; the other
steps read both. Place and route writes ``layout.json``: block, position and kind of each placed
cell. Any other program with these files can take the place of this one.
"""

import json
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.boards.blocks import cells_by_block, packed_by_block, placed_cells
from weft.boards.designs import min_luts
from weft.boards.presets import DIVISOR
from weft.boards.toolchain import Netlist, Toolchain, ToolchainError, to_rtlil
from weft.explore.points import PACKED, Point, PointOutcome, versions
from weft.files import write_text
from weft.hw.serial.accelerator import SerialAccelerator
from weft.sim.cache import folder
from weft.tasks.engine import Task
from weft.tasks.program import RunLimits, StepResult, end_with_parent, run_program

__all__ = ["COMMAND", "FILES", "PointSteps", "classify", "main"]

COMMAND = sys.executable, "-m", "weft.explore.flow"
# By step, the files that its result consists of, besides outcome.json.
FILES = {"synthesize": ("top.json", "cells.json"), "pack": (), "place": ("layout.json",)}
_UNROUTABLE = re.compile(r"rout|legal|unable to (find|place)|failed to place", re.I)


@dataclass(frozen=True)
class PointSteps:
    """How the steps run; the work of an engine (`weft.tasks.engine.Work`).

    Attributes
    ----------
    limits : RunLimits
    command : sequence of str
        The program of a step, as this module describes it.
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
        return StepResult(replace(made.outcome, seconds=seconds), made.files)

    def _run(self, step, point, files, stopped):
        text = json.dumps(point.to_json()).encode()
        return run_program(
            [*self.command, step], files | {"point.json": zlib.compress(text)}, PointOutcome,
            subfolder="explore", title=step, limits=self.limits, stopped=stopped,
            outputs=lambda outcome: FILES[step] if outcome.done else (),
        )


class AloneTop(wiring.Component):
    """An accelerator with a serial port and nothing else; its blocks have names as on a board.

    Attributes
    ----------
    rx : In
        Serial input, 1 bit.
    tx : Out
        Serial output, 1 bit.
    """

    rx: In(1, init=1)
    tx: Out(1, init=1)

    def __init__(self, config):
        self._config = config
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.accelerator = accelerator = SerialAccelerator(self._config, divisor=DIVISOR)
        m.d.comb += [accelerator.rx.eq(self.rx), self.tx.eq(accelerator.tx)]
        return m


def classify(text: str) -> str:
    """The kind of failure, one of `weft.explore.points.FAILURES`, of a tool's error message.

    The text before the colon is ``PROGRAM failed while TASK``. It does not count, because the task
    may be routing.
    """
    if "does not fit the" in text:
        return "overfull"
    return "unroutable" if _UNROUTABLE.search(text.partition(": ")[2]) else "crash"


def main(arguments: list[str]) -> int:
    """Run a step; a failure of a tool is an outcome, too."""
    end_with_parent()
    [step] = arguments
    point = Point.from_json(json.loads(Path("point.json").read_text(encoding="utf-8")))
    try:
        outcome = {"synthesize": _synthesize, "pack": _pack, "place": _place}[step](point)
    except ToolchainError as error:
        outcome = {"failure": classify(str(error)), "detail": str(error)}
    write_text(Path("outcome.json"), json.dumps(outcome))
    return 0


def _synthesize(point):
    start = time.monotonic()
    rtlil = to_rtlil(AloneTop(point.config), reset=point.device.flow.reset)
    netlist = Toolchain(folder()).synthesize(rtlil, point.device, Path.cwd())
    # Place and route would fail. Packing still counts the cells.
    luts, capacity = min_luts(netlist.cells), point.device.capacity["LUT"]
    if luts > capacity and point.seed != PACKED:
        raise ToolchainError(
            f"the design does not fit the {point.device.name}: it needs LUT {luts:,} of"
            f" {capacity:,}"
        )
    return {"seconds": {"synthesis": time.monotonic() - start}}


def _netlist():
    netlist = Netlist.of(Path.cwd())
    if netlist is None:
        raise ToolchainError("the netlist is missing: top.json, cells.json")
    return netlist


def _pack(point):
    netlist, packed = _netlist(), Path("packed.json")
    Toolchain(folder()).pack(netlist, point.device, packed.name)
    blocks = packed_by_block(packed, point.device)
    counts = sum(blocks.values(), Counter())
    used = point.device.count_resources(netlist.cells, {
        cell: counts[name] for name, cell in point.device.flow.cells.items()
    })
    return {"used": used, "blocks": {name: dict(cells) for name, cells in blocks.items()}}


def _place(point):
    netlist = _netlist()
    routed = Path("routed.json")
    result = Toolchain(folder()).place(netlist, point.device, point.seed, layout=routed.name)
    cells = placed_cells(routed, point.device)
    layout = [[cell.block, cell.resource, cell.x, cell.y, cell.bel] for cell in cells]
    write_text(Path("layout.json"), json.dumps(layout))
    return {
        "used": result.used,
        "blocks": {name: dict(used) for name, used in cells_by_block(cells).items()},
        "fmax": round(result.fmax, 2), "path": str(result.critical_path),
        "seconds": {"place": result.seconds},
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
