"""Write ``docs/proofs.md``: which rules of buses are proven of which cores, and the bugs they see.

    python tools/proofs.py

Fails where a rule is not proven, a cover is not reached, or a sown bug is not found.
"""

import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from amaranth.hdl import UnusedElaboratable

from weft.sim.formal.bench import prove
from weft.sim.formal.bugs import BUGS, sown
from weft.sim.formal.engine import REACH
from weft.sim.formal.proofs import PROOFS

ROOT = Path(__file__).parent.parent
PATH = ROOT / "docs" / "proofs.md"
HEAD = """\
# Proofs

Rules of buses that the generated IP cores keep whatever comes, for ever: `make proofs` writes this
page, and fails where one is not proven. The rules are written from the standards, in
`sim/formal`; inputs may be anything but what the other side of the bus promises, and a reset may
come in any cycle. Yosys makes gates of the hardware, and property directed reachability (`pdr` of
ABC) finds an inductive invariant of so many **clauses** that implies the rule; 0 where the rule
follows at once. **Covers** are things that are seen to happen, so that no proof is of nothing.
Each rule is broken by a **bug** sown in the hardware's source, and the proof then finds how.

An IP core is proven without its `Core`: that may do anything but break its own streams' promise.
What is read of memories of 256 words or more may be anything, too. With two clocks all registers
of the core's clock, and what is in the queues between, may be anything in every cycle: this proves
the side of the bus; how the queues cross is a matter of simulation. With DMA, so may what the DMA
does: its master is proven alone.

What must be bounded in time is proven of the bus alone, before whoever answers within
two cycles; so is that registers do what the register map says, access by access, with the core
and windows answering within three.

The halves of the AXI4 master are proven alone: the reader as it is, promised what is proven of the
walker, and with addresses of nine bits, that it reads the beats of the stretches asked for and no
others; the writer with queues of two bursts of two beats, promised what is proven of the gather,
which is cut short to blocks of four beats. That a walk which is not refused stays in the address
space, and in the window, is a matter of simulation. The gather is promised a row's units one behind
the other, or cut off, and none where there was no room in the cycle before: that the scatter sees
to it is a matter of simulation. What goes through the writer's queues is proven in steps: the order
of answers; with that promised, the order of beats and of bursts; with both, that the beats on W
are those that the address on AW says.

## Of what

| design | rules | covers | clauses | s |
|---|---:|---:|---:|---:|
"""
RULES = """\

## Rules

| rule | proven of: clauses | bug that breaks it |
|---|---|---|
"""


def texts(bench):
    """What the rules of a bench say, by name."""
    return {
        prefix + name: text
        for prefix, rules in bench.rules.items() for name, text in rules.RULES.items()
    }


def proven(name):
    """What was found of a proof, and the seconds it took."""
    began, proof = time.perf_counter(), PROOFS[name]
    bench = proof.bench()
    [report] = prove(bench, only=[proof.only(bench)], cuts=proof.cuts)
    took = time.perf_counter() - began
    print(f"{name:32} {took:6.1f} s  {', '.join(report.wrong) or 'proven'}", flush=True)
    return report, took


def found(number):
    """What is wrong with a bug: nothing where it breaks its rule."""
    bug = BUGS[number]
    proof = PROOFS[bug.proof]
    try:
        with sown(bug):
            [report] = prove(proof.bench(), only=[{bug.rule}], search=REACH, cuts=proof.cuts)
        wrong = report.rules[bug.rule].answer != "reached" and "it never breaks the rule"
    except (RuntimeError, ValueError) as error:
        wrong = str(error)
    print(f"{bug.proof:32} {bug.what}: {wrong or 'found'}", flush=True)
    return wrong


def main() -> int:
    os.environ.setdefault("WEFT_BUILD", str(ROOT / "build"))
    warnings.simplefilter("ignore", UnusedElaboratable)  # benches of which texts are wanted
    designs, rules, wrong = [], {}, []
    with ProcessPoolExecutor(2) as pool:
        proofs, bugs = pool.map(proven, PROOFS), pool.map(found, range(len(BUGS)))
        for name, (report, took) in zip(PROOFS, proofs, strict=True):
            said = texts(PROOFS[name].bench())
            clauses = sum(verdict.clauses for verdict in report.rules.values())
            designs.append(
                f"| {name} | {len(report.rules)} | {len(report.covers)} | {clauses:,} |"
                f" {took:.0f} |\n"
            )
            for rule, verdict in report.rules.items():
                rules.setdefault(said[rule], ([], []))[0].append(f"{name}: {verdict.clauses}")
            wrong += [f"{name}: {one}" for one in report.wrong]
        for bug, problem in zip(BUGS, bugs, strict=True):
            said = texts(PROOFS[bug.proof].bench())[bug.rule]
            rules.setdefault(said, ([], []))[1].extend([bug.what] * (not problem))
            wrong += [f"{bug.proof}: {bug.what}: {problem}"] * bool(problem)
    wrong += [f"no bug breaks: {said}" for said, (_, bugs) in rules.items() if not bugs]
    PATH.write_text(
        HEAD + "".join(designs) + RULES + "".join(
            f"| {said} | {'; '.join(proofs)} | {'; '.join(bugs)} |\n"
            for said, (proofs, bugs) in rules.items()
        ), encoding="utf-8",
    )
    print(*wrong, f"{PATH}: {len(rules)} rules, {len(BUGS)} bugs", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
