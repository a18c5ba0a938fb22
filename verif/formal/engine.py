"""Proofs without a bound in time: Yosys turns a design into gates, ABC searches an invariant.

Property directed reachability (IC3) finds one of two things: clauses that hold in the initial
state, that every step preserves, and that imply the rule; or a sequence of steps that violates it.
"""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil

from verif import yosys
from weft.sim.build import folder

__all__ = ["PROVE", "REACH", "Verdict", "decide"]

# Gates, and registers with known initial values. An undriven signal may change in every cycle.
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
# Yosys runs ABC from its own script, and only on a design: any will do.
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
# Searches for a bit: to prove that it is never 1, or to reach a state in which it is 1. If the
# first search of a tuple has no verdict, the next one is tried.
PROVE = (
    "pdr -d -I {task}_{index}.pla -T {soon}",
    "dc2\nscorr\npdr -nc -d -I {task}_{index}.pla -T {seconds}",
)
REACH = ("bmc3 -F 200 -T {seconds}",)
SOON, SECONDS = 20, 1200
STATUS = {"UNSAT": "never", "SAT": "reached"}


@dataclass(frozen=True)
class Verdict:
    """Verdict on one bit of a design.

    Attributes
    ----------
    answer : str
        ``never``: it is 0 in all reachable states; ``reached``: it is 1 in at least one.
    clauses : int
        Clauses of the inductive invariant, if it is never 1.
    """

    answer: str
    clauses: int = 0


def decide(components, searches, *, seconds=SECONDS, cuts="") -> list[dict[str, Verdict]]:
    """Decide for each component whether bits of its outputs can ever be 1.

    Parameters
    ----------
    components : list of Component
        Inputs may have any value that assumptions allow.
    searches : list of dict
        For each component: the search, PROVE or REACH, by bit ``port[bit]``.
    seconds : int
        Time limit for each search; far more than any search takes.
    cuts : str
        Commands of Yosys that remove parts of the flattened designs.

    Raises
    ------
    weft.sim.tools.ToolError
        Without Yosys.
    RuntimeError
        If Yosys or ABC fails, or has no verdict in time.
    """
    root = folder() / "formal"  # Yosys may not have access to the system's temporary folder
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as name:
        path = Path(name)
        _write_gates(path, components, cuts)
        outputs = [_outputs(path / f"{task}.map") for task in range(len(components))]
        for task, bits in enumerate(searches):
            outputs[task] = {n: bit for n, bit in outputs[task].items() if bit in bits}
            if missing := bits.keys() - outputs[task].values():
                raise RuntimeError(
                    f"{', '.join(sorted(missing))}: no such output, or its value is constant"
                )
        folds = [_split(path, task) for task in range(len(components))]
        verdicts = [dict.fromkeys(bits.values()) for bits in outputs]
        for attempt in range(len(PROVE)):
            pending = [
                (task, index, bit, searches[task][bit][attempt])
                for task, bits in enumerate(outputs) for index, bit in bits.items()
                if not verdicts[task][bit] and attempt < len(searches[task][bit])
            ]
            (path / "decide.abc").write_text("".join(
                ONE.format(task=task, index=index, fold=folds[task], search=search).format(
                    task=task, index=index, seconds=seconds, soon=min(SOON, seconds),
                )
                for task, index, _, search in pending
            ), encoding="utf-8")
            if pending:
                _yosys(path, ABC)
            for task, index, bit, _ in pending:
                verdicts[task][bit] = _verdict(path / f"{task}_{index}", bit)
        undecided = [bit for found in verdicts for bit, verdict in found.items() if not verdict]
        if undecided:
            raise RuntimeError(f"{', '.join(undecided)}: no verdict after {seconds} seconds")
        return verdicts


def _write_gates(path, components, cuts):
    """Write the gates of each component to a file."""
    tasks = range(len(components))
    for task, component in enumerate(components):
        source = rtlil.convert(component, name="proof", emit_src=False)
        (path / f"{task}.il").write_text(source, encoding="utf-8")
    output = _yosys(path, "".join(GATES.format(task=task, cuts=cuts) for task in tasks))
    if not all((path / f"{task}.aig").is_file() for task in tasks):
        raise RuntimeError(f"Yosys failed to turn the design into gates: {output}")


def _yosys(path, script):
    """Run a script in a folder; returns the output. The exit status does not include ABC's."""
    (path / "script.ys").write_text(script, encoding="utf-8")
    done = yosys.run("-q", "script.ys", folder=path)
    return (done.stderr + done.stdout).strip()[-2000:]


def _split(path, task):
    """Write a file for each output; returns the command that applies constraints, if any."""
    whole = (path / f"{task}.aig").read_bytes()
    header, _, rest = whole.partition(b"\n")
    kind, *counts = header.split()
    top, inputs, registers, outputs, gates, _, constraints = map(int, [*counts, *[b"0"] * 2][:7])
    lines = rest.split(b"\n", registers + outputs)
    for index in range(outputs):
        numbers = " ".join(map(str, (top, inputs, registers, 1, gates, 0, constraints)))
        (path / f"{task}_{index}.aig").write_bytes(b"\n".join([
            kind + b" " + numbers.encode(), *lines[:registers], lines[registers + index], lines[-1],
        ]))
    return "fold\n" if constraints else ""


def _outputs(path):
    """Names of the outputs, ``port[bit]``, by their numbers."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"output (\d+) (\d+) (\S+)", line) for line in lines]
    return {int(one[1]): f"{one[3]}[{one[2]}]" for one in found if one}


def _verdict(path, bit):
    """The verdict on a bit; None if it is not decided."""
    status = path.with_suffix(".status")
    if not status.is_file():
        raise RuntimeError(f"ABC wrote no status for {bit}")
    found = re.search(r"snl_(\w+)", status.read_text(encoding="utf-8"))
    answer = STATUS.get(found and found[1])
    invariant, clauses = path.with_suffix(".pla"), 0
    if answer == "never" and invariant.is_file():
        lines = invariant.read_text(encoding="utf-8").splitlines()
        clauses = sum(bool(re.match(r"[01-]", line)) for line in lines)
    return answer and Verdict(answer, clauses)
