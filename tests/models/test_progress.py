"""The part of a compilation that is done, as its caller sees it."""

import numpy as np
import pytest
from network_core_networks import NetworkBuilder, random_divided_network
from network_cores import MICRO, ROW, SIMULATED, network_core_config

from weft.config import Config
from weft.models.errors import UnfitError
from weft.models.loading import NeuralNetwork
from weft.models.progress import Progress


def three_layers(_=None):
    builder = NetworkBuilder(np.random.default_rng(1), (1, 9, 9, 8))
    for x in range(3):
        builder.convolution(x, 8)
    return builder.graph()


def test_a_phase_has_a_share_of_what_is_left():
    parts = []
    progress = Progress(parts.append)
    progress.begin(2, 0.5)
    progress(1)
    progress(2)
    progress.begin(5, 0.2)
    progress(5)
    progress.begin(0)  # no steps
    progress.begin(1)
    progress(1)
    assert parts == pytest.approx([0.25, 0.5, 0.6, 1])
    Progress()(1)  # nobody watches


@pytest.mark.parametrize("core", [SIMULATED, ROW, MICRO, Config(requantize="tflite")])
@pytest.mark.parametrize("maker", [three_layers, random_divided_network])
def test_all_of_a_compilation_is_done_at_its_end(core, maker):
    parts = []
    NeuralNetwork(maker(np.random.default_rng(8)), b"").compile(core, watch=parts.append)
    assert len(parts) > 2 and parts == sorted(parts)
    assert parts[-1] == pytest.approx(1)


@pytest.mark.parametrize("batch", [2, 5])
def test_a_batch_has_the_jobs_that_the_model_follows(batch):
    parts = []
    NeuralNetwork(three_layers(), b"").compile(SIMULATED, batch=batch, watch=parts.append)
    assert parts[-1] == pytest.approx(1) and parts == sorted(parts)


def test_the_search_is_a_third_and_the_cycle_model_the_rest():
    """A layer has a step in both searches; then each job has one."""
    parts = []
    program = NeuralNetwork(three_layers(), b"").compile(SIMULATED, watch=parts.append)
    jobs = sum(step.jobs for step in program.segments[0].steps)
    search = [step / 18 for step in range(1, 7)]
    assert parts == pytest.approx([*search, *(
        1 / 3 + 2 / 3 * job / jobs for job in range(1, jobs + 1)
    )])


def test_a_network_that_does_not_fit_is_refused_before_the_search():
    parts = []
    builder = NetworkBuilder(np.random.default_rng(1), (1, 9, 9, 8))
    builder.convolution(0, 8)
    network = NeuralNetwork(builder.graph(), b"")
    with pytest.raises(UnfitError):
        network.compile(network_core_config(3, 4, 4, 2, words=64), watch=parts.append)
    assert not parts
