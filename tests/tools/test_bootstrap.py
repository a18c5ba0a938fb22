"""The set-up, where it must refuse: it says why, and leaves the tree as it was."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def tree(tmp_path):
    """A copy of what the set-up reads."""
    for folder in ("tools", "locks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def bootstrap(tree, *arguments, path=None):
    """Status and errors of a run, with a PATH of ``path`` alone."""
    command = [sys.executable, tree / "tools" / "bootstrap.py", *arguments]
    env = {"PATH": str(path or tree / "nothing"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    return done.returncode, done.stderr


def test_rejects_another_purpose(tree):
    assert bootstrap(tree, "simm") == (2, "usage: bootstrap.py [sim | test | kit | train]\n")


def test_rejects_a_folder_that_is_not_its_own(tree):
    own = tree / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.touch()
    status, said = bootstrap(tree)
    assert (status, own.exists()) == (1, True)
    assert said == (
        f"set-up: error: {tree / '.venv'} must be a folder of the set-up's own, and is not:"
        " move it away\n"
    )


def test_rejects_a_machine_without_programs_and_without_apt(tree):
    status, said = bootstrap(tree)
    assert status == 1
    assert said.startswith("set-up: error: install what Debian calls iverilog g++")
    assert said.endswith(": it is missing, and so is apt\n")
    assert not (tree / ".venv").exists()


def test_leaves_no_half_when_a_step_fails(tree):
    """Nothing is missing, but the lock is damaged: the environment is made, and removed."""
    (tree / "locks" / "sim.txt").write_text("!\n", encoding="utf-8")
    code = "import bootstrap, sys; bootstrap._lacking = list; sys.exit(bootstrap.main([]))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=tree / "tools", capture_output=True, text=True
    )
    assert done.returncode == 1
    said = "set-up: error: 0 Python packages of locks/sim.txt failed, status 1;"
    assert done.stderr.startswith(said)
    assert not (tree / ".venv").exists()


def test_adding_to_an_environment_compiles_its_yosys(tree):
    """Else the first test that proves something compiles it, while others wait."""
    (tree / ".venv").mkdir()
    code = (
        "import bootstrap\n"
        "did = []\n"
        "bootstrap._stamp = lambda: {'sim': bootstrap._digest('sim')}\n"
        "bootstrap._lacking = list\n"
        "bootstrap._check_machine = lambda: None\n"
        "bootstrap._packages = lambda purpose: did.append(('packages', purpose))\n"
        "bootstrap._warm = lambda purpose: did.append(('warm', purpose))\n"
        "bootstrap.setup('test')\n"
        "assert did == [('packages', 'test'), ('warm', 'test')], did\n"
    )
    subprocess.run([sys.executable, "-B", "-c", code], cwd=tree / "tools", check=True)


def test_wraps_the_compilers_of_c_and_of_c_plus_plus(tmp_path, monkeypatch):
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
