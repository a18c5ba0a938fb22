"""Mutation testing: the changed lines, the tests that run on them, and the stored results."""

import importlib
import importlib.util
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from rejects import rejects

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "tools" / "mutation"
MODULES = "mutators", "choice", "records", "active_time", "workspace", "examine", "page", "__main__"

TREE = {
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\n',
    "src/weft/__init__.py": (
        '"""A package."""\n\nfrom weft.limits import clip\n\n__all__ = ["clip"]\n'
    ),
    "src/weft/limits.py": '"""Limits."""\n\n\ndef clip(x):\n    return x if x < 7 else 7\n',
    "hw/__init__.py": '"""Hardware."""\n',
    "hw/adder.py": (
        '"""Adds."""\n\nfrom weft import clip\n\n\ndef add(a, b):\n    return clip(a + b)\n'
    ),
    "hw/deep/__init__.py": '"""No module of it has tests."""\n',
    "hw/deep/alone.py": '"""No file imports it."""\n\nSIZE = 3\n',
    "tests/conftest.py": (
        "import pytest\nfrom weft.hw.adder import add\n\n\n"
        "@pytest.fixture\ndef adder():\n    return add\n"
    ),
    "tests/hw/test_adder.py": (
        "import subprocess\nimport sys\n\nfrom weft.hw.adder import add\n\n\n"
        "def test_adds():\n    assert add(2, 1) == 3\n\n\n"
        "def test_other_processes_add():\n"
        "    code = 'from weft.hw.adder import add; print(add(2, 1))'\n"
        "    run = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "    assert run.stdout.strip() == '3'\n"
    ),
    "tests/hw/test_adder_wide.py": "def test_nothing():\n    pass\n",
    "tests/test_limits.py": "from weft import clip\n\n\ndef test_one():\n    assert clip(1) == 1\n",
    "tests/test_fixture.py": "def test_it(adder):\n    assert adder(1, 1) == 2\n",
    "tests/test_none.py": "def test_none():\n    pass\n",
}


