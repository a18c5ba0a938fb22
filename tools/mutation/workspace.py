"""A copy of the tree in which mutants run; it imports its own packages, not the installed ones."""

import contextlib
import fcntl
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from .active_time import ActiveTime
from .choice import FOLDERS

__all__ = ["Run", "Workspace", "fingerprint"]

NOT_COPIED = {
    ".git", ".venv", ".venv.lock", "build", "out", "dist", ".hypothesis", ".pytest_cache",
    ".ruff_cache",
}
MEMORY = 8 << 30  # limit of a process's memory in bytes: a mutant may allocate without end
LOOK = 2          # seconds between two checks of a process
ERA = 10 ** 9     # seconds; the date of changed files; all dates are after 1980
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


@dataclass
class Run:
    """The outcome of a pytest run.

    Attributes
    ----------
    code : int or None
        Exit status of pytest; None if it was killed by the time limit.
    test : str or None
        The failed test, or the running test when pytest ended, if known.
    why : str
        The start of the failure message.
    cpu : float
        Processor seconds of all processes of the run.
    durations : dict
        By test file: seconds of all tests, and of the longest test.
    """

    code: int | None
    test: str | None = None
    why: str = ""
    cpu: float = 0
    durations: dict = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.code in (0, 5)  # 5: no test was selected


def fingerprint(root: Path) -> str:
    """8 hexadecimal digits that identify all sources and tests of a tree."""
    digest = hashlib.sha256()
    for folder in (*FOLDERS, "tests"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(root).as_posix().encode() + b"\0")
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:8]


class Workspace:
    """A copy of a tree in a folder, with the files that its tests create.

    It is a context manager; no other run can use the folder meanwhile.

    Parameters
    ----------
    source : Path
        The tree; it is not changed.
    home : Path
        The folder. Models from earlier runs in it are kept.

    Attributes
    ----------
    slow : bool
        Whether the tree's tests have the marker ``slow``.
    """

    def __init__(self, source: Path, home: Path):
        self.home, self.tree = home, home / "tree"
        self.builds = home / "build"
        self._stopped = False
        home.mkdir(parents=True, exist_ok=True)
        self._lock = (home / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise RuntimeError(f"another run uses {home}; wait until it ends") from None
        shutil.rmtree(self.tree, ignore_errors=True)

        def excluded(folder, names):
            top = Path(folder) == source
            return {n for n in names if n == "__pycache__" or (top and n in NOT_COPIED)}

        shutil.copytree(source, self.tree, ignore=excluded, symlinks=True)
        site = home / "site"
        site.mkdir(exist_ok=True)
        folders = {
            package: str(self.tree / folder) for folder, package in FOLDERS.items()
            if (self.tree / folder).is_dir()
        }
        (site / "sitecustomize.py").write_text(
            CUSTOMIZE.format(folders=folders), encoding="utf-8"
        )
        project = tomllib.loads((self.tree / "pyproject.toml").read_text(encoding="utf-8"))
        options = project.get("tool", {}).get("pytest", {}).get("ini_options", {})
        self.slow = any(marker.startswith("slow:") for marker in options.get("markers", []))
        self.environment = {
            **os.environ, "PYTHONPATH": str(site), "WEFT_BUILD": str(self.builds),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }

    def __enter__(self):
        return self

    def stop(self):
        """End the running tests, from another thread; no tests can run afterwards."""
        self._stopped = True

    def __exit__(self, *error):
        self._lock.close()

    @contextlib.contextmanager
    def mutated(self, mutant):
        """A context in which the copy has a mutant.

        Models that are built in it are deleted afterwards: no other source has their key.
        """
        path = self.tree / mutant.file
        source = path.read_text(encoding="utf-8")
        built = self._built()
        try:
            self._write(path, mutant.apply(source), ERA + 1 + int(mutant.key[:7], 16))
            yield
        finally:
            self._write(path, source, ERA)
            shutil.rmtree(self.tree / ".hypothesis", ignore_errors=True)
            for new in self._built() - built:
                if new.is_dir():
                    shutil.rmtree(new, ignore_errors=True)
                else:
                    new.unlink(missing_ok=True)

    @staticmethod
    def _write(path, text, when):
        """Write a source with its own date: Python identifies compiled files by date and size."""
        path.write_text(text, encoding="utf-8")
        os.utime(path, (when, when))

    def _built(self):
        """All built files except Verilator's runtime, which does not depend on the sources."""
        cache = self.builds / "cache"
        found = {*self.builds.glob("*"), *self.builds.glob("*/*"), *cache.glob("*/*")}
        return {path for path in found if path not in {cache, cache / "runtime"}
                and path.parent != cache / "runtime"}

    def run(self, tests, *, limit: float, marks="", without=()) -> Run:
        """Run tests, by file or name, in a new process, up to the first failure.

        Parameters
        ----------
        limit : float
            Seconds by `ActiveTime`. If a test takes longer, the process is killed.
        marks : str
            Selects tests, as ``pytest -m`` does.
        without : iterable of str
            Tests to exclude.
        """
        log, report = self.home / "pytest.log", self.home / "junit.xml"
        report.unlink(missing_ok=True)
        command = [
            sys.executable, "-u", "-m", "pytest", "-x", "-v", "--tb=no",
            "-p", "no:cacheprovider", f"--junitxml={report}", *(["-m", marks] if marks else []),
            *(f"--deselect={test}" for test in without), *tests,
        ]
        with log.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(
                command, cwd=self.tree, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )
            try:
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
                code, cpu = self._wait(process, log, limit)
                if self._stopped:
                    raise RuntimeError("the run was stopped")
            finally:
                with contextlib.suppress(ProcessLookupError):  # processes that it left
                    os.killpg(process.pid, signal.SIGKILL)
        test, why = self._failure(log.read_text(encoding="utf-8", errors="replace"))
        return Run(code, test, why, cpu, self._durations(report))

    def _wait(self, process, log, limit):
        """Exit status, or None after a timeout, and processor time of a process.

        The process is killed if its log does not grow for ``limit`` seconds.
        """
        size, idle, late = 0, ActiveTime(process.pid), False
        last = time.monotonic()
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return None if late else process.returncode, usage.ru_utime + usage.ru_stime
            if self._stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            now = time.monotonic()
            if now - last >= LOOK:
                idle.add(now - last)
                last = now
                if log.stat().st_size != size:
                    size = log.stat().st_size
                    idle.reset()
                elif not late and idle.spent > limit:
                    late = True
                    os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.05)

    @staticmethod
    def _failure(text):
        """The failed test in the summary, else the last started test, and the message."""
        found = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - (.*))?$", text, re.MULTILINE)
        if found:
            return found[1], (found[2] or "")[:200]
        started = re.fullmatch(r"(tests/\S+?::.+?) ?", text.rpartition("\n")[2])
        return (started[1] if started else None), ""

    @staticmethod
    def _durations(report):
        found = {}
        if report.is_file():
            with contextlib.suppress(ElementTree.ParseError):  # killed while it was written
                for case in ElementTree.parse(report).iter("testcase"):
                    parts = case.get("classname", "").split(".")
                    last = next((i for i, p in enumerate(parts) if p.startswith("test_")), None)
                    if last is not None:
                        file = "/".join(parts[: last + 1]) + ".py"
                        whole, longest = found.get(file, (0, 0))
                        seconds = float(case.get("time", 0))
                        found[file] = whole + seconds, max(longest, seconds)
        return found
