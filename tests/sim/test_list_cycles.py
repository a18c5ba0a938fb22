"""The cycle model of lists against the simulated network core, for random lists."""

import numpy as np
import pytest
from network_core_lists import random_list
from network_cores import EARLY, MICRO, ROW, SIMULATED, SIMULATED_LONG, SIMULATED_SLOWLY

from weft.golden.network_core.runner import LOG_BYTES
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import join
from weft.sim.network_core import NetworkSimulation

CHIPS = [
    SIMULATED, MICRO,
    *(pytest.param(config, marks=pytest.mark.slow) for config in (ROW, EARLY, *SIMULATED_SLOWLY)),
    *(pytest.param(config, marks=pytest.mark.long) for config in SIMULATED_LONG),
]


@pytest.fixture(scope="module", params=CHIPS, ids=lambda c: f"{c.array.target}-{c.array.name}")
def core(request):
    with NetworkSimulation(request.param) as simulation:
        yield simulation


def measured(core, case):
    """The entries of the log, and the cycles of the list."""
    config, depth = core.config, core.config.array.depth
    core.write(case.image.memory.tobytes())
    first, log = (join(a, config.banks) for a in (case.list_address, case.log_address))
    outcome = core.run(first, log)
    assert outcome.finished
    entry = -(-LOG_BYTES // depth) * depth
    found = core.read()[log * depth : log * depth + entry * case.jobs]
    times = np.frombuffer(found, np.uint8).reshape(-1, entry)[:, :LOG_BYTES].copy().view("<u4")
    return tuple(map(tuple, times.tolist())), outcome.cycles


# Sizes of maps, channels and kernels: streamed loads decide the time, or the array does.
SIZES = {
    "short": dict(layers=6, most_pixels=4, most_channels=5, most_kernel=2),
    "long": dict(layers=3, most_pixels=9, most_channels=16, most_kernel=3),
    "depthwise": dict(layers=5, kind="depthwise", most_pixels=6, most_channels=32, most_kernel=3),
    "added": dict(layers=3, add=True, most_pixels=8, most_channels=12, most_kernel=2),
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_random_lists(core, sizes):
    rng = np.random.default_rng(21)
    compared = 0
    while compared < 8:
        try:
            case = random_list(rng, core.config, resident=0, **sizes)
        except MemoryError:
            continue
        compared += 1
        prediction = predict_list(
            core.config, case.descriptors, case.list_address, case.log_address
        )
        assert (prediction.jobs, prediction.cycles) == measured(core, case)
