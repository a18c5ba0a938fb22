"""The cycles of products as the driver sends them, of any size at once."""

from weft.commands import JobFlag
from weft.config import Config
from weft.cycles.model import Model
from weft.cycles.repetition import repeat
from weft.host.planner import Plan, Planner

__all__ = ["product_cycles"]


def product_cycles(config: Config, m: int, k: int, n: int, flags: JobFlag, counts: list[int]):
    """(cycles, cold) of so many equal products, for each of the increasing ``counts``.

    It equals `weft.cycles.predict` of their commands. The results are what the job's ``flags`` ask
    for; the sums start from 0.
    """
    model, planner = Model(config), Planner(config)
    found, done = [], 0
    for count in counts:
        for _ in range(done, count):
            _run(model, planner.plan(m, n, k, flags=flags), ())
            model.settle()
        found.append((model.cycles, model.cold))
        done = count
    return found


class _Loop:
    """A loop of a plan, as `repeat` asks for it."""

    def __init__(self, plan, axis):
        self._plan = plan
        self._axis = axis

    def key(self):
        return self._plan.key(self._axis)

    def limit(self, index):
        return self._plan.alike(self._axis, index)


def _run(model: Model, plan: Plan, index: tuple[int, ...]) -> None:
    """Send the commands of all steps that start with ``index``."""
    axis = len(index)
    if axis == len(plan.axes):
        for command in plan.step(*index).commands:
            model.take(command)
        return
    last = len(plan.axes[axis]) - 1

    def step(n):
        _run(model, plan, (*index, n))

    step(0)
    # The last period is computed: it leaves the planner in the state that it should have.
    repeat(model, range(1, last), step, rest=1, plan=_Loop(plan, axis))
    if last:
        step(last)
