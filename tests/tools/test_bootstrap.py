"""tools/bootstrap.py: errors have a message and do not change the tree."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def tree(tmp_path):
    """A copy of the files that the set-up reads."""
    for folder in ("tools", "locks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def bootstrap(tree, *arguments, path=None):
    """Exit code and stderr of a run in which PATH is ``path``."""
    command = [sys.executable, tree / "tools" / "bootstrap.py", *arguments]
    env = {"PATH": str(path or tree / "empty"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    return done.returncode, done.stderr


def test_rejects_an_unknown_purpose(tree):
    assert bootstrap(tree, "simm") == (2, "usage: bootstrap.py [sim | test | kit | train]\n")


def test_rejects_a_foreign_venv(tree):
    foreign = tree / ".venv" / "bin" / "python"
    foreign.parent.mkdir(parents=True)
    foreign.touch()
    status, errors = bootstrap(tree)
    assert (status, foreign.exists()) == (1, True)
    assert errors == (
        f"set-up: error: {tree / '.venv'} was not made by this set-up: move it away\n"
    )


def test_rejects_a_machine_without_programs_and_without_apt(tree):
    status, errors = bootstrap(tree)
    assert status == 1
    assert errors.startswith(
        "set-up: error: these Debian packages are missing, and this system has no apt: iverilog g++"
    )
    assert errors.endswith(". Install their programs by hand\n")
    assert not (tree / ".venv").exists()


@pytest.mark.slow
def test_removes_the_environment_if_a_step_fails(tree):
    """No program is missing, but the lock is damaged."""
    (tree / "locks" / "sim.txt").write_text("!\n", encoding="utf-8")
    code = "import bootstrap, sys; bootstrap._missing = list; sys.exit(bootstrap.main([]))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=tree / "tools", capture_output=True, text=True
    )
    assert done.returncode == 1
    message = "set-up: error: 0 Python packages of locks/sim.txt failed with exit code 1;"
    assert done.stderr.startswith(message)
    assert not (tree / ".venv").exists()


def test_adding_to_an_environment_compiles_yosys(tree):
    """Otherwise the first formal proof compiles it while other tests wait."""
    (tree / ".venv").mkdir()
    code = (
        "import bootstrap\n"
        "steps = []\n"
        "bootstrap._stamp = lambda: {'sim': bootstrap._digest('sim')}\n"
        "bootstrap._missing = list\n"
        "bootstrap._check_machine = lambda: None\n"
        "bootstrap._packages = lambda purpose: steps.append(('packages', purpose))\n"
        "bootstrap._compile_yosys = lambda purpose: steps.append(('yosys', purpose))\n"
        "bootstrap.setup('test')\n"
        "assert steps == [('packages', 'test'), ('yosys', 'test')], steps\n"
    )
    subprocess.run([sys.executable, "-B", "-c", code], cwd=tree / "tools", check=True)


def test_wraps_the_c_and_cpp_compilers(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import debian

    folder = tmp_path / "usr" / "bin"
    folder.mkdir(parents=True)
    for name in ("g++-12", "gcc-12", "ar"):
        (folder / f"{debian.MULTIARCH}-{name}").touch()
    found = dict(debian.wrappers(tmp_path))
    assert sorted(found) == ["ar", "c++", "cc", "g++", "gcc"]
    assert f"{debian.MULTIARCH}-gcc-12" in found["cc"] == found["gcc"]
    assert f"{debian.MULTIARCH}-g++-12" in found["c++"] == found["g++"]
