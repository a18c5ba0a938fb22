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

    Two iterations are alike if each station has the same times, relative to a time of its own.
    Then the work between them, a period, is repeated from there on, each station in its own
    interval: for ever if the intervals are equal; else for as long as no station waits for one of
    another interval, which the margins say. So whole periods are added up instead of computed.

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
    before, count, done = margins.least, len(items), 0
    seen, past = {}, []
    while done < count:
        margins.reset()
        if count - done > 1:
            key = (stations.key(), plan.key() if plan else None)
            clocks, totals = stations.clocks(), list(stations.totals)
            if key in seen:
                since = past[seen[key]:]
                period = len(since)
                most = (count - done) // period - rest
                if plan and most > 0:
                    most = min(most, plan.limit(items[done]) // period)
                intervals = list(map(int.__sub__, clocks, since[0][0]))
                least = [min(each) for each in zip(*(entry[2] for entry in since), strict=True)]
                drifts = _drifts(intervals, pace * period)
                most = min(most, *map(_periods, least, drifts))
                if most > 0:
                    stations.advance(*(most * interval for interval in intervals))
                    for n, total in enumerate(since[0][1]):
                        stations.totals[n] += most * (totals[n] - total)
                    margins.merge(
                        margin if margin < 0 else margin - most * max(0, drift)
                        for margin, drift in zip(least, drifts, strict=True)
                    )
                    before = list(map(min, before, margins.least))
                    done += most * period
                    seen, past = {}, []
                    continue
            seen[key] = len(past)
        else:
            clocks, totals = (), ()
        step(items[done])
        done += 1
        past.append((clocks, totals, margins.least))
        before = list(map(min, before, margins.least))
    margins.least = before


def _drifts(intervals, pace):
    """For each link what its first station's interval is longer than its second station's."""
    ahead = [intervals[LOADER] + pace, *intervals[1:]]
    return [
        (ahead if link == LOADER_TO_ARRAY else intervals)[first] - intervals[second]
        for link, (first, second) in enumerate(LINKS)
    ]


def _periods(margin, drift):
    """The periods after which a link's waits are still what they are."""
    if margin < 0:
        return 0 if drift else UNLIMITED
    return margin // drift if drift > 0 else UNLIMITED
