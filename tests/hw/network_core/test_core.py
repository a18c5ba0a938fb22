"""The network core: a whole list in Amaranth's simulator and in Icarus Verilog."""

import numpy as np
import pytest
from network_bench import amaranth_list, icarus_list
from network_core_lists import random_list
from network_cores import network_core_config
from network_duel import compare_memories

from weft.golden.network_core import run_list
from weft.network_core.descriptors import ListError, NetworkState, join

CHIP = network_core_config(
    2, 2, 4, 2, words=256, b_words=32, lines=16, read_vectors=2, multiplier="fip"
)


@pytest.fixture(scope="module")
def case():
    """A list of two layers."""
    rng = np.random.default_rng(1)
    while True:
        try:
            case = random_list(
                rng, CHIP, layers=2, resident=0, most_turns=1, most_pixels=2, most_channels=4,
                most_kernel=2,
            )
        except MemoryError:
            continue
        return case


def check(case, state, error, memory):
    assert (state, error) == (NetworkState.DONE, ListError.NONE)
    expected = case.image.memory.copy()
    run_list(CHIP, expected, case.list_address, case.log_address)
    compare_memories(CHIP, memory, expected, join(case.log_address, CHIP.banks), case.jobs)


def places(case):
    return case.image.memory.tobytes(), *(
        join(address, CHIP.banks) for address in (case.list_address, case.log_address)
    )


@pytest.mark.long
def test_a_list_in_the_simulator_of_amaranth(case):
    status = amaranth_list(CHIP, *places(case))
    assert status["job"] == case.jobs
    check(case, status["state"], status["error"], status["memory"])


@pytest.mark.long
def test_a_list_in_icarus_takes_the_same_cycles(case):
    state, error, cycles, memory = icarus_list(CHIP, *places(case))
    check(case, state, error, memory)
    assert cycles == amaranth_list(CHIP, *places(case))["cycles"]
