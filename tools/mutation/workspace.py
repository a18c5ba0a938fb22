"""A copy of the tree in which mutants run; it imports its own packages, not the installed ones."""

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from .choice import FOLDERS

__all__ = ["Workspace"]

NOT_COPIED = {".git", ".venv", ".venv.lock", "build", "out", "dist", ".hypothesis"}
MEMORY = 8 << 30  # limit of a process's memory in bytes: a mutant may allocate without end
CPU = 120         # processor seconds of a process beyond the budget
WALL = 100        # seconds of a run beyond ten times the budget
# sitecustomize.py, which Python imports at the start of each process with this PYTHONPATH.
CUSTOMIZE = """\
import sys
from importlib.util import spec_from_file_location

FOLDERS = {folders!r}


class Mutated:
    @staticmethod
    def find_spec(name, path=None, target=None):
        folder = FOLDERS.get(name)
        return folder and spec_from_file_location(
            name, folder + "/__init__.py", submodule_search_locations=[folder]
        )


sys.meta_path.insert(0, Mutated)
"""


class Workspace:
    """A copy of a tree in a folder, with the files that its tests create.

    Parameters
    ----------
    source : Path
        The tree; it is not changed.
    home : Path
        The folder. Models from earlier runs in it are kept.
    """

    def __init__(self, source: Path, home: Path):
        self.tree, self.log = home / "tree", home / "pytest.log"
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(
            source, self.tree, symlinks=True,
            ignore=lambda folder, _: NOT_COPIED if Path(folder) == source else (),
        )
        folders = {name: str(self.tree / folder) for folder, name in FOLDERS.items()}
        (home / "sitecustomize.py").write_text(CUSTOMIZE.format(folders=folders), encoding="utf-8")
        self.environment = {
            **os.environ, "PYTHONPATH": str(home), "WEFT_BUILD": str(home / "build"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }

    @contextlib.contextmanager
    def mutated(self, mutant):
        """A context in which the copy has a mutant. Without a mutant, it is unchanged."""
        if mutant is None:
            yield
            return
        path = self.tree / mutant.file
        text, stat = path.read_text(encoding="utf-8"), path.stat()
        try:
            path.write_text(mutant.apply(text), encoding="utf-8")
            yield
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as its compiled file has it

    def failure(self, tests, *, mutant, budget, without=()):
        """Run the quick tests of files, up to the first failure; its name, None if all pass.

        Parameters
        ----------
        tests : list of str
            Test files or tests, in this order.
        mutant : Mutant or None
        budget : float
            Processor seconds; no test starts after them.
        without : iterable of str
            Tests to exclude.
        """
        command = [
            sys.executable, "-u", "-m", "pytest", "-x", "-v", "--tb=no",
            "-m", "not slow and not long", "-p", "no:cacheprovider", "-p", "no:suite",
            "-p", "tools.mutation.budget",
            *(f"--deselect={test}" for test in without), *tests,
        ]
        with self.mutated(mutant), self.log.open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                command, cwd=self.tree, env={**self.environment, "WEFT_BUDGET": str(budget)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
                seconds = int(budget) + CPU
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds))
                code = process.wait(WALL + 10 * budget)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with contextlib.suppress(ProcessLookupError):  # processes that it left
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return None if code in (0, 5) else self._failed(tests)  # 5: no test was selected

    def _failed(self, tests):
        """The failed test of the last run, else the last started test, else the first file."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        found = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", text, re.MULTILINE)
        started = re.fullmatch(r"(tests/\S+?::.+?) ?", text.rpartition("\n")[2])
        return found[1] if found else started[1] if started else tests[0]
