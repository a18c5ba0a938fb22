"""Tests mutants of the sources, and writes the page of results after each of them.

    make mutation ARGS='--only 10'
    make mutation ARGS='--budget 100'
    make mutation ARGS='--of hw/core.py --of hw/top.py:20-60'

An interrupted run continues where it stopped: a mutant with a result in ``results/mutation.json``
is not tested again, except a survivor of a smaller budget.
"""

import argparse
import json
import os
import signal
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path

from tools import results

from .choice import Choice
from .mutators import draw
from .page import member
from .workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = "hw", "src/weft"
STAMP = "commit", "date", "tools", "of", "digest"  # of a record
LIST = Path("tools", "mutation", "equivalent.toml")


def _parser():
    parser = argparse.ArgumentParser(
        prog="mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seed", type=int, default=15, help="seed of the draw (default: %(default)s)")
    add("--count", type=int, default=200, help="mutants to draw (default: %(default)s)")
    add("--only", type=int, metavar="N", help="test at most N mutants")
    add("--budget", type=float, default=10, metavar="S",
        help="processor seconds of tests per mutant (default: %(default)s)")
    add("--again", action="store_true",
        help="test all mutants again, each first with the test that killed it")
    add("--of", action="append", default=[], metavar="FILE[:FIRST-LAST]",
        help="draw from these lines only; the records stay as they are")
    return parser


def _places(texts, found):
    """The lines of each file that ``--of`` names; None without it."""
    places = {}
    for text in texts:
        file, _, lines = text.partition(":")
        if file not in found:
            raise ValueError(f"--of must name a file of {' or '.join(FOLDERS)}, not {file!r}")
        count = found[file].count("\n") + 1
        first, _, last = (lines or f"1-{count}").partition("-")
        if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= count):
            rule = f"lines of --of {file} must be FIRST-LAST in 1..{count}"
            raise ValueError(f"{rule}, not {lines!r}")
        if file in places:
            raise ValueError(f"--of must name {file} once")
        places[file] = range(int(first), int(last) + 1)
    return places or None


def sources(root: Path) -> dict[str, str]:
    """The sources that are mutated, by path."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))
    }


def equivalents(root: Path) -> dict[str, str]:
    """The reasons why mutants are equivalent, by key."""
    path = root / LIST
    table = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {entry["key"]: entry["reason"] for entry in table.get("mutant", [])}


class Examiner:
    """Runs the tests of mutants.

    A failure counts only if the same test passes without the mutant.

    Parameters
    ----------
    workspace : Workspace
    budget : float
        Processor seconds of tests per mutant.
    """

    def __init__(self, workspace: Workspace, budget: float):
        self.workspace, self.budget = workspace, budget
        self.choice = Choice(workspace.tree)
        self._sound, self._unsound = set(), set()

    def killer(self, mutant, first=None) -> str | None:
        """The test that kills a mutant, None if it survives; ``first`` is the first to run."""
        tests = self.choice.tests_of(mutant.file, self.budget)
        if first is not None and (self.workspace.tree / first.partition("::")[0]).is_file():
            if killer := self._failure([first], mutant):
                return killer
        return self._failure(tests, mutant)

    def _failure(self, tests, mutant):
        while tests:
            options = {"budget": self.budget, "without": sorted(self._unsound)}
            test = self.workspace.failure(tests, mutant=mutant, **options)
            if test is None or test in self._sound:
                return test
            if self.workspace.failure([test], mutant=None, **options) is None:
                self._sound.add(test)
                return test
            print(f"left out, since it fails without a mutant: {test}", flush=True)
            self._unsound.add(test)
            tests = [other for other in tests if other != test]
        return None


def _write(path, stored):
    """Write the records and the pages; an interruption leaves the old records or the new ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    os.replace(part, path)
    results.write(path.parent.parent)


def main(arguments=None, root=ROOT) -> int:
    args, found = _parser().parse_args(arguments), sources(root)
    try:
        places = _places(args.of, found)
    except ValueError as error:
        print(f"mutation: error: {error}", file=sys.stderr)
        return 2
    path, known = root / "results" / "mutation.json", equivalents(root)
    recorded = path.is_file() and not places
    before = json.loads(path.read_text(encoding="utf-8")) if recorded else {"mutants": []}
    old = {one["key"]: one for one in before["mutants"]}
    drawn = draw(found, args.seed, args.count, places)
    members = [member(mutant, old.get(mutant.key), known.get(mutant.key)) for mutant in drawn]
    pending = [
        (mutant, one) for mutant, one in zip(drawn, members, strict=True)
        if one["result"] == "not run" or (one["result"] == "killed" and args.again)
        or (one["result"] == "survived" and (args.again or one["budget"] < args.budget))
    ][: args.only]
    # Results that stay are older than this run, so the record keeps its day.
    judged = sum(one["result"] == "equivalent" for one in members)
    stays = "digest" in before and len(pending) + judged < len(drawn)
    stamp = {name: before[name] for name in STAMP} if stays else results.stamp(["weft.cli"], root)
    stored = {
        "title": "Mutants of the sources", "command": "make mutation", "page": "mutation",
        **stamp, "seed": args.seed, "count": args.count, "mutants": members,
    }
    save = (lambda: None) if places else (lambda: _write(path, stored))
    save()
    print(f"{len(drawn)} mutants drawn, {len(pending)} to test", flush=True)
    if pending:
        home = root / "build" / "mutation"
        home.mkdir(parents=True, exist_ok=True)
        examiner = Examiner(Workspace(root, home), args.budget)
    for number, (mutant, one) in enumerate(pending, 1):
        start = time.monotonic()
        test = examiner.killer(mutant, one["test"])
        one.update(result="killed" if test else "survived", test=test, budget=args.budget)
        save()
        print(
            f"{number:3} of {len(pending)}  {mutant.file}:{mutant.line}:"
            f" {mutant.old!r} becomes {mutant.new!r}\n           {one['result']}"
            f" {f'by {test}, ' if test else ''}{time.monotonic() - start:.0f} s", flush=True,
        )
    if places:
        counts = Counter(one["result"] for one in members)
        print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    else:
        print(root / "docs" / "results" / "mutation.md")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the running tests, too
    sys.exit(main())
