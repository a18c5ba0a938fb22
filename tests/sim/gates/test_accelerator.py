"""A small synthesized accelerator for an ECP5 passes the gate test; with a broken cell it fails."""

import json

import pytest
from gate_netlists import gate_model, synthesized

from weft.config import Config
from weft.hw.serial.accelerator import SerialAccelerator
from weft.sim.gates import GateSim, GateSimError, GateTest, check_gates
from weft.sim.gates.gate_test import scenarios

CONFIG = Config(
    target="ecp5", rows=1, cols=2, depth=1, dsp_cols=1, ram_cols=1, lanes=1, jobs=2, a_words=64,
    b_words=64, bytes_in=1, bytes_out=1, requantize="none",
)
DIVISOR = 4


@pytest.fixture(scope="module")
def netlist():
    """The netlist of the accelerator."""
    return synthesized(SerialAccelerator(CONFIG, divisor=DIVISOR))


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """``start(netlist, seed)``: a simulation of its gates, at power-on."""
    folder = tmp_path_factory.mktemp("gates")
    return lambda netlist, seed: GateSim(
        gate_model("small", netlist, folder), divisor=DIVISOR, seed=seed
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_it_multiplies(netlist, start, seed):
    with start(netlist, seed) as gates:
        done = check_gates(gates, CONFIG, seed=seed)
    made = list(scenarios(CONFIG, seed))
    assert done == GateTest(
        jobs=len(made), macs=sum(work for _, _, work in made),
        results=sum(len(one.words) for _, program, _ in made for one in program.scoreboards),
    )


@pytest.mark.long
def test_it_is_not_another(netlist, start):
    other = Config.from_dict({**vars(CONFIG), "b_words": 128})
    with start(netlist, 1) as gates, pytest.raises(GateSimError, match="^the registers must desc"):
        check_gates(gates, other, seed=1)


@pytest.mark.long
def test_a_bit_of_a_lut_is_missed(netlist, start):
    """In an adder of the PE: the bit for two zeros and a carry."""
    broken = json.loads(json.dumps(netlist))
    cells = broken["modules"]["top"]["cells"]
    adder = min(name for name in cells if ".mac." in name and cells[name]["type"] == "CCU2C")
    table = cells[adder]["parameters"]["INIT1"]
    cells[adder]["parameters"]["INIT1"] = f"{int(table, 2) ^ 1 << 12:016b}"
    with start(broken, 1) as gates, pytest.raises(GateSimError, match="differ from golden: job "):
        check_gates(gates, CONFIG, seed=1)
