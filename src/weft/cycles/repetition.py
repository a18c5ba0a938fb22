"""Repeated work of the cycle model: its period is found, computed once, and multiplied."""

from collections.abc import Callable, Sequence

__all__ = [
    "ARRAY", "ARRAY_TO_OUTPUT", "LOADER", "LOADER_TO_ARRAY", "OUTPUT", "OUTPUT_TO_ARRAY",
    "OUTPUT_TO_LOADER", "Margins", "repeat",
]

UNLIMITED = 1 << 200  # more than any time or count

# The stations of the pipeline. The times of a station are compared with each other, and with times
# of another station only where that one makes it wait: over a link.
LOADER, ARRAY, OUTPUT = range(3)
LINKS = ((LOADER, ARRAY), (ARRAY, OUTPUT), (OUTPUT, ARRAY), (OUTPUT, LOADER))
LOADER_TO_ARRAY, ARRAY_TO_OUTPUT, OUTPUT_TO_ARRAY, OUTPUT_TO_LOADER = range(len(LINKS))


class Margins:
    """How far each link was from making its second station wait.

    Attributes
    ----------
    least : list of int
        For each link the least cycles by which the first station was early; -1 if it was late.
    """

    def __init__(self):
        self.reset()

    def reset(self):
        self.least = [UNLIMITED] * len(LINKS)

    def later(self, link: int, first: int, second: int) -> int:
        """The later of a time of the link's first station and one of its second station."""
        margin = second - first
        if margin < self.least[link]:
            self.least[link] = max(margin, -1)
        return second if margin >= 0 else first

    def merge(self, least):
        """Take in the margins of other work."""
        self.least = list(map(min, self.least, least))


def repeat(stations, items: Sequence, step: Callable, *, pace=0, rest=0, plan=None) -> None:
    """``for item in items: step(item)``, where each step does the same to ``stations``.

    It is exact. If each station has the same times before two iterations, relative to a time of its
    own, then the iterations between them are a period that follows itself. Each station moves on by
    an interval of its own a period. If the intervals are equal, the period follows itself for ever.
    Else it does for as long as no station comes to wait for one with a longer interval; the margins
    say for how long, and a station that waited already moved on with the one that it waited for.
    So times and totals of many periods are added without computing them.

    Parameters
    ----------
    stations
        `key` (the relative times, hashable), `clocks` (a time of each station), `advance` (adds to
        the times of each station), ``totals`` (a list of counts) and ``margins``.
    items : sequence
        What each step is called with.
    step : callable
    pace : int
        Cycles between the times that the loader gives to the array in successive steps, where the
        loader itself stands.
    rest : int
        Periods that must be computed at the end.
    plan : optional
        What else the steps depend on: `key`, hashable, and `limit`, the most steps from an item on
        that are alike.
    """
    margins = stations.margins
    outer, count, done = margins.least, len(items), 0
    seen, past = {}, []  # iterations by their state; what each one started with, and its margins
    while done < count:
        clocks, totals = stations.clocks(), list(stations.totals)
        if count - done > 1:
            key = stations.key(), plan.key() if plan else None
            if key in seen:
                period = past[seen[key]:]
                most = (count - done) // len(period) - rest
                if plan and most > 0:
                    most = min(most, plan.limit(items[done]) // len(period))
                leapt, least = _leap(stations, period, clocks, totals, pace * len(period), most)
                if leapt:
                    outer = list(map(min, outer, least))
                    done += leapt * len(period)
                    seen, past = {}, []
                    continue
            seen[key] = len(past)
        margins.reset()
        step(items[done])
        done += 1
        past.append((clocks, totals, margins.least))
        outer = list(map(min, outer, margins.least))
    margins.least = outer


def _leap(stations, period, clocks, totals, pace, most):
    """Add a period up to ``most`` times; how many times it was, and the margins in the last one."""
    (first_clocks, first_totals, _), *_ = period
    intervals = [now - then for now, then in zip(clocks, first_clocks, strict=True)]
    drifts = _drifts(intervals, pace)
    least = [min(each) for each in zip(*(margins for _, _, margins in period), strict=True)]
    times = max(0, min(most, *map(_times, least, drifts)))
    if times:
        stations.advance(*(times * interval for interval in intervals))
        for n, (now, then) in enumerate(zip(totals, first_totals, strict=True)):
            stations.totals[n] += times * (now - then)
    return times, [
        margin - times * max(0, drift) if 0 <= margin < UNLIMITED else margin
        for margin, drift in zip(least, drifts, strict=True)
    ]


def _drifts(intervals, pace):
    """For each link what its first station's interval is longer than its second station's."""
    ahead = [intervals[LOADER] + pace, *intervals[1:]]
    return [
        (ahead if link == LOADER_TO_ARRAY else intervals)[first] - intervals[second]
        for link, (first, second) in enumerate(LINKS)
    ]


def _times(margin, drift):
    """How many times a period can follow itself until a link's waits are others."""
    if margin < 0:
        return 0 if drift else UNLIMITED
    return margin // drift if drift > 0 else UNLIMITED
