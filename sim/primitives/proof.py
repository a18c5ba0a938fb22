"""Hardware built of primitives against its twin: equal in every cycle, as Yosys proves."""

import subprocess
from pathlib import Path

from weft.hw.export import to_verilog
from weft.hw.primitives import Primitives
from weft.sim import tools

__all__ = ["MODELS", "equal"]

MODELS = Path(__file__).with_name("ecp5.v")
# Both are one circuit with the same inputs, whose `trigger` is 1 where an output differs.
ONE = """\
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
BOTH = """\
design -copy-from gold -as gold gold
design -copy-from gate -as gate gate
miter -equiv -flatten -make_outputs gold gate miter
hierarchy -top miter
setundef -undriven -expose
sat -verify -tempinduct -maxsteps {steps} -prove trigger 0 miter
"""


def equal(component, *, steps, models=None) -> None:
    """Prove that a component of primitives and its twin show the same in every cycle.

    By induction: from any state that was right for up to ``steps`` cycles the next is right.

    Parameters
    ----------
    component : Component
    steps : int
        The latency, at least.
    models : str, optional
        Other models of the primitives, in Verilog.

    Raises
    ------
    AssertionError
        Where they differ, or that is not proven, with what Yosys says.
    weft.sim.tools.ToolError
        Where there is no Yosys.
    """
    models = MODELS.read_text(encoding="utf-8") if models is None else models
    designs = {"gold": to_verilog(component, name="gold")}
    designs["gate"] = to_verilog(component, name="gate", platform=Primitives())
    script = "".join(
        ONE.format(models=models, design=design, name=name) for name, design in designs.items()
    )
    script += BOTH.format(steps=steps)
    run = subprocess.run(
        [tools.yosys().path, "-q", "-"], input=script, capture_output=True, text=True,
    )
    if run.returncode:
        said = (run.stderr + run.stdout).strip()[-2000:]
        raise AssertionError(f"primitives must equal their twin, and Yosys says: {said}")
