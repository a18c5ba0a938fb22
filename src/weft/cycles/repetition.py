"""Repeated work of the cycle model: finds its period, computes it once and multiplies it."""

from collections.abc import Callable, Sequence

__all__ = [
    "ARRAY", "ARRAY_TO_OUTPUT", "LOADER", "LOADER_TO_ARRAY", "OUTPUT", "OUTPUT_TO_ARRAY",
    "OUTPUT_TO_LOADER", "Slack", "repeat",
]

UNLIMITED = 1 << 200  # more than any time or count

# The stages of the pipeline. A stage compares its own times, and times of another stage only where
# it waits for that stage: over a link from the other stage (source) to itself (destination).
LOADER, ARRAY, OUTPUT = range(3)
LINKS = ((LOADER, ARRAY), (ARRAY, OUTPUT), (OUTPUT, ARRAY), (OUTPUT, LOADER))
LOADER_TO_ARRAY, ARRAY_TO_OUTPUT, OUTPUT_TO_ARRAY, OUTPUT_TO_LOADER = range(len(LINKS))


class Slack:
    """The slack of each link: the cycles by which the source was early for the destination.

    Attributes
    ----------
    minimum : list of int
        The least slack of each link since the last reset; -1 if the destination had to wait.
    """

    def __init__(self):
        self.reset()

    def reset(self):
        """Forget all slack."""
        self.minimum = [UNLIMITED] * len(LINKS)

    def later(self, link: int, source: int, destination: int) -> int:
        """The later of a time of the link's source and a time of its destination."""
        slack = destination - source
        if slack < self.minimum[link]:
            self.minimum[link] = max(slack, -1)
        return destination if slack >= 0 else source

    def merge(self, minimum):
        """Include the minimum slack of other work."""
        self.minimum = list(map(min, self.minimum, minimum))


def repeat(stages, items: Sequence, step: Callable, *, interval=0, tail=0, plan=None) -> None:
    """``for item in items: step(item)``, but skips repeated periods; the result is the same.

    Every step must do the same to ``stages``.

    A *period* is the iterations between two that start in the same state: each stage has the same
    times, relative to its own clock. In a period each stage advances by a number of cycles of its
    own. If these numbers are equal, the period repeats for ever. If one stage is slower than
    another, the period repeats until the faster stage has to wait for the slower one, which the
    minimum slack of their link tells. A stage that already waits advances with the stage that it
    waits for. So the times and totals of many periods are added without computing them.

    Parameters
    ----------
    stages
        Has `key` (the relative times, hashable), `clocks` (the clock of each stage), `advance`
        (adds cycles to the times of each stage), ``totals`` (a list of counts) and ``slack``.
    items : sequence
        Arguments of the steps.
    step : callable
    interval : int
        Cycles between the loader's times for successive steps, if these times are known in advance
        and the loader's clock does not advance.
    tail : int
        Periods at the end that must be computed.
    plan : optional
        Further state that the steps depend on: `key`, hashable, and `limit`, the maximum number of
        equal steps from an item on.
    """
    slack = stages.slack
    minimum, count, done = slack.minimum, len(items), 0
    first_seen: dict = {}  # iteration by state
    history: list = []  # start clocks, totals and slack of each iteration
    while done < count:
        clocks, totals = stages.clocks(), list(stages.totals)
        if count - done > 1:
            key = stages.key(), plan.key() if plan else None
            if key in first_seen:
                period = history[first_seen[key]:]
                limit = (count - done) // len(period) - tail
                if plan and limit > 0:
                    limit = min(limit, plan.limit(items[done]) // len(period))
                skipped, period_minimum = _skip(
                    stages, period, clocks, totals, interval * len(period), limit
                )
                if skipped:
                    minimum = list(map(min, minimum, period_minimum))
                    done += skipped * len(period)
                    first_seen, history = {}, []
                    continue
            first_seen[key] = len(history)
        slack.reset()
        step(items[done])
        done += 1
        history.append((clocks, totals, slack.minimum))
        minimum = list(map(min, minimum, slack.minimum))
    slack.minimum = minimum


def _skip(stages, period, clocks, totals, interval, limit):
    """Add a period up to ``limit`` times; returns how often, and the slack in the last one."""
    (first_clocks, first_totals, _), *_ = period
    advances = [now - then for now, then in zip(clocks, first_clocks, strict=True)]
    drifts = _drifts(advances, interval)
    minimum = [min(each) for each in zip(*(slack for _, _, slack in period), strict=True)]
    count = max(0, min(limit, *map(_max_periods, minimum, drifts)))
    if count:
        stages.advance(*(count * advance for advance in advances))
        for n, (now, then) in enumerate(zip(totals, first_totals, strict=True)):
            stages.totals[n] += count * (now - then)
    return count, [
        slack - count * max(0, drift) if 0 <= slack < UNLIMITED else slack
        for slack, drift in zip(minimum, drifts, strict=True)
    ]


def _drifts(advances, interval):
    """The slack that each link loses per period: source's advance less destination's advance."""
    known = [advances[LOADER] + interval, *advances[1:]]
    return [
        (known if link == LOADER_TO_ARRAY else advances)[source] - advances[destination]
        for link, (source, destination) in enumerate(LINKS)
    ]


def _max_periods(slack, drift):
    """Number of periods in which the waits on a link stay the same."""
    if slack < 0:
        return 0 if drift else UNLIMITED
    return slack // drift if drift > 0 else UNLIMITED
