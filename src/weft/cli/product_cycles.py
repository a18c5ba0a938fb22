"""The cycles of products as the driver sends them, of any size at once."""

from weft.commands import JobFlag
from weft.config import Config
from weft.cycles.model import Model
from weft.cycles.repetition import repeat
from weft.host.planner import Planner

__all__ = ["product_cycles"]


def product_cycles(config: Config, m: int, k: int, n: int, flags: JobFlag, counts: list[int]):
    """(cycles, cold) of so many equal products, for each of the increasing ``counts``.

    It equals `weft.cycles.predict` of their commands. The results are what the job's ``flags`` ask
    for; the sums start from 0.
    """
    planner, found, done = Planner(config), [], 0
    product = _Product(config, planner.plan(m, n, k, flags=flags).nonblocking)
    for count in counts:
        for _ in range(done, count):
            product.run(planner.plan(m, n, k, flags=flags))
        found.append((product.model.cycles, product.model.cold))
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
        return self._plan.limit(self._axis, index)


class _Product:
    """Equal products, one after another.

    An inner loop that starts in the state that it once started in, relative to the same time, is
    not run again.
    """

    def __init__(self, config, nonblocking):
        self.model = Model(config, nonblocking)
        self._ended = {}

    def run(self, plan):
        self._loop(plan, ())
        self.model.finish()

    def _loop(self, plan, index):
        """Send the commands of all steps that start with ``index``."""
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
        place = [(n == 0, n == len(blocks) - 1) for n, blocks in outer]
        start, *clocks = model.clocks()
        key = (
            *place, plan.key(len(index) - 1), model.key(), *(clock - start for clock in clocks)
        )
        totals, minimum = list(model.totals), model.slack.minimum
        if key in self._ended:
            time, state, left, spent, least = self._ended[key]
            model.restore(state, start - time)
            plan.restore(left, index)
            for n, more in enumerate(spent):
                model.totals[n] += more
            model.slack.merge(least)
            return
        model.slack.reset()
        self._loop(plan, index)
        spent = [now - then for now, then in zip(model.totals, totals, strict=True)]
        least = model.slack.minimum
        self._ended[key] = start, model.save(), plan.save(index), spent, least
        model.slack.merge(minimum)
