"""Writes the results as a page: a table by folder, and the survivors."""

from collections import Counter
from pathlib import Path

__all__ = ["member", "page"]

HEAD = """\
# Mutants of the sources

`make mutation` changed one line of the sources at a time: {count} lines, drawn with the seed
{seed}. [Testing](../testing.md#mutation-testing) explains it.

The places are those of the last run. A line that the sources of today do not have is **changed**.

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


def _changed(one, root):
    """A remark if the file of a mutant has its line no more."""
    path = root / one["file"]
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return "" if one["text"] in map(str.strip, lines) else ", **changed**"


def _table(title, members, name, root):
    """A section with the mutants of one result, and the attribute ``name`` of each."""
    rows = [
        f"| {one['file']}{_changed(one, root)} | {_code(one['text'])} | {_code(one['changed'])} |"
        f" {one[name]} |\n"
        for one in sorted(members, key=lambda one: (one["file"], one["line"]))
    ]
    head = f"\n## {title}\n\n| where | line | becomes | {name} |\n|---|---|---|---|\n"
    return head + "".join(rows) if rows else ""


def page(stored: dict, root: Path) -> str:
    """The text of the page from the contents of ``results/mutation.json``."""
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
        _table("Survivors", by["survived"], "budget", root),
        _table("Equivalent", by["equivalent"], "reason", root),
    ])
