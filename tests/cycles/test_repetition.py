"""Repeated steps of small pipelines: leaps over them end where all steps do."""

import random
from collections import deque

import pytest

from weft.cycles.repetition import (
    ARRAY_TO_OUTPUT,
    LOADER_TO_ARRAY,
    OUTPUT_TO_ARRAY,
    Slack,
    repeat,
)


class Toy:
    """An array that hands results to an output stage through a buffer, and waits for its room."""

    def __init__(self, array, output, room, ready=0, pace=0):
        self.pace = pace
        self._intervals = array, output
        self._ready = ready
        self._array = self._output = 0
        self._freed = deque([-1] * room, room)
        self.totals = [0, 0]  # steps, and cycles in which the array waited for room
        self.slack = Slack()
        self.steps = 0

    def key(self):
        return tuple(freed - self._output for freed in self._freed)

    def clocks(self):
        return 0, self._array, self._output

    def advance(self, loader, array, output):
        assert loader == 0
        self._array += array
        self._output += output
        self._freed.extend([freed + output for freed in self._freed])

    def step(self, item):
        array, output = self._intervals
        time = self.slack.later(
            LOADER_TO_ARRAY, self._ready + item * self.pace, self._array + array
        )
        self._array = self.slack.later(OUTPUT_TO_ARRAY, self._freed[0], time)
        self._output = self.slack.later(ARRAY_TO_OUTPUT, self._array + 7, self._output + output)
        self._freed.append(self._output)
        self.totals[0] += 1
        self.totals[1] += self._array - time
        self.steps += 1

    @property
    def state(self):
        return self._array, self._output, self._freed, self.totals


def both(count, *toy):
    """A toy that leaps, and its equal that does not, after ``count`` steps."""
    leaping, plain = Toy(*toy), Toy(*toy)
    repeat(leaping, range(count), leaping.step, interval=leaping.pace)
    for item in range(count):
        plain.step(item)
    return leaping, plain


@pytest.mark.parametrize("toy", [
    (5, 5, 3),
    (5, 3, 3),  # the array is the slower one
    (3, 5, 3),  # the output is
    (100, 101, 8),  # ... by so little that the buffer is full after some 700 steps
    (3, 5, 2, 90, 0),  # the loader is late once,
    (3, 2, 2, 90, 4),  # later each time,
    (3, 2, 2, 0, 4),
    (4, 2, 2, 900, 3),  # or less and less: after 900 steps the array no longer waits for it
    (5, 6, 2, 900, 3),
])
def test_ends_where_all_steps_do(toy):
    for count in (0, 1, 2, 3, 30, 3000):
        leaping, plain = both(count, *toy)
        assert leaping.state == plain.state
    assert leaping.steps < 60


def test_ends_where_all_steps_do_in_any_pipeline():
    draw = random.Random(20262)
    steps = 0
    for _ in range(300):
        toy = draw.randint(1, 12), draw.randint(1, 12), draw.randint(1, 9)
        toy += draw.randint(0, 99), draw.randint(0, 12)
        leaping, plain = both(draw.randint(1, 400), *toy)
        assert leaping.state == plain.state, toy
        assert leaping.slack.minimum == plain.slack.minimum, toy
        steps += leaping.steps
    assert steps < 300 * 40


def test_leaves_periods_to_be_run():
    toy, seen = Toy(5, 5, 3), []

    def step(item):
        seen.append(item)
        toy.step(item)

    repeat(toy, range(1000), step, tail=4)
    assert seen[-4:] == [996, 997, 998, 999]
    assert len(seen) < 20


class Stops:
    """Steps are alike up to item 500, and from there on."""

    def key(self):
        return ()

    def limit(self, item):
        return 500 - item if item < 500 else 10_000


def test_leaps_no_further_than_the_plan_says():
    toy, seen = Toy(5, 5, 3), []

    def step(item):
        seen.append(item)
        toy.step(item)

    repeat(toy, range(1000), step, plan=Stops())
    assert 500 in seen
    assert toy.totals[0] == 1000
    assert len(seen) < 20
