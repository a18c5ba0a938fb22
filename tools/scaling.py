"""What more workers do to a sweep: a schedule of measured runs, and what the engine adds."""

import heapq
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.explore.findings import recorded
from weft.explore.flow import PointSteps
from weft.explore.points import Point, PointOutcome, PointStore, versions
from weft.tasks.engine import Engine, Task
from weft.tasks.program import StepResult
from weft.tasks.store import AHEAD, run_items

__all__ = ["EmptyWork", "measured", "outcomes_a_second", "sizes", "wall"]


def measured() -> list[tuple[Point, PointOutcome]]:
    """The recorded ECP5 points with both durations, by their LUTs."""
    found = [
        (point, outcome) for point, outcome in recorded("ecp5")
        if outcome.done and {"synthesis", "place"} <= outcome.seconds.keys()
    ]
    return sorted(found, key=lambda record: record[1].used["LUT"])


def wall(durations: Sequence[tuple[float, float]], seeds: int, workers: int) -> float:
    """Seconds of a sweep, scheduled as `weft.tasks.store.run_items` does it.

    Points are submitted until all workers have a task that can run: a netlist that is not made yet,
    or a point whose netlist is made.

    Parameters
    ----------
    durations : sequence of pairs of float
        Seconds of the synthesis, and of place and route, of each design.
    seeds : int
        Of each design.
    workers : int
    """
    items = iter([design for design in range(len(durations)) for _ in range(seeds)])
    ready, running, waiting = deque(), [], {}
    done, pending, now = set(), 0, 0.0
    while True:
        while len(ready) + len(running) < workers and pending < AHEAD * workers:
            design = next(items, None)
            if design is None:
                break
            pending += 1
            if design in done:
                ready.append((1, design))
                continue
            if design not in waiting:
                ready.append((0, design))
            waiting[design] = waiting.get(design, 0) + 1
        while ready and len(running) < workers:
            step, design = ready.popleft()
            heapq.heappush(running, (now + durations[design][step], step, design))
        if not running:
            return now
        now, step, design = heapq.heappop(running)
        if step:
            pending -= 1
        else:
            done.add(design)
            ready.extend([(1, design)] * waiting.pop(design))


def sizes(point: Point) -> Counter:
    """Compressed bytes of the netlist of a point, and of its layout; runs the tools."""
    steps = PointSteps()
    steps.set_up()
    netlist = steps.synthesize(point)
    placed = steps.place(netlist, point)
    total = {
        name: sum(map(len, result.files.values()))
        for name, result in (("netlist", netlist), ("layout", placed))
    }
    return Counter(total)


@dataclass(frozen=True)
class EmptyWork:
    """Work of an engine that takes no time; its result has a layout of some bytes."""

    layout: bytes

    def task(self, point: Point) -> Task:
        """A netlist and the task of a point, as `PointSteps` has them."""
        netlist = Task(f"synthesize-{point.design}", self.synthesize)
        return Task(f"place-{point.key}", self.place, (netlist,))

    def failed(self, detail: str) -> StepResult:
        """The result of a lost point."""
        return StepResult(PointOutcome(failure="crash", detail=detail))

    def versions(self) -> dict[str, str]:
        """The versions in this process."""
        return versions()

    def set_up(self) -> None:
        """Nothing is needed."""

    def synthesize(self, stopped: Callable[[], bool]) -> bytes:
        """An empty netlist."""
        return b""

    def place(self, netlist: bytes, stopped: Callable[[], bool]) -> StepResult:
        """A layout."""
        return StepResult(PointOutcome(fmax=1.0), {"layout.json": self.layout})


def outcomes_a_second(point: Point, layout: int, count: int = 300) -> float:
    """Points a second that command, scheduler, one worker and store can take, without tools."""
    waiting = iter([Point(point.device, point.config, seed) for seed in range(count)])
    work = EmptyWork(np.random.default_rng(1).bytes(layout))
    with (
        tempfile.TemporaryDirectory() as folder, Engine(work, workers=1) as engine,
        PointStore(Path(folder) / "points.sqlite") as store,
    ):
        start = time.monotonic()
        run_items(
            lambda: next(waiting, None), engine, store, seconds=60,
            on_outcome=lambda *arguments: None, on_left=lambda *arguments: None,
        )
        return count / (time.monotonic() - start)
