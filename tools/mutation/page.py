"""Writes the results as a page: a table by folder, and the survivors."""

from collections import Counter

__all__ = ["member", "page"]

HEAD = """\
# Mutation testing

One line of `hw` or `src/weft` is changed at a time, and tests run until one fails: it **kills** the
mutant. A mutant that **survives** shows what the tests do not check. `make mutation` draws {count}
lines with the seed {seed}, makes one mutant of each, and writes this page and its records,
`docs/mutation.json`. A line is drawn by a hash of its text and the seed, so the draw stays nearly
the same when other lines change.

A mutant first meets the test files of the same name, then the files that import its module, those
with a similar name and the shortest ones first (`tests/durations.json`). No test starts after the
budget of the mutant, 10 s of processor time unless `--budget` sets another. So a survivor may still
be killed by tests that did not run: `make mutation ARGS='--budget 100'` tests only the survivors,
with more tests. Tests marked `slow` do not run.

A failure counts only if the same test passes without the mutant. A test that hangs fails. A mutant
that changes nothing visible is **equivalent**: `tools/mutation/equivalent.toml` lists them, with
the reason. A mutant keeps its result until `make mutation ARGS=--again`.

## Results

"""
RESULTS = "killed", "survived", "equivalent", "not run"


def member(mutant, old, reason) -> dict:
    """The stored data of a mutant.

    Parameters
    ----------
    mutant : Mutant
    old : dict or None
        The data that were stored before.
    reason : str or None
        Why it is equivalent.
    """
    found = {"result": "not run", "test": None, "budget": 0}
    found |= {name: old[name] for name in found if old and name in old}
    if reason or found["result"] == "equivalent":
        found["result"] = "equivalent" if reason else "not run"
    return {
        "key": mutant.key, "file": mutant.file, "line": mutant.line,
        "text": mutant.text, "changed": mutant.changed, **found,
        **({"reason": reason} if reason else {}),
    }


def _row(name, members):
    counts = Counter(one["result"] for one in members)
    cells = [len(members), *(counts[result] for result in RESULTS)]
    return f"| {name} | " + " | ".join(map(str, cells)) + " |\n"


def _code(text):
    return "`" + text.replace("|", "\\|") + "`"


def _table(title, members, name):
    """A section with the mutants of one result, and the attribute ``name`` of each."""
    rows = [
        f"| {one['file']}:{one['line']} | {_code(one['text'])} | {_code(one['changed'])} |"
        f" {one[name]} |\n"
        for one in sorted(members, key=lambda one: (one["file"], one["line"]))
    ]
    head = f"\n## {title}\n\n| where | line | becomes | {name} |\n|---|---|---|---|\n"
    return head + "".join(rows) if rows else ""


def page(stored: dict) -> str:
    """The text of ``docs/mutation.md`` from the contents of ``docs/mutation.json``."""
    members = stored["mutants"]
    by = {result: [one for one in members if one["result"] == result] for result in RESULTS}
    killed, ran = len(by["killed"]), len(by["killed"]) + len(by["survived"])
    share = f" ({100 * killed / ran:.1f} %)" if ran else ""
    folders = {}
    for one in members:
        folders.setdefault("/".join(one["file"].split("/")[:-1][:3]), []).append(one)
    return "".join([
        HEAD.format(**stored), f"Killed: {killed} of {ran}{share}.\n\n",
        "| folder | drawn | " + " | ".join(RESULTS) + " |\n|---|" + "---:|" * 5 + "\n",
        *(_row(name, folders[name]) for name in sorted(folders)), _row("all", members),
        _table("Survivors", by["survived"], "budget"),
        _table("Equivalent", by["equivalent"], "reason"),
    ])
