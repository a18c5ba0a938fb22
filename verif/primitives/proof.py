"""Proves in Yosys that hardware made of primitives equals its twin in every cycle."""

import subprocess

from weft.hw.export import to_verilogs
from weft.hw.primitives import Primitives
from weft.sim import tools
from weft.sim.primitives import ECP5_MODELS

__all__ = ["prove_equal"]

# Reads a design and the models of primitives, and saves both as one flat module.
PREPARE = """\
read_verilog -defer <<models
{models}
models
read_verilog <<design
{design}
design
hierarchy -check -top {name}
proc
flatten
memory_map
async2sync
opt_clean
design -stash {name}
"""
# The miter has twin and primitives, with shared inputs; `trigger` is 1 if an output differs.
MITER = """\
design -copy-from twin -as twin twin
design -copy-from primitives -as primitives primitives
miter -equiv -flatten -make_outputs twin primitives miter
hierarchy -top miter
setundef -undriven -expose
sat -verify -tempinduct -maxsteps {steps} -prove trigger 0 miter
"""


def prove_equal(component, *, steps, models=None) -> None:
    """Prove that a component has the same outputs with primitives and without them (its twin).

    The proof is by induction. The outputs are equal in the first cycles; and after some cycles with
    equal outputs, from any state, the outputs of the next cycle are equal.

    Parameters
    ----------
    component : Component
        Elaborates to primitives on the platform `weft.hw.primitives.Primitives`, and to its twin
        without a platform.
    steps : int
        Maximum length of the induction in cycles; at least the latency of the component.
    models : str, optional
        Text of Verilog models of the primitives; by default of the ECP5's.

    Raises
    ------
    AssertionError
        If Yosys finds a difference or no proof; with the end of its output.
    weft.sim.tools.ToolError
        If Yosys is missing.
    """
    models = ECP5_MODELS.read_text(encoding="utf-8") if models is None else models
    designs = {"twin": (component, None), "primitives": (component, Primitives())}
    script = "".join(
        PREPARE.format(models=models, design=design, name=name)
        for name, design in zip(designs, to_verilogs(designs), strict=True)
    )
    script += MITER.format(steps=steps)
    run = subprocess.run(
        [tools.yosys().path, "-q", "-"], input=script, capture_output=True, text=True,
    )
    if run.returncode:
        log = (run.stderr + run.stdout).strip()[-2000:]
        raise AssertionError(f"the primitives are not proven equal to their twin; Yosys: {log}")
