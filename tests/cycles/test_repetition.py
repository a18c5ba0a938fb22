"""`repeat` on small pipelines: skipped periods give the same result as all steps."""

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


class Pipeline:
    """An array that sends results through a buffer, and waits for space in it."""

    def __init__(self, array, output, room, ready=0, pace=0):
        self.pace = pace
        self._intervals = array, output
        self._ready = ready
        self._array = self._output = 0
        self._freed = deque([-1] * room, room)
        self.totals = [0, 0]  # steps, and cycles in which the array waited for space
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


def both(count, *sizes):
    """A pipeline with skipped periods, and an equal one without, after ``count`` steps."""
    skipping, plain = Pipeline(*sizes), Pipeline(*sizes)
    repeat(skipping, range(count), skipping.step, interval=skipping.pace)
    for item in range(count):
        plain.step(item)
    return skipping, plain


@pytest.mark.parametrize("pipeline", [
    (5, 5, 3),
    (5, 3, 3),  # the array is slower
    (3, 5, 3),  # the output is slower
    (100, 101, 8),  # slightly: the buffer is full after about 700 steps
    (3, 5, 2, 90, 0),  # the loader is late once,
    (3, 2, 2, 90, 4),  # later each time,
    (3, 2, 2, 0, 4),
    (4, 2, 2, 900, 3),  # or earlier: after 900 steps the array does not wait for it
    (5, 6, 2, 900, 3),
])
def test_equals_all_steps(pipeline):
    for count in (0, 1, 2, 3, 30, 3000):
        skipping, plain = both(count, *pipeline)
        assert skipping.state == plain.state
    assert skipping.steps < 60


def test_equals_all_steps_in_random_pipelines():
    draw = random.Random(20262)
    steps = 0
    for _ in range(300):
        pipeline = draw.randint(1, 12), draw.randint(1, 12), draw.randint(1, 9)
        pipeline += draw.randint(0, 99), draw.randint(0, 12)
        skipping, plain = both(draw.randint(1, 400), *pipeline)
        assert skipping.state == plain.state, pipeline
        assert skipping.slack.minimum == plain.slack.minimum, pipeline
        steps += skipping.steps
    assert steps < 300 * 40


def test_computes_the_tail():
    pipeline, seen = Pipeline(5, 5, 3), []

    def step(item):
        seen.append(item)
        pipeline.step(item)

    repeat(pipeline, range(1000), step, tail=4)
    assert seen[-4:] == [996, 997, 998, 999]
    assert len(seen) < 20


class Plan:
    """A plan with equal steps up to item 500, and from item 500 on."""

    def key(self):
        return ()

    def limit(self, item):
        return 500 - item if item < 500 else 10_000


def test_skips_no_further_than_the_plan_allows():
    pipeline, seen = Pipeline(5, 5, 3), []

    def step(item):
        seen.append(item)
        pipeline.step(item)

    repeat(pipeline, range(1000), step, plan=Plan())
    assert 500 in seen
    assert pipeline.totals[0] == 1000
    assert len(seen) < 20
