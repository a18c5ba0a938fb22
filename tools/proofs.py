"""Write ``docs/proofs.md``: the rules, the designs they are proven of, and the sown bugs.

    python -m tools.proofs

Fails if a rule is not proven, a cover is not reached, or a sown bug is not found.
"""

import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from amaranth.hdl import UnusedElaboratable

from verif.formal.bench import prove
from verif.formal.bugs import BUGS, sown
from verif.formal.engine import REACH
from verif.formal.proofs import PROOFS

ROOT = Path(__file__).parent.parent
PATH = ROOT / "docs" / "proofs.md"
HEAD = """\
# Proofs

The generated IP cores keep the rules of their buses under all conditions. `make proofs` proves
these rules without a bound in time, writes this page, and fails if a rule is not proven.

The rules are written from the standards, in `verif/formal`. Inputs may have any value that the
other side of the bus may drive, and a reset may come in any cycle. Yosys turns the hardware into
gates. Property directed reachability (`pdr` of ABC) then finds an inductive invariant that implies
the rule. The invariant has the listed number of **clauses**, 0 if the rule holds by construction.
**Covers** are events that must be reachable, so that no rule holds only because nothing happens.
For each rule a **bug** is sown in the hardware's source, and the proof must find a violation.

An IP core is proven without its `Core`: the ports of the core may have any value that keeps its
streams legal. A read of a memory of 256 words or more may return any word. With two clocks, all
registers of the core's clock and all words in the FIFOs between the clocks may have any value in
every cycle. This proves the bus side; the clock crossing itself is covered by simulation. With DMA,
the outputs of the DMA engine may have any value; its AXI4 master is proven alone.

Bounds in time are proven of the bus slave alone, with a register bus that answers within two
cycles. The effect of each register access is proven of the registers alone: it is the effect that
the register map states. The core and the FIFOs answer within three cycles in this proof.

The two halves of the AXI4 master are proven alone.

* The reader is proven without changes. Its proof assumes the rules that are proven of the address
  generator. One rule is proven with addresses of nine bits: the reader reads all beats of its
  requests, and no others.
* The writer is proven with queues of two bursts of two beats. Its proof assumes the rules that are
  proven of the write combiner. The blocks of the write combiner are cut to four beats.
* The write combiner assumes that the units of a row come one behind the other or end early, and
  that no unit comes if there was no space in the cycle before. Simulation covers that the result
  address generator keeps this.
* Simulation also covers that a descriptor without an error stays in the address space and in the
  window.
* The queues of the writer are proven in steps: first the order of the responses; then, assuming
  that, the order of beats and bursts; then, assuming both, that the beats on W belong to the
  address on AW.

A network core behind a bus is proven without its core, whose ports may have any value; and its
registers are proven alone, as the ones of a core for products.

Two parts of a network core are proven alone. Other blocks end jobs and loads at any time.

* The execution of lists is proven with counts of jobs and loads of three bits: no descriptor waits
  for more. A memory of 16 words has any descriptors. Simulation covers what a job waits for in a
  later turn of a loop.
  Where jobs start early, the proof assumes that the output of a job takes more than four cycles.
* The loader is proven with loads of at most three words.

The AXI4 master of a program memory is proven alone: reads and stores. Beats may belong to any
client, and the slave may respond with anything to reads. Simulation covers that each client gets
the vectors of its reads.

## Designs

| design | rules | covers | clauses | s |
|---|---:|---:|---:|---:|
"""
RULES = """\

## Rules

| rule | proven of: clauses | bug that violates it |
|---|---|---|
"""


def texts(bench):
    """The sentences of the rules of a bench, by name."""
    return {
        prefix + name: text
        for prefix, rules in bench.rules.items() for name, text in rules.RULES.items()
    }


def run_proof(name):
    """The report of a proof, and its seconds."""
    start, proof = time.perf_counter(), PROOFS[name]
    bench = proof.bench()
    [report] = prove(bench, only=[proof.only(bench)], cuts=proof.cuts)
    seconds = time.perf_counter() - start
    print(f"{name:32} {seconds:6.1f} s  {', '.join(report.failures) or 'proven'}", flush=True)
    return report, seconds


def sow_bug(number):
    """The problem with a bug, or False if it violates its rule."""
    bug = BUGS[number]
    proof = PROOFS[bug.proof]
    try:
        with sown(bug):
            [report] = prove(proof.bench(), only=[{bug.rule}], search=REACH, cuts=proof.cuts)
        problem = report.rules[bug.rule].answer != "reached" and "it never violates the rule"
    except (RuntimeError, ValueError) as error:
        problem = str(error)
    print(f"{bug.proof:32} {bug.what}: {problem or 'found'}", flush=True)
    return problem


def main() -> int:
    os.environ.setdefault("WEFT_BUILD", str(ROOT / "build"))
    warnings.simplefilter("ignore", UnusedElaboratable)  # benches made for their texts
    designs, rules, problems = [], {}, []
    with ProcessPoolExecutor(2) as pool:
        proofs, bugs = pool.map(run_proof, PROOFS), pool.map(sow_bug, range(len(BUGS)))
        for name, (report, seconds) in zip(PROOFS, proofs, strict=True):
            sentences = texts(PROOFS[name].bench())
            clauses = sum(verdict.clauses for verdict in report.rules.values())
            designs.append(
                f"| {name} | {len(report.rules)} | {len(report.covers)} | {clauses:,} |"
                f" {seconds:.0f} |\n"
            )
            for rule, verdict in report.rules.items():
                rules.setdefault(sentences[rule], ([], []))[0].append(f"{name}: {verdict.clauses}")
            problems += [f"{name}: {one}" for one in report.failures]
        for bug, problem in zip(BUGS, bugs, strict=True):
            sentence = texts(PROOFS[bug.proof].bench())[bug.rule]
            rules.setdefault(sentence, ([], []))[1].extend([bug.what] * (not problem))
            problems += [f"{bug.proof}: {bug.what}: {problem}"] * bool(problem)
    problems += [f"no bug violates: {rule}" for rule, (_, found) in rules.items() if not found]
    PATH.write_text(
        HEAD + "".join(designs) + RULES + "".join(
            f"| {rule} | {'; '.join(found)} | {'; '.join(violations)} |\n"
            for rule, (found, violations) in rules.items()
        ), encoding="utf-8",
    )
    print(*problems, f"{PATH}: {len(rules)} rules, {len(BUGS)} bugs", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
