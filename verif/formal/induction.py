"""Proofs by induction, for rules that contain their own invariant: a SAT solver, few cycles."""

import subprocess

from amaranth.back import rtlil

from weft.sim import tools

__all__ = ["prove_by_induction"]

SCRIPT = """\
read_rtlil <<design
{design}
design
hierarchy -top proof
proc
flatten
chformal -lower
async2sync
opt_clean
sat -verify -tempinduct -set-assumes -maxsteps {steps} -prove {output} 0 proof
"""
LIMIT = 1800  # seconds


def prove_by_induction(component, output, *, steps) -> None:
    """Prove that a bit is 0 in every cycle.

    It is 0 in the first cycles; and after some cycles with 0, from any state, it is 0 in the next
    one. `verif.formal.engine` finds invariants itself, but none with sums of many bits.

    Parameters
    ----------
    component : Component
        Its assumptions are statements ``Assume``.
    output : str
        An output of 1 bit.
    steps : int
        Maximum length of the induction in cycles.

    Raises
    ------
    AssertionError
        If the bit can be 1, or the induction fails; with the end of the output of Yosys.
    weft.sim.tools.ToolError
        If Yosys is missing.
    """
    design = rtlil.convert(component, name="proof", emit_src=False)
    run = subprocess.run(
        [tools.yosys().path, "-q", "-"], capture_output=True, text=True, timeout=LIMIT,
        input=SCRIPT.format(design=design, steps=steps, output=output),
    )
    if run.returncode:
        log = (run.stderr + run.stdout).strip()[-2000:]
        raise AssertionError(f"{output} is not proven to be 0 in every cycle; Yosys: {log}")
