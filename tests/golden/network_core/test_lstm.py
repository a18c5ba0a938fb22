"""The golden model of LSTM against the kernel that equals TensorFlow Lite Micro."""

import numpy as np
import pytest
from network_core_lstm import random_step, step_of
from tiers import quick, seeds

from weft.golden.network_core.lstm import lstm_step
from weft.network_core.config import LSTM_PARAMETERS


def check(step):
    hidden, cell = lstm_step(step.fed, step.own, step.cell, step.table, step.zero)
    assert cell.tolist() == step.new_cell.tolist()
    assert hidden.tolist() == step.hidden.tolist()


@pytest.mark.parametrize("seed", seeds(2, 8, 20))
def test_random_steps(seed):
    check(random_step(np.random.default_rng(seed), 200))


@pytest.mark.parametrize("gate, others, cell", [  # so that the last bit of the gate is seen
    (0, (0, -32768, 32767, 0), 0), (1, (0, 0, 0, 0), 32767), (2, (32767, -32768, 0, 0), 0),
    (3, (0, 32767, 0, 0), 32767),
])
def test_all_gates(gate, others, cell):
    """Each gate has values of all sizes: the interpolation has all its entries, and ties."""
    gates = np.unique(np.append(
        np.arange(-(1 << 15), 1 << 15, 7), [-1, 0, 1, (1 << 15) - 1, *range(-32768, 32768, 512)],
    ))
    fed = np.tile(np.int32(others), (len(gates), 1))
    fed[:, gate] = gates
    cells = np.full(len(gates), cell, np.int16)
    check(step_of(fed, np.zeros_like(fed), cells, power=-15, hidden=2**-15, zero=-128))


@pytest.mark.parametrize("power", quick(1, [-11, *range(-15, -11), -10, -9]))
def test_all_cells(power):
    """A cell that is forgotten by a factor of 1: its tanh has all places."""
    cells = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
    fed = np.tile(np.int32([-32768, 32767, 0, 32767]), (len(cells), 1))
    check(step_of(fed, np.zeros_like(fed), cells, power=power))


@pytest.mark.parametrize("word, value, text", [
    (0, -1, r"multiplier must be in 0\.\.2147483647, not -1"),
    (1, 32, r"shift must be in -31\.\.31, not 32"),
])
def test_rejects_other_scales(word, value, text):
    step = random_step(np.random.default_rng(1), 1)
    step.table[LSTM_PARAMETERS + word] = value
    with pytest.raises(ValueError, match=text):
        lstm_step(step.fed, step.own, step.cell, step.table, 0)
