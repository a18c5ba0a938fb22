"""Proves in Yosys that hardware made of primitives equals its twin in every cycle."""

import subprocess

from weft.hw.export import to_verilog
from weft.hw.primitives import Primitives
from weft.sim import tools
from weft.sim.primitives.models import ECP5_MODELS

__all__ = ["prove_equal"]

# The miter is one circuit of both, with shared inputs; its `trigger` is 1 if an output differs.
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
MITER = """\
design -copy-from twin -as twin twin
design -copy-from primitives -as primitives primitives
miter -equiv -flatten -make_outputs twin primitives miter
hierarchy -top miter
setundef -undriven -expose
sat -verify -tempinduct -maxsteps {steps} -prove trigger 0 miter
"""


def prove_equal(component, *, steps, models=None) -> None:
    """Prove that a component made of primitives and its twin have equal outputs in every cycle.

    The proof is by induction: after ``steps`` cycles with equal outputs, from any state, the
    outputs of the next cycle are equal.

    Parameters
    ----------
    component : Component
    steps : int
        At least the latency.
    models : str, optional
        Verilog models of the primitives; by default those of the ECP5.

    Raises
    ------
    AssertionError
        If they differ, or if the proof fails; with the output of Yosys.
    weft.sim.tools.ToolError
        If Yosys is missing.
    """
    models = ECP5_MODELS.read_text(encoding="utf-8") if models is None else models
    designs = {"twin": to_verilog(component, name="twin")}
    designs["primitives"] = to_verilog(component, name="primitives", platform=Primitives())
    script = "".join(
        PREPARE.format(models=models, design=design, name=name) for name, design in designs.items()
    )
    script += MITER.format(steps=steps)
    run = subprocess.run(
        [tools.yosys().path, "-q", "-"], input=script, capture_output=True, text=True,
    )
    if run.returncode:
        log = (run.stderr + run.stdout).strip()[-2000:]
        raise AssertionError(f"the primitives are not proven equal to their twin; Yosys: {log}")
