"""Runs items one after another; the store keeps the outcome of each."""

from collections.abc import Callable
from typing import Any

from weft.tasks.engine import Engine
from weft.tasks.store import Claimant, ResultStore

__all__ = ["run_items"]

AHEAD = 2  # items for each worker, at most: some wait for a task in their arguments
CLAIM = 4  # time limits of a run: a task and the task in its arguments, and a retry of both


def run_items(
    next_item: Callable[[], Any | None], engine: Engine, store: ResultStore, *, seconds: float,
    on_outcome: Callable[[Any, Any, bool], None], on_left: Callable[[Any, Claimant], None],
) -> None:
    """Run all items, with a task for each worker of the engine.

    Items that wait for the same task in their arguments, as the seeds of a design do for its
    netlist, need one worker together until it ends.

    An item that the store has is not run again. One that another process runs is left to it.

    Parameters
    ----------
    next_item : callable
        The next item to run; None if there is none now. It is asked again after each outcome.
    seconds : float
        Time limit of a task, after which another process may take over a lost item.
    on_outcome : callable
        Called with each item, its outcome, and whether the store had it.
    on_left : callable
        Called at the end with each item that another process has claimed and not ended, and with
        the process.
    """
    left = []

    def submit():
        while engine.ready < engine.workers and engine.pending < AHEAD * engine.workers:
            item = next_item()
            if item is None:
                return
            outcome = store.get(item)
            if outcome is None:
                other = store.claim(item, CLAIM * seconds)
                if other is not None:
                    left.append((item, other))
                    continue
                outcome = store.get(item)  # another process may have ended it meanwhile
            if outcome is None:
                engine.submit(item)
            else:
                on_outcome(item, outcome, True)

    submit()
    for item, result in engine.results():
        on_outcome(item, store.keep(item, result), False)
        submit()
    for item, other in left:
        outcome = store.get(item)
        if outcome is None:
            on_left(item, other)
        else:
            on_outcome(item, outcome, True)
