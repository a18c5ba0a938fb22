"""Prove the rules of the buses of each design, and find each sown bug.

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

from tools import results
from verif.formal.bench import prove
from verif.formal.bugs import BUGS, sown
from verif.formal.engine import REACH
from verif.formal.proofs import PROOFS

ROOT = Path(__file__).parent.parent
ABOUT = """\
Each design keeps its rules without a bound in time; [Proofs](../proofs.md) explains how. Of each
design: the **rules**, the **covers**, the **clauses** of the invariants, and the seconds. Of each
rule: the designs with the clauses of their invariants, and the **bug** that violates it."""
DESIGNS = """\
| design | rules | covers | clauses | s |
|---|---:|---:|---:|---:|
"""
RULES = """\
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
    shown = RULES + "".join(
        f"| {rule} | {'; '.join(found)} | {'; '.join(violations)} |\n"
        for rule, (found, violations) in rules.items()
    )
    tables = [
        results.table(DESIGNS + "".join(designs), title="Designs"),
        results.table(shown, title="Rules"),
    ]
    page = results.save(
        "proofs", tables, title="Proofs of bus rules", command="make proofs", about=ABOUT,
        of=["tools.proofs"],
    )
    print(*problems, f"{page}: {len(rules)} rules, {len(BUGS)} bugs", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
