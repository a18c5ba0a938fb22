"""Which items run at once: a task for each worker, and not many items ahead."""

import pytest
from explore_points import point

from weft.explore.points import PointStore
from weft.tasks.store import run_items


class WaitingEngine:
    """An engine of two workers, in which all netlists take for ever."""

    workers = 2

    def __init__(self):
        self.items = []

    @property
    def pending(self):
        return len(self.items)

    @property
    def ready(self):
        return len({item.design for item in self.items})

    def submit(self, item):
        self.items.append(item)

    def results(self):
        return iter(())


@pytest.mark.parametrize("rows, submitted", [
    ((2, 2, 3, 4), 3),  # two netlists
    ((2, 3, 4), 2),
    ((2, 2, 2, 2, 2, 3), 4),  # two items for each worker
])
def test_each_worker_has_a_task(tmp_path, rows, submitted):
    items = [point(rows=number, seed=seed) for seed, number in enumerate(rows, 1)]
    waiting, engine = iter(items), WaitingEngine()
    with PointStore(tmp_path / "points.sqlite") as store:
        run_items(
            lambda: next(waiting, None), engine, store, seconds=60,
            on_outcome=lambda *arguments: None, on_left=lambda *arguments: None,
        )
    assert engine.items == items[:submitted]
