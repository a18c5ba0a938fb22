"""Jobs of each kind on the gates of a small network core for an ECP5."""

import numpy as np
import pytest
from gate_netlists import gate_model, synthesized
from network_core_networks import NetworkBuilder
from network_cores import network_core_config
from network_programs import jobs_of

from weft.hw.serial.accelerator import SerialAccelerator
from weft.models.network_core.compiler import compile_network_core
from weft.models.target import target_of
from weft.sim.gates import GateSim, check_network

# A tile of a kernel of 3 x 3 exceeds B.
CONFIG = network_core_config(
    2, 4, 4, 2, target="ecp5", dsp_cols=2, words=2048, b_words=16, lines=16, read_vectors=2,
    softmax=True, multiply_maps=True,
)
DIVISOR = 4
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The program of the simulation."""
    netlist = synthesized(SerialAccelerator(CONFIG, divisor=DIVISOR))
    return gate_model("network-jobs", netlist, tmp_path_factory.mktemp("gates"))


def network(kind):
    """A graph that ends with a layer of a kind."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 3, 3, 6))
    if kind == "partial":
        builder.convolution(0, 6)
    elif kind == "multiply":
        x = builder.convolution(0, 6, kernel=(1, 1), padding=(0, 0, 0, 0))
        builder.multiply(builder.convolution(x, 6, kernel=(1, 1), padding=(0, 0, 0, 0)), x)
    else:
        builder.softmax(0)
    return builder.graph()


@pytest.mark.parametrize("kind", ["partial", "multiply", "softmax"])
def test_a_layer(model, kind):
    program = compile_network_core(network(kind), target_of(CONFIG))
    jobs = jobs_of(program)
    assert any(getattr(job, kind) for job in jobs)
    with GateSim(model, divisor=DIVISOR, seed=1) as gates:
        done = check_network(gates, program, seed=1)
    assert (done.jobs, done.results) == (len(jobs), 9 * 6)
