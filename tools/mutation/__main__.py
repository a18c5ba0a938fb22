"""Tests mutants of the sources, and writes ``docs/mutation.md`` once all have been tested.

    make mutation ARGS='--jobs 4'
    make mutation ARGS='--only 10 --stage quick'

What was found stays in ``build/mutation``: a run that was interrupted goes on where it ended. After
a change of sources or tests all mutants run again, each with the test first that killed it.
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
    add("--seed", type=int, default=15, help="of the draw (default: %(default)s)")
    add("--count", type=int, default=200, help="mutants to draw (default: %(default)s)")
    add("--only", type=int, metavar="N", help="test the first N of them alone")
    add("--jobs", type=int, default=1, help="mutants tested at once (default: %(default)s)")
    add("--stage", choices=STAGES[1:], default="all",
        help="the last stage that survivors meet (default: %(default)s)")
    add("--budget", type=float, default=150, metavar="S",
        help="processor seconds of the stage importing, a mutant (default: %(default)s)")
    add("--tree", type=Path, default=ROOT, metavar="FOLDER",
        help="another checkout, whose tests meet those of the mutants that are in it, too")
    add("--write", action="store_true", help="write the page even if mutants are left to test")
    add("--list", action="store_true", help="list the drawn mutants with their outcomes, and end")
    return parser


def sources(root: Path) -> dict[str, str]:
    """What mutants are made of, by path."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))
    }


def equivalents(root: Path) -> dict[str, str]:
    """Why a mutant is equivalent, by its key."""
    path = root / LIST
    table = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {entry["key"]: entry["reason"] for entry in table.get("mutant", [])}


def _shared(drawn, tree):
    """Those of the drawn mutants whose line is in another tree, too."""
    return [
        mutant for mutant in drawn if (tree / mutant.file).is_file()
        and mutant.valid((tree / mutant.file).read_text(encoding="utf-8"))
    ]


def _test(mutants, workspaces, records, args):
    """Test mutants that are not done, as many at once as there are workspaces."""
    choice = Choice(workspaces[0].tree)
    free, began, lock, count = queue.Queue(), time.monotonic(), threading.Lock(), [0]
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
            left = (now - began) / count[0] * (len(mutants) - count[0]) / 60
            print(
                f"{count[0]:3} of {len(mutants)}  {_said(outcome)}\n"
                f"           {mutant.key} {mutant.file}:{mutant.line}:"
                f" {mutant.old!r} becomes {mutant.new!r}\n"
                f"           {now - start:.0f} s; about {left:.0f} min left", flush=True,
            )

    with ThreadPoolExecutor(len(workspaces)) as pool:
        try:
            for done in [pool.submit(one, mutant) for mutant in mutants]:
                done.result()
        except BaseException:  # an interruption, too
            pool.shutdown(wait=False, cancel_futures=True)
            for workspace in workspaces:
                workspace.stop()
            raise


def _said(outcome):
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
                  f" {_said(records.outcome(mutant.key))}\n"
                  f"      {mutant.text}\n      {mutant.changed}")
        return 0
    waiting = [
        mutant for mutant in chosen
        if mutant.key not in known and not records.done(mutant.key, args.stage)
    ]
    print(f"{len(drawn)} mutants drawn, {len(chosen)} chosen, {len(waiting)} to test", flush=True)
    if waiting:
        with contextlib.ExitStack() as stack:
            _test(waiting, [
                stack.enter_context(Workspace(tree, place / str(job))) for job in range(args.jobs)
            ], records, args)
    complete = len(chosen) == len(drawn) and args.stage == "all"
    members = _members(drawn if not other else chosen, records, known)
    counts = {r: sum(m["result"] == r for m in members) for r in ("killed", "timeout", "survived")}
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    if complete or args.write:
        _store(root, args, members, records, tree.name if other else None)
    else:
        print("docs/mutation.md stays as it is: --write writes what is known so far")
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
