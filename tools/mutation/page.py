"""Writes the results as a page: a table by folder, the survivors, and another suite."""

__all__ = ["member", "page"]

HEAD = """\
# Mutation testing

One line of `hw` or `src/weft` is changed at a time, and the tests run until one fails. The first
test that fails **kills** the mutant. A mutant that **survives** shows what the tests do not check.
{command} draws {count} lines with the seed {seed}, makes one mutant of each, and writes this page
and its records, `docs/mutation.json`. A line is drawn by a hash of its text and the seed, so the
draw stays nearly the same when other lines change.

The stages of a mutant, in this order:

1. **mirrored**: the test file of the same name;
2. **importing**: the test files that import the changed module, those in the nearest folder and the
   shortest ones first, for {budget} s of processor time in all; the others run in the next stage;
3. **quick**: all other tests of `make test`;
4. **all**: the tests that only `make test-all` runs.

A failure counts only if the same test passes without the mutant. A mutant is also killed if a test
takes over two minutes and over ten times as long as the slowest test of its file; the time in
which it waits for a processor does not count. Such kills are **timed out**. A mutant that changes
nothing visible is **equivalent**: `tools/mutation/equivalent.toml` lists them, with the reason.
"""
STAGES = "mirrored", "importing", "quick", "all"


def member(mutant, event, reason, missed) -> dict:
    """The stored data of a mutant.

    Parameters
    ----------
    mutant : Mutant
    event : dict or None
        Its outcome.
    reason : str or None
        Why it is equivalent.
    missed : bool
        Whether it survived an earlier suite.
    """
    return {
        "key": mutant.key, "file": mutant.file, "line": mutant.line,
        "text": mutant.text, "changed": mutant.changed,
        "result": "equivalent" if reason else event["result"] if event else "not run",
        "stage": event["stage"] if event else None, "test": event["test"] if event else None,
        "missed": missed, **({"reason": reason} if reason else {}),
    }


def _folder(file):
    """The folder of a file, such as ``hw/arith`` or ``src/weft/host``."""
    return "/".join(file.split("/")[:-1][:3])


def _killed(members):
    return [m for m in members if m["result"] in ("killed", "timeout")]


def _rate(members):
    """The share of killed mutants, such as ``12 of 15 (80.0 %)``, of the mutants that ran."""
    ran = [m for m in members if m["result"] in ("killed", "timeout", "survived")]
    share = f" ({100 * len(_killed(ran)) / len(ran):.1f} %)" if ran else ""
    return f"{len(_killed(ran))} of {len(ran)}{share}"


def _row(name, members):
    killed = _killed(members)
    cells = [len(members), *(sum(m["stage"] == s for m in killed) for s in STAGES)]
    for result in ("timeout", "survived", "equivalent", "not run"):
        cells.append(sum(m["result"] == result for m in members))
    return f"| {name} | " + " | ".join(map(str, cells)) + " |\n"


def _code(text):
    return "`" + text.replace("|", "\\|") + "`"


def page(stored: dict) -> str:
    """The text of ``docs/mutation.md`` from the contents of ``docs/mutation.json``."""
    members = stored["mutants"]
    out = [HEAD.format(**stored), "\n## Results\n\n"]
    waiting = sum(m["result"] == "not run" for m in members)
    if waiting:
        out.append(f"{len(members) - waiting} of {len(members)} mutants have been tested so far.\n")
    out.append(f"Killed: {_rate(members)}.")
    reached = {s: [m for m in members if m["result"] == "survived" and m["stage"] == s]
               for s in STAGES}
    short = sum(len(reached[stage]) for stage in STAGES[:-1])
    if short:
        out.append(
            "\nSome survivors have not met all stages, so that more tests may kill them: "
            + ", ".join(f"{len(reached[s])} after {s}" for s in STAGES[:-1] if reached[s]) + "."
        )
    late = [m for m in _killed(members) if m["missed"]]
    if late:
        out.append(
            f" {len(late)} of the killed ones survived an earlier run: tests have changed since."
        )
    out.append(
        "\n\n| folder | drawn | mirrored | importing | quick | all | timed out | survived |"
        " equivalent | not run |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    folders = {}
    for one in members:
        folders.setdefault(_folder(one["file"]), []).append(one)
    out += [_row(name, folders[name]) for name in sorted(folders)]
    out.append(_row("all", members))
    out.append(_survivors([m for m in members if m["result"] == "survived"]))
    equal = [m for m in members if m["result"] == "equivalent"]
    if equal:
        out.append("\n## Equivalent\n\n| where | line | becomes | why |\n|---|---|---|---|\n")
        out += [f"{_change(m)} {m['reason']} |\n" for m in equal]
    if stored["unsound"]:
        out.append("\nLeft out, since they failed without a mutant where this ran:\n\n")
        out += [f"- `{test}`\n" for test in stored["unsound"]]
    if stored["other"]:
        out.append(_other(stored))
    return "".join(out)


def _change(one):
    return (
        f"| {one['file']}:{one['line']} | {_code(one['text'])} | {_code(one['changed'])} |"
    )


def _survivors(members):
    if not members:
        return ""
    head = "\n## Survivors\n\n| where | line | becomes | last stage |\n|---|---|---|---|\n"
    return head + "".join(
        f"{_change(m)} {m['stage']} |\n"
        for m in sorted(members, key=lambda m: (m["file"], m["line"]))
    )


def _other(stored):
    """A section with the results of another suite on the same mutants."""
    other = stored["other"]
    keys = {m["key"] for m in other["mutants"] if m["result"] not in ("not run", "equivalent")}
    ours = [m for m in stored["mutants"] if m["key"] in keys]
    theirs = [m for m in other["mutants"] if m["key"] in keys]
    text = (
        f"\n## The suite of {other['name']}\n\n{len(keys)} of the drawn mutants, the first ones"
        " that are in both trees, before the tests of another version.\n\n"
        "| suite | killed | survived mirrored | importing | quick | all |\n"
        "|---|---|---:|---:|---:|---:|\n"
    )
    for name, members in (("this one", ours), (other["name"], theirs)):
        left = [sum(m["result"] == "survived" and m["stage"] == s for m in members)
                for s in STAGES]
        text += f"| {name} | {_rate(members)} | " + " | ".join(map(str, left)) + " |\n"
    return text
