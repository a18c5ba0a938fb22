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
    assert said.startswith("set-up: error: install what Debian calls iverilog g++ make")
    assert said.endswith(": it is missing, and so is apt\n")
    assert not (tree / ".venv").exists()


def test_leaves_no_half_when_a_step_fails(tree):
    """All programs are there, but the lock is none: the environment is made, and removed."""
    programs = tree / "programs"
    programs.mkdir()
    for name in ("iverilog", "c++", "make"):
        (programs / name).touch(mode=0o755)
    (tree / "locks" / "sim.txt").write_text("!\n", encoding="utf-8")
    status, said = bootstrap(tree, path=programs)
    assert status == 1
    assert said.startswith("set-up: error: 0 Python packages of locks/sim.txt failed, status 1;")
    assert not (tree / ".venv").exists()
