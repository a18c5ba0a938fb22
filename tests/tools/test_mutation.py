"""Mutation testing: the changed lines, the tests that run on them, and the stored results."""

import datetime
import importlib
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "tools" / "mutation"
MODULES = "mutators", "choice", "workspace", "page", "__main__"

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
    "tools/mutation/budget.py": (FOLDER / "budget.py").read_text(encoding="utf-8"),
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
def tree(tmp_path):
    """A small tree of the same layout."""
    root = tmp_path / "tree"
    for name, text in TREE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
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


def one(tool, tree, file, changed):
    source = (tree / file).read_text(encoding="utf-8")
    [found] = [m for m in tool.mutators.mutants(file, source) if m.changed == changed]
    return found


@pytest.fixture
def workspace(tool, tree, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return tool.workspace.Workspace(tree, home)


def test_tests_within_a_budget(tool, tree):
    durations = {"tests/hw/test_adder.py": {"quick": 2}, "tests/test_fixture.py": {"quick": 3}}
    (tree / "tests" / "durations.json").write_text(json.dumps(durations))
    choice = tool.choice.Choice(tree)
    first = ["tests/test_limits.py", "tests/hw/test_adder.py"]
    assert choice.tests_of("src/weft/limits.py", 2) == first[:1]
    assert choice.tests_of("src/weft/limits.py", 5) == first
    assert choice.tests_of("src/weft/limits.py", 9) == [*first, "tests/test_fixture.py"]


def test_tests_with_a_similar_name_come_first(tool, tree):
    for name in ("old_limits", "new"):
        (tree / "tests" / f"test_{name}.py").write_text("import weft.limits\n")
    choice = tool.choice.Choice(tree)
    found = choice.tests_of("src/weft/limits.py", 99)
    assert found[:3] == ["tests/test_limits.py", "tests/test_old_limits.py", "tests/test_new.py"]


def test_a_kill_and_a_survivor(tool, tree, workspace):
    examiner = tool.main.Examiner(workspace, 100)
    killed = one(tool, tree, "hw/adder.py", "return clip(a - b)")
    assert examiner.killer(killed) == "tests/hw/test_adder.py::test_adds"
    fixture = "tests/test_fixture.py::test_it"
    assert examiner.killer(killed, fixture) == fixture
    survivor = one(tool, tree, "src/weft/limits.py", "return x if x <= 7 else 7")
    assert examiner.killer(survivor) is None
    for name, text in TREE.items():
        assert (tree / name).read_text(encoding="utf-8") == text
        assert (workspace.tree / name).read_text(encoding="utf-8") == text


def test_no_test_starts_after_the_budget(tool, tree, workspace):
    killed = one(tool, tree, "hw/adder.py", "return clip(a - b)")
    assert workspace.failure(["tests/hw/test_adder.py"], mutant=killed, budget=0) is None


def test_processes_that_tests_start_import_the_mutant(tool, tree, workspace):
    other = "tests/hw/test_adder.py::test_other_processes_add"
    mutant = one(tool, tree, "hw/adder.py", "return None")
    assert workspace.failure([other], mutant=mutant, budget=100) == other


@pytest.mark.slow
def test_a_test_beyond_the_processor_limit_fails(tool, workspace, monkeypatch):
    monkeypatch.setattr(tool.workspace, "CPU", -97)  # 3 s of the budget's 100 s
    hang = workspace.tree / "tests" / "test_hang.py"
    hang.write_text("def test_it():\n    while True: pass\n")
    test = workspace.failure(["tests/test_hang.py"], mutant=None, budget=100)
    assert test == "tests/test_hang.py::test_it"


def test_a_test_that_waits_for_ever_fails(tool, workspace, monkeypatch):
    class Hurried(subprocess.Popen):
        """A process whose first time-out ends when the test waits, at any speed of the machine."""

        def wait(self, timeout=None):
            while timeout is not None:
                if (workspace.tree / "waits").exists():
                    raise subprocess.TimeoutExpired(self.args, timeout)
                assert self.poll() is None, workspace.log.read_text(encoding="utf-8")
                time.sleep(0.05)
            return super().wait()

    monkeypatch.setattr(tool.workspace.subprocess, "Popen", Hurried)
    (workspace.tree / "tests" / "test_hang.py").write_text(
        "import time\n\n"
        "def test_it():\n    open('waits', 'w').close()\n    time.sleep(600)\n"
    )
    test = workspace.failure(["tests/test_hang.py"], mutant=None, budget=100)
    assert test == "tests/test_hang.py::test_it"


class Fake:
    """Stands for a Workspace: tests fail where the source is changed, and some without a mutant."""

    def __init__(self, tool, monkeypatch, tree, broken=()):
        self.tree, self.calls, self.broken = tree, [], broken
        monkeypatch.setattr(tool.main, "Workspace", lambda *_: self)

    def failure(self, tests, *, mutant, budget, without=()):
        self.calls.append(tests)
        wrong = [test for test in self.broken if test not in without]
        changed = mutant is not None and mutant.file == "hw/adder.py"
        wrong += ["tests/hw/test_adder.py::test_adds"] * changed
        return wrong[0] if wrong else None


def test_a_test_that_fails_without_a_mutant_is_left_out(tool, tree, monkeypatch, capsys):
    broken = "tests/test_limits.py::test_one"
    examiner = tool.main.Examiner(Fake(tool, monkeypatch, tree, [broken]), 100)
    survivor = one(tool, tree, "src/weft/limits.py", "return x if x <= 7 else 7")
    assert examiner.killer(survivor) is None
    assert capsys.readouterr().out == f"left out, since it fails without a mutant: {broken}\n"


def test_the_command_resumes_and_writes_the_page(tool, tree, monkeypatch, capsys):
    fake = Fake(tool, monkeypatch, tree)

    def run(*words):
        assert tool.main.main(["--seed", "1", *words], root=tree) == 0
        return capsys.readouterr().out

    def results():
        stored = json.loads((tree / "results" / "mutation.json").read_text(encoding="utf-8"))
        return {one["file"]: (one["result"], one["budget"]) for one in stored["mutants"]}

    assert "3 mutants drawn, 1 to test" in run("--only", "1")
    assert sorted(result for result, _ in results().values()).count("not run") == 2
    assert "3 mutants drawn, 2 to test" in run()
    assert results() == {
        "hw/adder.py": ("killed", 10), "src/weft/limits.py": ("survived", 10),
        "hw/deep/alone.py": ("survived", 10),
    }
    text = (tree / "docs" / "results" / "mutation.md").read_text("utf-8")
    assert "Killed: 1 of 3 (33.3 %)." in text
    path = tree / "results" / "mutation.json"
    path.write_text(path.read_text().replace(f'"{datetime.date.today()}"', '"2020-01-01"'))
    assert "3 mutants drawn, 0 to test" in run()
    assert json.loads(path.read_text())["date"] == "2020-01-01"  # nothing was tested
    assert "3 mutants drawn, 2 to test" in run("--budget", "20")
    assert results()["hw/deep/alone.py"] == ("survived", 20)
    fake.calls.clear()
    assert "3 mutants drawn, 3 to test" in run("--again")
    assert ["tests/hw/test_adder.py::test_adds"] in fake.calls
    assert json.loads(path.read_text())["date"] != "2020-01-01"


def test_equivalent_mutants_are_reported_apart(tool, tree, monkeypatch):
    Fake(tool, monkeypatch, tree)
    key = next(
        m.key for m in tool.mutators.draw(tool.main.sources(tree), 1, 9) if "alone" in m.file
    )
    (tree / "tools" / "mutation" / "equivalent.toml").write_text(
        f'[[mutant]]\nkey = "{key}"\nreason = "the constant is not used"\n', encoding="utf-8"
    )
    assert tool.main.main(["--seed", "1"], root=tree) == 0
    text = (tree / "docs" / "results" / "mutation.md").read_text(encoding="utf-8")
    assert "Killed: 1 of 2 (50.0 %)." in text and "the constant is not used" in text


def test_lines_of_some_files_have_no_record(tool, tree, monkeypatch, capsys):
    fake = Fake(tool, monkeypatch, tree)
    words = ["--seed", "1", "--of", "hw/adder.py", "--of", "src/weft/limits.py:1-1"]
    assert tool.main.main(words, root=tree) == 0
    said = capsys.readouterr().out
    assert "1 mutants drawn, 1 to test" in said and "hw/adder.py:" in said
    assert said.splitlines()[-1] == "1 killed"
    assert fake.calls and not (tree / "results" / "mutation.json").exists()


@pytest.mark.parametrize("words, error", [
    (["hw/none.py"], "--of must name a file of hw or src/weft, not 'hw/none.py'"),
    (["hw/adder.py:0-1"], "lines of --of hw/adder.py must be FIRST-LAST in 1..{count}, not '0-1'"),
    (["hw/adder.py:2"], "lines of --of hw/adder.py must be FIRST-LAST in 1..{count}, not '2'"),
    (["hw/adder.py", "hw/adder.py:1-1"], "--of must name hw/adder.py once"),
])
def test_rejects_lines_that_no_file_has(tool, tree, capsys, words, error):
    count = (tree / "hw" / "adder.py").read_text().count("\n") + 1
    assert tool.main.main([f"--of={word}" for word in words], root=tree) == 2
    assert capsys.readouterr().err == f"mutation: error: {error.format(count=count)}\n"


def test_the_page_shows_its_records(tool):
    """And each mutant that is judged equivalent is one of those drawn."""
    stored = json.loads((ROOT / "results" / "mutation.json").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "results" / "mutation.md").read_text(encoding="utf-8")
    assert text == tool.page.page(stored, ROOT), "stale; type: make results"
    equivalent = {m["key"] for m in stored["mutants"] if m["result"] == "equivalent"}
    assert equivalent == set(tool.main.equivalents(ROOT))
    assert len(stored["mutants"]) == stored["count"]


def test_the_page_names_lines_that_the_sources_lack(tool, tmp_path):
    (tmp_path / "a.py").write_text("def one():\n    return 1\n")
    same = dict(file="a.py", line=9, text="return 1", changed="return 2")
    same |= {"result": "survived", "budget": 10}
    lines = [same, same | {"text": "return 3"}, same | {"file": "gone.py"}]
    text = tool.page.page({"seed": 1, "count": 3, "mutants": lines}, tmp_path)
    assert [row for row in text.splitlines() if "budget" not in row and "return" in row] == [
        "| a.py | `return 1` | `return 2` | 10 |",
        "| a.py, **changed** | `return 3` | `return 2` | 10 |",
        "| gone.py, **changed** | `return 1` | `return 2` | 10 |",
    ]
