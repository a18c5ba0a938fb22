"""Predicted cycles of equal products, with the driver's commands; fast for any size."""

from weft.commands import JobFlag
from weft.config import Config
from weft.cycles.model import Model
from weft.cycles.repetition import repeat
from weft.host.planner import Planner

__all__ = ["product_cycles"]


def product_cycles(config: Config, m: int, k: int, n: int, flags: JobFlag, counts: list[int]):
    """[(cycles, cold)] for each of the increasing numbers of products in ``counts``.

    Equal to `weft.cycles.predict` of the commands. ``flags`` of the jobs choose the type of the
    results; the sums start from 0.
    """
    planner, predictions, done = Planner(config), [], 0
    product = _ProductCommands(config, planner.plan(m, n, k, flags=flags).nonblocking)
    for count in counts:
        for _ in range(done, count):
            product.run(planner.plan(m, n, k, flags=flags))
        predictions.append((product.model.cycles, product.model.cold))
        done = count
    return predictions


class _Loop:
    """A loop of a plan, with the interface that `repeat` needs."""

    def __init__(self, plan, axis):
        self._plan = plan
        self._axis = axis

    def key(self):
        return self._plan.key(self._axis)

    def limit(self, index):
        return self._plan.limit(self._axis, index)


class _ProductCommands:
    """Equal products, one after another.

    An inner loop is not simulated again if it starts in the same state as before, with all times
    relative to its start; the stored result is used instead.
    """

    def __init__(self, config, nonblocking):
        self.model = Model(config, nonblocking)
        self._results = {}

    def run(self, plan):
        self._loop(plan, ())
        self.model.finish()

    def _loop(self, plan, index):
        """Send the commands of all steps whose indices start with ``index``."""
        axis = len(index)
        last = len(plan.axes[axis]) - 1

        def step(n):
            if axis < len(plan.axes) - 1:
                self._inner(plan, (*index, n))
            else:
                for command in plan.step(*index, n).commands:
                    self.model.issue(command)

        step(0)
        rest, loop = plan.rest(axis), _Loop(plan, axis)
        repeat(self.model, range(1, last), step, tail=rest, plan=loop)
        if last:
            step(last)

    def _inner(self, plan, index):
        model = self.model
        if not plan.restarts(index):
            self._loop(plan, index)
            return
        outer = zip(index, plan.axes[: len(index)], strict=True)
        position = [(n == 0, n == len(blocks) - 1) for n, blocks in outer]
        start, *clocks = model.clocks()
        key = (
            *position, plan.key(len(index) - 1), model.key(), *(clock - start for clock in clocks)
        )
        totals, minimum = list(model.totals), model.slack.minimum
        if key in self._results:
            time, model_state, plan_state, added, added_minimum = self._results[key]
            model.restore(model_state, start - time)
            plan.restore(plan_state, index)
            for n, more in enumerate(added):
                model.totals[n] += more
            model.slack.merge(added_minimum)
            return
        model.slack.reset()
        self._loop(plan, index)
        added = [now - then for now, then in zip(model.totals, totals, strict=True)]
        added_minimum = model.slack.minimum
        self._results[key] = start, model.save(), plan.save(index), added, added_minimum
        model.slack.merge(minimum)
