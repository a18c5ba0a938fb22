"""Cycles of SOFTMAX: the ones of the documentation, and jobs whose pixels are skipped."""

import pytest
from network_core_jobs import MapPlace
from network_core_softmax import softmax_job, softmax_rows
from network_cores import LARGE, ROW
from numpy import int8, zeros

from weft.network_core.cycles import softmax_cycles
from weft.network_core.cycles.memory import SidePortTimes
from weft.network_core.cycles.softmax import SoftmaxLayer


@pytest.mark.parametrize("columns, cycles", [
    # The reciprocal, the beginning of two passes, 50 for each vector, 3 for each value. The first
    # read of the third pass comes beside the reciprocal.
    (1, 96 + 2 + 50 + 3 - 10), (8, 96 + 2 + 50 + 3 * 8 - 10), (10, 218), (1000, 9338),
])
def test_cycles_of_a_pixel(columns, cycles):
    assert softmax_cycles(LARGE, columns, 1) == cycles
    assert softmax_cycles(LARGE, columns, 7) == 7 * cycles


@pytest.mark.parametrize("config", [LARGE, ROW], ids=lambda config: config.array.name)
@pytest.mark.parametrize("pixels", [1, 2, 9])
def test_a_job_alone(config, pixels):
    """Its last store comes in the last cycle of its last pixel, skipped or not."""
    rows = softmax_rows(zeros((1, pixels, 5), int8), 0.1)
    place = MapPlace(0, 3, 3 * pixels)
    job = softmax_job(config, rows, place, place)
    start, cycles = 100, softmax_cycles(config, 5, pixels)
    layer, port = SoftmaxLayer(config, job), SidePortTimes(config)
    assert layer.finish(start, port) == start + cycles

    layer, port, now = SoftmaxLayer(config, job), SidePortTimes(config), start
    while not layer.ending(now):
        store, arrived = layer.stored(now), port.arrival(now)
        accepted = port.step(now, (layer.read,), store and store.bank)
        layer.step(now, accepted is not None, arrived is not None)
        now += 1
    assert now == start + cycles
