"""A small synthesized accelerator for an ECP5 passes the gate test; with a broken cell it fails."""

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from weft.boards import netlist_passes
from weft.boards.devices import DEVICES
from weft.boards.toolchain import SYNTHESIS, to_rtlil
from weft.config import Config
from weft.hw.serial.accelerator import SerialAccelerator
from weft.sim import build, tools
from weft.sim.gates import GateSim, GateSimError, GateTest, build_model, check_gates, verilog
from weft.sim.gates.gate_test import scenarios

CONFIG = Config(
    target="ecp5", rows=1, cols=2, depth=1, dsp_cols=1, ram_cols=1, lanes=1, jobs=2, a_words=64,
    b_words=64, bytes_in=1, bytes_out=1, requantize="none",
)
DIVISOR = 4
PINS = {name: name for name in ("clk", "rst", "rx", "tx")}


@pytest.fixture(scope="module")
def netlist(tmp_path_factory):
    """The netlist of the toolchain, except for the version of Yosys."""
    script = SYNTHESIS.format(synthesis=DEVICES["LFE5U-25F"].flow.synthesis)
    build.folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build.folder()) as place:  # Yosys does not see /tmp
        folder = Path(place)
        (folder / "top.il").write_text(to_rtlil(SerialAccelerator(CONFIG, divisor=DIVISOR)))
        (folder / "top.ys").write_text(script)
        subprocess.run(
            [tools.yosys().path, "-q", "-s", "top.ys"], cwd=folder, check=True, timeout=1800,
        )
        netlist_passes.drop_unused_carries(folder / "top.json")
        return json.loads((folder / "top.json").read_text())


@pytest.fixture(scope="module")
def start(netlist, tmp_path_factory):
    """``start(netlist, seed)``: a simulation of its gates, at power-on."""
    folder = tmp_path_factory.mktemp("gates")

    def started(netlist, seed):
        (folder / "top.json").write_text(json.dumps(netlist))
        program = build_model("small", verilog(folder / "top.json", "ecp5", PINS, seed=1))
        return GateSim(program, divisor=DIVISOR, seed=seed)

    return started


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_it_multiplies(netlist, start, seed):
    with start(netlist, seed) as gates:
        done = check_gates(gates, CONFIG, seed=seed)
    made = list(scenarios(CONFIG, seed))
    assert done == GateTest(
        jobs=len(made), macs=sum(work for _, _, work in made),
        results=sum(len(one.words) for _, program, _ in made for one in program.scoreboards),
    )


@pytest.mark.slow
def test_it_is_not_another(netlist, start):
    other = Config.from_dict({**vars(CONFIG), "b_words": 128})
    with start(netlist, 1) as gates, pytest.raises(GateSimError, match="^the registers must desc"):
        check_gates(gates, other, seed=1)


@pytest.mark.slow
def test_a_bit_of_a_lut_is_missed(netlist, start):
    """In an adder of the PE: the bit for two zeros and a carry."""
    broken = json.loads(json.dumps(netlist))
    cells = broken["modules"]["top"]["cells"]
    adder = min(name for name in cells if ".mac." in name and cells[name]["type"] == "CCU2C")
    table = cells[adder]["parameters"]["INIT1"]
    cells[adder]["parameters"]["INIT1"] = f"{int(table, 2) ^ 1 << 12:016b}"
    with start(broken, 1) as gates, pytest.raises(GateSimError, match="differ from golden: job "):
        check_gates(gates, CONFIG, seed=1)
