"""The long sums have bubbles, clears and starts at any time, on every slot."""

import numpy as np
import pytest

from weft.sim.leaf import LOOPS, wanted

each = pytest.mark.parametrize("name", LOOPS)
random = pytest.mark.parametrize("name", [name for name in LOOPS if name != "bubbles"])


@each
def test_runs_are_the_same_every_time_and_others_with_every_seed(name):
    first, second = (vars(LOOPS[name]()) for _ in range(2))
    assert all(np.array_equal(first[field], second[field]) for field in first)
    assert len(np.unique(first["c"][:, 0], axis=0)) >= 100


@each
def test_a_run_leaves_nothing_to_the_next(name):
    steps = LOOPS[name]()
    assert (steps.clear | steps.start)[:, 0].all()


@random
def test_orders_come_in_every_mixture(name):
    steps = LOOPS[name]()
    orders = steps.en * 4 + steps.clear * 2 + steps.start
    for slot in range(8):
        assert np.bincount(orders[..., slot].reshape(-1), minlength=8).min() > 100


@each
def test_sums_differ_from_slot_to_slot(name):
    _, after = wanted(LOOPS[name](), flush=False)
    assert all(len(np.unique(run, axis=1).T) == 8 for run in after)


KINDS = {
    "infinities": lambda x: x & 0x7FFFFFFF == 0x7F800000,
    "NaN":        lambda x: x == 0x7FC00000,
    "-0":         lambda x: x == 0x80000000,
    "subnormal":  lambda x: (x & 0x7F800000 == 0) & (x & 0x7FFFFF != 0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["special sums", "bubbles"])
def test_bubbles_meet(name, kind):
    steps = LOOPS[name]()
    before, after = wanted(steps, flush=False)
    idle = ~steps.en & ~steps.start & ~steps.clear
    assert np.count_nonzero(KINDS[kind](before) & idle) > 10
    assert np.array_equal(before[idle], after[idle])
