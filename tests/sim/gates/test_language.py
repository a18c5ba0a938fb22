"""The test of gate-level language cores: before synthesis, and on the cells of an ECP5."""

from dataclasses import replace

import numpy as np
import pytest
from language_models import pieces, random_weights

from weft.boards.devices import DEVICES
from weft.boards.toolchain import Netlist, Toolchain, digest, to_rtlil
from weft.golden.language import Shape
from weft.hw import export
from weft.hw.serial.accelerator import SerialAccelerator
from weft.language_core.config import LanguageCoreConfig
from weft.models.language.model import LanguageModel
from weft.sim.build import folder
from weft.sim.gates import GateSim, GateSimError, build_model, check_language, verilog

DIVISOR, TOKENS = 4, 3
SHAPE = Shape(dim=16, layers=1, heads=2, kv_heads=2, hidden=24, vocab=32, positions=16)
CORE = LanguageCoreConfig(words=768, groups=512, side_groups=64)


@pytest.fixture(scope="module")
def program():
    words = replace(pieces(), pieces=pieces().pieces[:32], scores=np.zeros(32, np.float32))
    return LanguageModel("tiny", "llama2.c", random_weights(SHAPE, 12), words, 16).compile()


@pytest.mark.long  # the model of the core takes 15 CPU seconds to build
def test_before_synthesis(program):
    text = export.to_verilog(SerialAccelerator(CORE, divisor=DIVISOR), name="gates")
    # BASE is 0, so comparisons with it are constant.
    model = build_model("language", f"// verilator lint_off UNSIGNED\n{text}")
    said = []
    with GateSim(model, divisor=DIVISOR, seed=1) as gates:
        done = check_language(gates, program, CORE, tokens=TOKENS, seed=2, say=said.append)
        assert (done.results, done.jobs) == (2 * TOKENS, 30 * TOKENS)
        assert said[-1].startswith("tiny: 3 tokens equal golden, in the predicted ")
        other = replace(CORE, words=784)
        with pytest.raises(GateSimError, match="^the language core must be language_1x8x16_784 "):
            check_language(gates, program, other, seed=1)


@pytest.mark.long  # minutes of synthesis and compilation
def test_the_cells_of_an_ecp5(program):
    """The link writes the model to the block RAMs; then each token comes through LUTs and DSPs."""
    core = LanguageCoreConfig(words=256, groups=96, side_groups=16, target="ecp5")
    tools = Toolchain(folder())
    tools.set_up()
    rtlil = to_rtlil(SerialAccelerator(core, divisor=DIVISOR))
    place = folder() / "boards" / f"gates-language-{digest(rtlil)}"
    netlist = Netlist.of(place) or tools.synthesize(rtlil, DEVICES["LFE5U-85F"], place)
    pins = {name: name for name in ("clk", "rst", "rx", "tx")}
    text = verilog(netlist.folder / "top.json", "ecp5", pins, seed=1)
    with GateSim(build_model("language-cells", text), divisor=DIVISOR, seed=1) as gates:
        done = check_language(gates, program, core, tokens=TOKENS, seed=2)
    assert done.results == 2 * TOKENS
