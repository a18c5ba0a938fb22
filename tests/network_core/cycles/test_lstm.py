"""Cycles of LSTM: the ones of the documentation, and a job alone."""

import numpy as np
import pytest
from network_core_lstm import lstm_job, random_step
from network_cores import ROW, network_core_config

from weft.network_core.cycles import lstm_cycles
from weft.network_core.cycles.lstm import LstmLayer
from weft.network_core.cycles.memory import SidePortTimes


@pytest.mark.parametrize("depth, cycles", [(4, 151), (8, 111), (16, 91), (32, 91)])
def test_cycles_of_a_unit(depth, cycles):
    config = network_core_config(8, 8, depth, 4, lstm=True)
    assert lstm_cycles(config, 1) == 27 + cycles
    assert lstm_cycles(config, 7) == 27 + 7 * cycles


@pytest.mark.parametrize("config", [
    ROW, network_core_config(3, 4, 8, 1, scale_cycles=4, lstm=True),
], ids=lambda config: config.array.name)
def test_a_job_alone(config):
    """Its last store comes in the last cycle of its last unit."""
    banks = config.banks
    # The reads never wait: maps begin in banks with distances, and one unit is one vector.
    step = random_step(np.random.default_rng(1), 1)
    job = lstm_job(config, step, (0, 10 * banks, 20 * banks, 30 * banks))
    layer, port = LstmLayer(config, job), SidePortTimes(config)
    assert layer.finish(100, port) == 100 + lstm_cycles(config, 1)
    assert layer.stored(0).last
