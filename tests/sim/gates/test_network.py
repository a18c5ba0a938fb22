"""The test of gate-level network cores, on a core that is not synthesized: it builds fast."""

import numpy as np
import pytest
from digits import CNN
from network_cores import SIMULATED, SIMULATED_LONG

import weft
from weft.hw import export
from weft.hw.serial.accelerator import SerialAccelerator
from weft.sim.gates import GateSim, GateSimError, build_model, check_network

DIVISOR = 4
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model():
    """The program of the simulation."""
    text = export.to_verilog(SerialAccelerator(SIMULATED, divisor=DIVISOR), name="gates")
    # BASE is 0, so comparisons with it are constant.
    return build_model("network", f"// verilator lint_off UNSIGNED\n{text}")


@pytest.fixture
def gates(model):
    with GateSim(model, divisor=DIVISOR, seed=1) as gates:
        yield gates


@pytest.fixture(scope="module")
def program():
    return weft.load(CNN).compile(SIMULATED)


def test_the_result_equals_golden(gates, program):
    said = []
    done = check_network(gates, program, seed=1, say=said.append)
    macs = sum(layer.macs for layer in program.layers)
    assert (done.jobs, done.macs, done.results) == (program.jobs, macs, 10)
    assert [line.partition(",")[0] for line in said] == [
        "registers describe the core; the lists are loaded",
        "digits_cnn: the result equals golden",
    ]
    assert gates.sent > sum(len(segment.run) for segment in program.segments)


def test_a_different_result_is_found(gates, program, monkeypatch):
    class Other:
        """A golden model with another result in one value."""

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def __call__(self, x):
            with real("golden") as session:
                y = session(x)
            return y + np.eye(1, y.size, 3, dtype=y.dtype).reshape(y.shape)

    real = program.open
    monkeypatch.setattr(
        type(program), "open", lambda self, runner: Other() if runner == "golden" else real(runner)
    )
    with pytest.raises(GateSimError, match="digits_cnn: 1 of 10 values of the result differ"):
        check_network(gates, program, seed=1)


def test_another_core_is_found(gates):
    other = weft.load(CNN).compile(SIMULATED_LONG[1])
    with pytest.raises(GateSimError, match="^the network core must be 4x4x4"):
        check_network(gates, other, seed=1)
