"""Tests mutants of the sources, and writes ``docs/mutation.md`` after the last one.

    make mutation ARGS='--jobs 4'
    make mutation ARGS='--only 10 --stage quick'

The results are kept in ``build/mutation``: an interrupted run continues where it stopped. After a
change of sources or tests all mutants run again, each first with the test that killed it before.
"""

import argparse
import contextlib
import json
import queue
import signal
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .choice import Choice
from .examine import Examiner
from .mutators import draw
from .page import member, page
from .records import STAGES, Records
from .workspace import Workspace, fingerprint

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = "hw", "src/weft"
LIST = Path("tools", "mutation", "equivalent.toml")


def _parser():
    parser = argparse.ArgumentParser(
        prog="mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seed", type=int, default=15, help="seed of the draw (default: %(default)s)")
    add("--count", type=int, default=200, help="mutants to draw (default: %(default)s)")
    add("--only", type=int, metavar="N", help="test only the first N mutants")
    add("--jobs", type=int, default=1, help="mutants tested in parallel (default: %(default)s)")
    add("--stage", choices=STAGES[1:], default="all",
        help="last stage to run (default: %(default)s)")
    add("--budget", type=float, default=150, metavar="S",
        help="processor seconds per mutant for the stage importing (default: %(default)s)")
    add("--tree", type=Path, default=ROOT, metavar="FOLDER",
        help="another checkout to test, with the mutants that apply to it")
    add("--write", action="store_true", help="write the page before all mutants are tested")
    add("--list", action="store_true", help="list the drawn mutants with their outcomes and exit")
    return parser


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


def _shared(drawn, tree):
    """The drawn mutants that apply to another tree."""
    return [
        mutant for mutant in drawn if (tree / mutant.file).is_file()
        and mutant.valid((tree / mutant.file).read_text(encoding="utf-8"))
    ]


def _test(mutants, workspaces, records, args):
    """Test mutants in parallel, one in each workspace."""
    choice = Choice(workspaces[0].tree)
    free, start_time, lock, count = queue.Queue(), time.monotonic(), threading.Lock(), [0]
    for workspace in workspaces:
        free.put(Examiner(workspace, choice, records, budget=args.budget))

    def one(mutant):
        examiner, start = free.get(), time.monotonic()
        try:
            outcome = examiner.examine(mutant, args.stage)
        finally:
            free.put(examiner)
        with lock:
            count[0] += 1
            now = time.monotonic()
            minutes = (now - start_time) / count[0] * (len(mutants) - count[0]) / 60
            print(
                f"{count[0]:3} of {len(mutants)}  {_text(outcome)}\n"
                f"           {mutant.key} {mutant.file}:{mutant.line}:"
                f" {mutant.old!r} becomes {mutant.new!r}\n"
                f"           {now - start:.0f} s; about {minutes:.0f} min left", flush=True,
            )

    with ThreadPoolExecutor(len(workspaces)) as pool:
        try:
            for done in [pool.submit(one, mutant) for mutant in mutants]:
                done.result()
        except BaseException:  # also an interruption
            pool.shutdown(wait=False, cancel_futures=True)
            for workspace in workspaces:
                workspace.stop()
            raise


def _text(outcome):
    """An outcome as text."""
    if outcome is None:
        return "not run"
    by = f" by {outcome['test']}" if outcome["test"] else ""
    return f"{outcome['result']} ({outcome['stage']}){by}"


def _members(mutants, records, known):
    return [
        member(
            mutant, records.outcome(mutant.key), known.get(mutant.key),
            records.missed(mutant.key),
        )
        for mutant in mutants
    ]


def main(arguments=None, root=ROOT) -> int:
    args = _parser().parse_args(arguments)
    home = root / "build" / "mutation"
    tree = args.tree.resolve() if args.tree != ROOT else root
    other = tree != root
    drawn, known = draw(sources(root), args.seed, args.count), equivalents(root)
    if other:
        drawn = _shared(drawn, tree)
    chosen = drawn[: args.only]
    place = home / (tree.name if other else "tree")
    records = Records(home / "records.jsonl", fingerprint(tree))
    if args.list:
        for number, mutant in enumerate(chosen, 1):
            print(f"{number:3} {mutant.key} {mutant.file}:{mutant.line}"
                  f" {_text(records.outcome(mutant.key))}\n"
                  f"      {mutant.text}\n      {mutant.changed}")
        return 0
    pending = [
        mutant for mutant in chosen
        if mutant.key not in known and not records.done(mutant.key, args.stage)
    ]
    print(f"{len(drawn)} mutants drawn, {len(chosen)} chosen, {len(pending)} to test", flush=True)
    if pending:
        with contextlib.ExitStack() as stack:
            _test(pending, [
                stack.enter_context(Workspace(tree, place / str(job))) for job in range(args.jobs)
            ], records, args)
    complete = len(chosen) == len(drawn) and args.stage == "all"
    members = _members(drawn if not other else chosen, records, known)
    counts = {r: sum(m["result"] == r for m in members) for r in ("killed", "timeout", "survived")}
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    if complete or args.write:
        _store(root, args, members, records, tree.name if other else None)
    else:
        print("docs/mutation.md is not changed; --write writes the results so far")
    return 0


def _store(root, args, members, records, other):
    """Write the records and the page."""
    path = root / "docs" / "mutation.json"
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"other": None}
    if other:
        stored["other"] = {"name": other, "mutants": members}
    else:
        stored = {
            "command": "`make mutation`", "seed": args.seed, "count": args.count,
            "budget": round(args.budget), "mutants": members,
            "unsound": sorted(records.unsound), "other": stored["other"],
        }
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(page(stored), encoding="utf-8")
    print(path.with_suffix(".md"))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
