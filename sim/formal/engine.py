"""Proofs without a bound: Yosys makes gates of a design with rules, ABC looks for an invariant.

Property directed reachability (IC3) either finds clauses that hold at the start, that every step
keeps and that imply the rule, whatever happened before, or steps that lead to where it is broken.
"""

import functools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil

from weft.sim import tools
from weft.sim.build import folder

__all__ = ["Verdict", "decide"]

# Gates and registers, each known from the start. What nothing drives may be anything, ever anew.
GATES = """\
read_rtlil proof.il
hierarchy -top proof
proc
flatten
{cuts}chformal -lower
opt -keepdc
memory_map
setundef -undriven -anyseq
async2sync
dffunmap
opt_clean
simplemap
techmap
aigmap
opt_clean
write_aiger -zinit -map proof.map proof.aig
"""
# ABC is a part of Yosys that runs in the course of its own script, on any design at all.
ABC = """\
read_verilog <<nothing
module nothing(input a, output b); assign b = !a; endmodule
nothing
simplemap
abc -script decide.abc
"""
ONE = """\
read_aiger {index}.aig
{fold}scleanup
pdr -d -I {index}.pla -T {seconds}
write_status {index}.status
"""
STATUS = {"UNSAT": "never", "SAT": "reached"}


@dataclass(frozen=True)
class Verdict:
    """What was found of one bit of a design.

    Attributes
    ----------
    answer : str
        ``never``: it is 0 in every state that can be reached; ``reached``: it is 1 in some;
        ``unknown``: not found in time.
    clauses : int
        Of the inductive invariant, where it is never 1.
    """

    answer: str
    clauses: int = 0


def decide(component, *, only=None, seconds=60, cuts="") -> dict[str, Verdict]:
    """Whether each bit of the outputs of ``component`` can ever be 1.

    Parameters
    ----------
    component : Component
        Its inputs may be anything that its assumptions leave.
    only : collection of str, optional
        The bits, ``port[bit]``, where not all.
    seconds : int
        For each bit.
    cuts : str
        Commands of Yosys that cut something out of the flattened design.

    Raises
    ------
    weft.sim.tools.ToolError
        Where there is no Yosys.
    RuntimeError
        Where Yosys or ABC do not do what they are asked.
    """
    source = rtlil.convert(component, name="proof", emit_src=False)
    root = folder() / "formal"  # not the system's folder for what passes: Yosys may not see it
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as name:
        place = Path(name)
        (place / "proof.il").write_text(source, encoding="utf-8")
        said = _yosys(place, GATES.format(cuts=cuts))
        if not (place / "proof.aig").is_file():
            raise RuntimeError(f"Yosys must make gates of the design, and says: {said}")
        outputs = {
            index: name for index, name in _outputs(place).items()
            if only is None or name in only
        }
        fold = _split(place)
        (place / "decide.abc").write_text("".join(
            ONE.format(fold=fold, index=index, seconds=seconds) for index in outputs
        ), encoding="utf-8")
        _yosys(place, ABC)
        return {name: _verdict(place, index, name) for index, name in outputs.items()}


@functools.cache
def _program():
    return tools.yosys().path


def _yosys(place, script):
    """What Yosys says of a script in a folder. Its status tells nothing of what ABC did."""
    (place / "script.ys").write_text(script, encoding="utf-8")
    run = subprocess.run(
        [_program(), "-q", "script.ys"], cwd=place, capture_output=True, text=True,
        stdin=subprocess.DEVNULL,
    )
    return (run.stderr + run.stdout).strip()[-2000:]


def _split(place):
    """Write a file of its own for each output; the command that makes constraints a register."""
    whole = (place / "proof.aig").read_bytes()
    header, _, rest = whole.partition(b"\n")
    kind, top, inputs, registers, outputs, gates, _, constraints, *_ = [
        *header.split(), *[b"0"] * 4
    ]
    lines = rest.split(b"\n", int(registers) + int(outputs))
    first, found, tail = (
        lines[:int(registers)], lines[int(registers):-1], lines[-1],
    )
    for index, output in enumerate(found):
        numbers = [kind, top, inputs, registers, b"1", gates, b"0", constraints]
        (place / f"{index}.aig").write_bytes(
            b"\n".join([b" ".join(numbers), *first, output, tail])
        )
    return "fold\n" if int(constraints) else ""


def _outputs(place):
    """Names of the outputs by number: ``port[bit]``."""
    lines = (place / "proof.map").read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"output (\d+) (\d+) (\S+)", line) for line in lines]
    return {int(one[1]): f"{one[3]}[{one[2]}]" for one in found if one}


def _verdict(place, index, name):
    status = place / f"{index}.status"
    if not status.is_file():
        raise RuntimeError(f"ABC must say what it found of {name}, and says nothing")
    answer = re.search(r"snl_(\w+)", status.read_text(encoding="utf-8"))
    answer = STATUS.get(answer[1] if answer else None, "unknown")
    invariant, clauses = place / f"{index}.pla", 0
    if answer == "never" and invariant.is_file():
        lines = invariant.read_text(encoding="utf-8").splitlines()
        clauses = sum(bool(re.match(r"[01-]", line)) for line in lines)
    return Verdict(answer, clauses)
