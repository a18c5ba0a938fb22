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

__all__ = ["PROVE", "REACH", "Verdict", "decide"]

# Gates and registers, each known from the start. What nothing drives may be anything, ever anew.
GATES = """\
design -reset
read_rtlil {task}.il
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
write_aiger -zinit -map {task}.map {task}.aig
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
read_aiger {task}_{index}.aig
{fold}scleanup
{search}
write_status {task}_{index}.status
"""
# How a bit is looked for: to be never 1, or to be 1 some cycles on. What the first way does not
# decide soon, the second one tries.
PROVE = (
    "pdr -d -I {task}_{index}.pla -T {soon}",
    "dc2\nscorr\npdr -nc -d -I {task}_{index}.pla -T {seconds}",
)
REACH = ("bmc3 -F 200 -T {seconds}",)
SOON, SECONDS = 20, 1200
STATUS = {"UNSAT": "never", "SAT": "reached"}


@dataclass(frozen=True)
class Verdict:
    """What was found of one bit of a design.

    Attributes
    ----------
    answer : str
        ``never``: it is 0 in every state that can be reached; ``reached``: it is 1 in some.
    clauses : int
        Of the inductive invariant, where it is never 1.
    """

    answer: str
    clauses: int = 0


def decide(components, asked, *, seconds=SECONDS, cuts="") -> list[dict[str, Verdict]]:
    """For each of ``components``: whether each bit of its outputs can ever be 1.

    Parameters
    ----------
    components : list of Component
        Inputs may be anything that assumptions leave.
    asked : list of dict
        For each of them the bits, ``port[bit]``, with PROVE or REACH, the way to look for it.
    seconds : int
        For each bit: far more than any takes.
    cuts : str
        Commands of Yosys that cut something out of the flattened designs.

    Raises
    ------
    weft.sim.tools.ToolError
        Where there is no Yosys.
    RuntimeError
        Where Yosys or ABC do not do what they are asked, or do not decide a bit in time.
    """
    root = folder() / "formal"  # not the system's folder for what passes: Yosys may not see it
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as name:
        place = Path(name)
        for task, component in enumerate(components):
            source = rtlil.convert(component, name="proof", emit_src=False)
            (place / f"{task}.il").write_text(source, encoding="utf-8")
        tasks = range(len(components))
        said = _yosys(place, "".join(GATES.format(task=task, cuts=cuts) for task in tasks))
        if not all((place / f"{task}.aig").is_file() for task in tasks):
            raise RuntimeError(f"Yosys must make gates of the design, and says: {said}")
        outputs = [
            {
                index: name for index, name in _outputs(place / f"{task}.map").items()
                if name in asked[task]
            }
            for task in tasks
        ]
        for some, names in zip(asked, outputs, strict=True):
            if lost := some.keys() - names.values():
                raise RuntimeError(f"{', '.join(sorted(lost))} must be outputs, and change")
        folds = [_split(place, task) for task in tasks]
        found = [dict.fromkeys(one.values()) for one in outputs]
        for way in range(len(PROVE)):
            left = [
                (task, index, name, asked[task][name][way])
                for task in tasks for index, name in outputs[task].items()
                if not found[task][name] and way < len(asked[task][name])
            ]
            (place / "decide.abc").write_text("".join(
                ONE.format(task=task, index=index, fold=folds[task], search=search).format(
                    task=task, index=index, seconds=seconds, soon=min(SOON, seconds),
                )
                for task, index, name, search in left
            ), encoding="utf-8")
            if left:
                _yosys(place, ABC)
            for task, index, name, _ in left:
                found[task][name] = _verdict(place / f"{task}_{index}", name)
        undecided = [name for one in found for name, verdict in one.items() if not verdict]
        if undecided:
            raise RuntimeError(
                f"{', '.join(undecided)} must be decided: neither way did, in {seconds} seconds"
            )
        return found


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


def _split(place, task):
    """Write a file for each output alone; what makes a register of constraints, if there are."""
    whole = (place / f"{task}.aig").read_bytes()
    header, _, rest = whole.partition(b"\n")
    kind, *counts = header.split()
    top, inputs, registers, outputs, gates, _, constraints = map(int, [*counts, *[b"0"] * 2][:7])
    lines = rest.split(b"\n", registers + outputs)
    for index in range(outputs):
        numbers = " ".join(map(str, (top, inputs, registers, 1, gates, 0, constraints)))
        (place / f"{task}_{index}.aig").write_bytes(b"\n".join([
            kind + b" " + numbers.encode(), *lines[:registers], lines[registers + index], lines[-1],
        ]))
    return "fold\n" if constraints else ""


def _outputs(path):
    """Names of the outputs by number: ``port[bit]``."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"output (\d+) (\d+) (\S+)", line) for line in lines]
    return {int(one[1]): f"{one[3]}[{one[2]}]" for one in found if one}


def _verdict(path, name):
    """What was found of a bit; nothing where it is not decided."""
    status = path.with_suffix(".status")
    if not status.is_file():
        raise RuntimeError(f"ABC must say what it found of {name}, and says nothing")
    found = re.search(r"snl_(\w+)", status.read_text(encoding="utf-8"))
    answer = STATUS.get(found and found[1])
    invariant, clauses = path.with_suffix(".pla"), 0
    if answer == "never" and invariant.is_file():
        lines = invariant.read_text(encoding="utf-8").splitlines()
        clauses = sum(bool(re.match(r"[01-]", line)) for line in lines)
    return answer and Verdict(answer, clauses)
