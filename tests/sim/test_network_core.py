"""Lists on the simulated core for networks: every byte of the memory equals the golden model's."""


import numpy as np
import pytest
from chip_lists import random_list

from weft.chip.addresses import join
from weft.chip.config import ChipConfig
from weft.chip.states import NetworkState
from weft.config import Config
from weft.golden.chip import run_list
from weft.golden.chip.runner import LOG_BYTES
from weft.sim.network_core import NetworkSimulation


def chip(rows, cols, depth, lanes, *, read_vectors, **more):
    core = Config(
        rows=rows, cols=cols, depth=depth, lanes=lanes, activation="none",
        **{"requantize": "tflite", **more},
    )
    return ChipConfig(
        core=core, words=2048, b_words=256, lines=64, read_vectors=read_vectors
    )


CHIPS = [
    chip(3, 4, 4, 2, read_vectors=2, multiplier="fip"),
    *(pytest.param(config, marks=pytest.mark.slow) for config in (
        chip(2, 2, 2, 2, read_vectors=2),
        chip(3, 2, 4, 1, read_vectors=1, scale_cycles=4),
        chip(4, 4, 4, 4, read_vectors=4, target="ecp5", requantize="single"),
        chip(1, 8, 4, 2, read_vectors=4, hop=2),
        chip(8, 8, 8, 8, read_vectors=4, target="ecp5", dsp_cols=2),
    )),
]


@pytest.fixture(scope="module", params=CHIPS, ids=lambda c: f"{c.core.target}-{c.core.name}")
def core(request):
    with NetworkSimulation(request.param) as simulation:
        yield simulation


def lists(chip, count, seed, **options):
    """Random lists that fit the memory."""
    rng = np.random.default_rng(seed)
    while count:
        try:
            case = random_list(rng, chip, resident=0, **options)
        except MemoryError:
            continue
        yield case
        count -= 1


def place(chip, case):
    """The vectors of the list and of its log, relative to the base."""
    return join(case.list_address, chip.banks), join(case.log_address, chip.banks)


def check(core, case, outcome, expected_outcome, expected):
    """The outcome of a list and the memory equal those of the golden model; the log is in order."""
    chip, depth = core.chip, core.chip.core.depth
    assert outcome.finished
    assert (outcome.error, outcome.job) == (expected_outcome.error, expected_outcome.jobs)
    found = np.frombuffer(core.read(), np.uint8).copy()
    first = (place(chip, case)[1] + case.base * chip.banks) * depth
    entry = -(-LOG_BYTES // depth) * depth
    log = slice(first, first + entry * expected_outcome.jobs)
    times = found[log].reshape(-1, entry)[:, :LOG_BYTES].copy().view("<u4").reshape(-1)
    assert (np.diff(times.astype(int), prepend=0) >= 0).all()
    assert (times <= outcome.cycles).all()
    found[log] = expected[log]
    assert np.flatnonzero(found != expected).tolist() == []


def execute(core, case, **options):
    """Execute a list on the core and in the golden model, and compare them."""
    chip, memory = core.chip, case.image.memory.copy()
    core.write(case.image.memory.tobytes())
    outcome = core.run(*place(chip, case), base=case.base, limit=case.limit, **options)
    expected = run_list(
        chip, memory, case.list_address, case.log_address, base=case.base, limit=case.limit
    )
    check(core, case, outcome, expected, memory)
    return outcome


def test_random_lists(core):
    for case in lists(core.chip, 20, seed=1):
        outcome = execute(core, case)
        assert outcome.state == NetworkState.DONE
        assert outcome.job == case.jobs