@pytest.fixture(scope="module")
def tool():
    """The modules of the tool, by name."""
    spec = importlib.util.spec_from_file_location(
        "mutation", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
    )
    sys.modules["mutation"] = importlib.util.module_from_spec(spec)
    found = {name: importlib.import_module(f"mutation.{name}") for name in MODULES}
    yield SimpleNamespace(**{name.strip("_"): module for name, module in found.items()})
    for name in [name for name in sys.modules if name.split(".")[0] == "mutation"]:
        del sys.modules[name]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small tree of the same layout."""
    root = tmp_path / "tree"
    for name, text in TREE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it starts in half the time
    return root


@pytest.mark.parametrize("line, changed", [
    ("a + b", ["a - b"]),
    ("a << (b)", ["a >> (b)"]),
    ("a and b and c", ["a or b and c", "a and b or c"]),
    ("a < b <= c", ["a <= b <= c", "a < b < c"]),
    ("a not in b", ["a in b"]),
    ("a | b & c", ["a & b & c", "a | b | c"]),
    ("~a", ["a"]),
    ("x = 8", ["x = 9", "x = 7"]),
    ("x = 0", ["x = 1", "x = (-1)"]),
    ("x = 0x10", ["x = 17", "x = 15"]),
    ("x = True", ["x = False"]),
    ("x[a:b]", ["x[(a) + 1:b]", "x[(a) - 1:b]", "x[a:(b) + 1]", "x[a:(b) - 1]"]),
    ("x = a if b else c", ["x = a if (not (b)) else c"]),
    ("x = [a for a in b if c]", ["x = [a for a in b if (not (c))]"]),
    ("if a: b", ["if not (a): b"]),
    ("with m.If(a): b", ["with m.If((a) == 0): b"]),
    ("with m.Elif(a): b", ["with m.Elif((a) == 0): b"]),
    ("def f(a, b=2): pass", ["def f(a, b=3): pass", "def f(a, b=1): pass"]),
    ("x = a.eq(b)", ["x = a.eq(0)", "x = a.eq(~(b))"]),
    ("m.d.sync += a.eq(b)", ["pass", "m.d.sync += a.eq(0)", "m.d.sync += a.eq(~(b))"]),
    ("connect(m, a)", ["pass"]),
    ("é = 'é' if a else b + c", ["é = 'é' if (not (a)) else b + c", "é = 'é' if a else b - c"]),
])
def test_each_mutant_changes_one_thing(tool, line, changed):
    assert [mutant.changed for mutant in tool.mutators.mutants("a.py", line)] == changed


@pytest.mark.parametrize("line, changed", [
    ("return f(a)", ["return None"]),
    ("return a", []),
    ("continue", ["pass"]),
])
def test_statements_of_functions(tool, line, changed):
    source = f"def f():\n    while a:\n        {line}\n"
    assert [mutant.changed for mutant in tool.mutators.mutants("a.py", source)] == changed


@pytest.mark.parametrize("source", [
    '"""Takes 3 + 4."""', "__all__ = ['a' + b]", "x: Out(3)", "def f(a: 3) -> 4: pass",
    "raise ValueError(1 + a)", "if_ = f'{a + 1}'", "x = 'a' + b", "'%d' % a", "# a + 1",
    "@dataclass(frozen=True)\nclass A: pass", "import a", "assert a + 1",
])
def test_texts_annotations_and_errors_stay(tool, source):
    assert tool.mutators.mutants("a.py", source) == []


def test_an_operator_is_found_in_whichever_line_it_is(tool):
    found = tool.mutators.mutants("a.py", "x = (a  # + 1\n     + b +\n     c)")
    assert [(mutant.line, mutant.changed) for mutant in found] == [(2, "+ b -"), (2, "- b +")]


def test_a_mutant_finds_its_line_after_others_have_moved(tool):
    first, second = tool.mutators.mutants("a.py", "if p:\n    f(a)\nif q:\n    f(a)\n")[1::2]
    assert (first.nth, second.nth) == (0, 1)
    assert second.apply("\n\nf(a)\n\n\nx()\n        f(a)") == "\n\nf(a)\n\n\nx()\n        pass"
    assert second.apply("f(a)\n") is None
    assert not second.valid("f(a)\n")


def test_the_draw_follows_from_seed_and_lines(tool):
    source = "".join(f"a{n} = b + {n}\n" for n in range(2, 40))
    drawn = tool.mutators.draw({"hw/a.py": source}, seed=3, count=12)
    assert drawn == tool.mutators.draw({"hw/a.py": source}, seed=3, count=12)
    assert drawn != tool.mutators.draw({"hw/a.py": source}, seed=4, count=12)
    assert len({mutant.line for mutant in drawn}) == 12
    moved = tool.mutators.draw({"hw/a.py": "\n# Two lines more.\n" + source}, seed=3, count=12)
    assert [mutant.key for mutant in moved] == [mutant.key for mutant in drawn]


def test_choice_of_tests(tool, tree):
    choice = tool.choice.Choice(tree)
    assert choice.mirrored("hw/adder.py") == [
        "tests/hw/test_adder.py", "tests/hw/test_adder_wide.py",
    ]
    assert choice.importing("hw/adder.py") == [(1, "tests/test_fixture.py")]
    assert choice.mirrored("src/weft/limits.py") == ["tests/test_limits.py"]
    assert choice.importing("src/weft/limits.py") == [
        (2, "tests/hw/test_adder.py"), (2, "tests/test_fixture.py"),
    ]


def test_a_file_that_no_test_imports_has_the_tests_of_the_nearest_folder(tool, tree):
    assert tool.choice.Choice(tree).importing("hw/deep/alone.py") == [
        (1, "tests/hw/test_adder.py"), (1, "tests/hw/test_adder_wide.py"),
    ]


def event(key, stage, result, test=None):
    return dict(event="stage", key=key, stage=stage, result=result, test=test, files=[], cpu=1)


def test_records_resume(tool, tmp_path):
    path = tmp_path / "records.jsonl"
    records = tool.records.Records(path, "new")
    records.add(**event("a", "mirrored", "survived"))
    records.add(**event("b", "mirrored", "killed", "tests/test_b.py::test_b"))
    records.add("duration", test="tests/test_b.py", seconds=3, longest=2)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"event": "stage", "key": "c", "sta')  # where it was interrupted
    again = tool.records.Records(path, "new")
    assert again.done("a", "mirrored") and not again.done("a", "importing")
    assert again.done("b", "all") and not again.done("c", "mirrored")
    assert again.durations == {"tests/test_b.py": (3, 2)}
    again.add(**event("c", "mirrored", "timeout"))
    last = tool.records.Records(path, "new")
    assert last.outcome("c")["result"] == "timeout"
    assert last.outcome("a")["stage"] == "mirrored"


def test_records_of_another_tree_only_say_what_to_try_first(tool, tmp_path):
    path = tmp_path / "records.jsonl"
    old = tool.records.Records(path, "old")
    old.add(**event("a", "mirrored", "killed", "tests/test_a.py::test_a"))
    old.add(**event("b", "mirrored", "survived"))
    old.add("unsound", test="tests/test_x.py::test_x")
    new = tool.records.Records(path, "new")
    assert not new.done("a", "mirrored") and new.outcome("a") is None
    assert new.killer("a") == "tests/test_a.py::test_a"
    assert new.unsound == set()
    new.add(**event("a", "mirrored", "killed"))
    new.add(**event("b", "mirrored", "killed"))
    assert not new.missed("a") and new.missed("b")


def one(tool, tree, file, changed):
    source = (tree / file).read_text(encoding="utf-8")
    [found] = [m for m in tool.mutators.mutants(file, source) if m.changed == changed]
    return found


@pytest.fixture
def workspace(tool, tree, tmp_path):
    with tool.workspace.Workspace(tree, tmp_path / "home") as one:
        yield one


def test_a_kill_and_a_survivor(tool, tree, workspace, tmp_path):
    records = tool.records.Records(tmp_path / "records.jsonl", "x")
    examiner = tool.examine.Examiner(
        workspace, tool.choice.Choice(workspace.tree), records, budget=100
    )
    killed = examiner.examine(
        one(tool, tree, "hw/adder.py", "return clip(a - b)"), "importing"
    )
    assert (killed["result"], killed["stage"]) == ("killed", "mirrored")
    assert killed["test"] == "tests/hw/test_adder.py::test_adds"
    assert records.sound == {"tests/hw/test_adder.py::test_adds"}
    survivor = one(tool, tree, "src/weft/limits.py", "return x if x <= 7 else 7")
    assert examiner.examine(survivor, "mirrored")["result"] == "survived"
    assert set(records.durations) == {"tests/test_limits.py"}
    for name, text in TREE.items():
        assert (tree / name).read_text(encoding="utf-8") == text
        assert (workspace.tree / name).read_text(encoding="utf-8") == text


def test_processes_that_tests_start_import_the_mutant(tool, tree, workspace):
    other = "tests/hw/test_adder.py::test_other_processes_add"
    with workspace.mutated(one(tool, tree, "hw/adder.py", "return None")):
        run = workspace.run([other], limit=100)
    assert (run.code, run.test) == (1, other)


def test_a_mutant_that_hangs_is_killed(workspace):
    hang = workspace.tree / "tests" / "test_hang.py"
    hang.write_text("import time\n\n\ndef test_it():\n    time.sleep(600)\n")
    run = workspace.run(["tests/test_hang.py"], limit=3)
    assert run.code is None and not run.passed


def test_a_run_that_is_stopped_leaves_no_process(workspace):
    (workspace.tree / "tests" / "test_hang.py").write_text(
        "import os\nimport pathlib\nimport time\n\n\ndef test_it():\n"
        "    pathlib.Path('pid.part').write_text(str(os.getpid()))\n"
        "    os.replace('pid.part', 'pid')\n    time.sleep(600)\n"
    )
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(workspace.run, ["tests/test_hang.py"], limit=600)
        while not (workspace.tree / "pid").is_file():
            assert not run.done()
            time.sleep(0.05)
        workspace.stop()
        with pytest.raises(RuntimeError, match="^the run was stopped$"):
            run.result()
    with pytest.raises(ProcessLookupError):
        os.kill(int((workspace.tree / "pid").read_text()), 0)


def test_active_time_excludes_the_wait_for_a_processor(tool, tmp_path):
    ticks = tool.active_time.TICKS

    def stat(pid, parent, state, used):
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        rest = f"{state} {parent} 0 0 0 0 0 0 0 0 0 {used * ticks} 0 0 0 0"
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (name)) {rest}")

    active = tool.active_time.ActiveTime(7, proc=tmp_path)
    stat(7, 1, "S", 0)
    stat(8, 7, "R", 1)   # a child that computes
    stat(9, 8, "S", 0)
    stat(5, 1, "R", 99)  # a stranger
    active.add(10)
    assert active.spent == 1
    active.add(10)  # it waits for a processor
    assert active.spent == 1
    stat(8, 7, "S", 1)
    active.add(10)
    assert active.spent == 11
    active.reset()
    stat(9, 8, "D", 3)
    active.add(10)
    assert active.spent == 3


class Fake:
    """Stands for `Workspace.run`: tests fail where the source has been changed, and some anyway."""

    def __init__(self, tool, monkeypatch, broken=()):
        self.calls, self.broken, self.run = [], broken, tool.workspace.Run
        monkeypatch.setattr(tool.workspace.Workspace, "run", lambda *a, **k: self(*a, **k))

    def __call__(self, workspace, tests, *, limit, marks="", without=()):
        self.calls.append(tests)
        source = (workspace.tree / "hw" / "adder.py").read_text(encoding="utf-8")
        changed = source != TREE["hw/adder.py"]
        wrong = [test for test in self.broken if test not in without]
        wrong += ["tests/hw/test_adder.py::test_adds"] * changed
        return self.run(*(1, wrong[0]) if wrong else (0,))


def test_a_test_that_fails_without_a_mutant_is_left_out(
    tool, tree, workspace, tmp_path, monkeypatch
):
    Fake(tool, monkeypatch, broken=["tests/test_limits.py::test_one"])
    records = tool.records.Records(tmp_path / "records.jsonl", "x")
    choice = tool.choice.Choice(workspace.tree)
    examiner = tool.examine.Examiner(workspace, choice, records, budget=100)
    survivor = one(tool, tree, "src/weft/limits.py", "return x if x <= 7 else 7")
    assert examiner.examine(survivor, "all")["result"] == "survived"
    assert records.unsound == {"tests/test_limits.py::test_one"}


def test_two_runs_do_not_share_a_folder(tool, tree, workspace):
    with rejects(RuntimeError, f"another run uses {workspace.home}; wait until it ends"):
        tool.workspace.Workspace(tree, workspace.home)


def test_the_command_resumes_and_writes_the_page(tool, tree, monkeypatch, capsys):
    fake = Fake(tool, monkeypatch)
    (tree / "docs").mkdir()

    def run(*words):
        return tool.main.main(["--seed", "1", *words], root=tree)

    assert run("--only", "1") == 0
    assert "1 chosen, 1 to test" in capsys.readouterr().out
    assert not (tree / "docs" / "mutation.md").exists()
    assert run("--only", "1") == 0
    assert "1 chosen, 0 to test" in capsys.readouterr().out
    assert run() == 0
    stored = json.loads((tree / "docs" / "mutation.json").read_text(encoding="utf-8"))
    results = {one["file"]: one["result"] for one in stored["mutants"]}
    assert results == {
        "hw/adder.py": "killed", "src/weft/limits.py": "survived", "hw/deep/alone.py": "survived",
    }
    assert "Killed: 1 of 3 (33.3 %)." in (tree / "docs" / "mutation.md").read_text("utf-8")
    # After a change of the tests, the one that killed a mutant is the first to run.
    (tree / "tests" / "test_none.py").write_text("def test_nothing_else():\n    pass\n")
    fake.calls.clear()
    assert run() == 0
    assert ["tests/hw/test_adder.py::test_adds"] in fake.calls
    assert not any("tests/hw/test_adder_wide.py" in c and len(c) < 3 for c in fake.calls[:1])


def test_equivalent_mutants_are_reported_apart(tool, tree, monkeypatch):
    Fake(tool, monkeypatch)
    (tree / "docs").mkdir()
    folder = tree / "tools" / "mutation"
    folder.mkdir(parents=True)
    key = next(
        m.key for m in tool.mutators.draw(tool.main.sources(tree), 1, 9) if "alone" in m.file
    )
    (folder / "equivalent.toml").write_text(
        f'[[mutant]]\nkey = "{key}"\nreason = "nobody reads it"\n', encoding="utf-8"
    )
    assert tool.main.main(["--seed", "1"], root=tree) == 0
    text = (tree / "docs" / "mutation.md").read_text(encoding="utf-8")
    assert "Killed: 1 of 2 (50.0 %)." in text and "nobody reads it" in text


def test_another_tree_meets_the_mutants_that_are_in_both(tool, tree, tmp_path, monkeypatch):
    Fake(tool, monkeypatch)
    (tree / "docs").mkdir()
    tool.main.main(["--seed", "1"], root=tree)
    other = tmp_path / "older"
    for name in ("hw/__init__.py", "hw/adder.py", "src/weft/__init__.py", "pyproject.toml"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text(TREE[name], encoding="utf-8")
    (other / "tests").mkdir()
    assert tool.main.main(["--seed", "1", "--tree", str(other), "--write"], root=tree) == 0
    text = (tree / "docs" / "mutation.md").read_text(encoding="utf-8")
    assert "## The suite of older\n\n1 of the drawn mutants" in text


def test_the_page_shows_its_records(tool):
    """And each mutant that is judged equivalent is one of those drawn."""
    stored = json.loads((ROOT / "docs" / "mutation.json").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "mutation.md").read_text(encoding="utf-8")
    assert text == tool.page.page(stored)
    equivalent = {m["key"] for m in stored["mutants"] if m["result"] == "equivalent"}
    assert equivalent == set(tool.main.equivalents(ROOT))
    assert len(stored["mutants"]) == stored["count"]
