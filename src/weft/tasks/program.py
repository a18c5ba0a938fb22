"""A task that is a program in a folder of its own, with limits for its time and memory.

Files come in and go out as bytes.

An engine can so move the files from one machine to another.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from weft.files import write_bytes
from weft.sim.cache import folder

__all__ = [
    "OverLimit", "RunLimits", "StepResult", "Stopped", "end_with_parent", "run_limited",
    "run_program",
]


POLL = 0.2  # seconds between two checks
OUTPUT = 4000  # last characters of the output that are kept


@dataclass(frozen=True)
class RunLimits:
    """What a run may take.

    Attributes
    ----------
    seconds : float
        Time of one run.
    memory : int
        Bytes of resident memory of all processes of the run together.
    """

    seconds: float = 3600
    memory: int = 4 << 30


class OverLimit(Exception):
    """A run exceeded a limit; ``kind`` is ``time`` or ``memory``, the message has the numbers."""

    def __init__(self, kind: str, text: str):
        super().__init__(text)
        self.kind = kind


class Stopped(Exception):
    """The run was stopped on request."""


def run_limited(
    command: Sequence[str], folder: Path, limits: RunLimits, stopped: Callable[[], bool]
) -> tuple[int, str]:
    """Run ``command`` in ``folder``; its exit code, and the end of its output.

    The command gets a pipe as standard input that closes when this process ends in any way: a
    command that reads it can end then, too.

    Raises
    ------
    OverLimit
        If the command exceeded a limit. All of its processes are killed.
    Stopped
        If ``stopped()`` became true. All of its processes are killed.
    """
    with open(folder / "output.txt", "w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _watch(process, limits, stopped)
        finally:
            _kill(process.pid)
            process.wait()
            process.stdin.close()
        output.seek(0)
        return process.returncode, output.read()[-OUTPUT:]


def end_with_parent() -> None:
    """End this process, a command of `run_limited`, and its processes when its parent is gone."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent():
    sys.stdin.read()
    if os.getpgrp() == os.getpid():  # `run_limited` made a group for this process
        _kill(os.getpid())


def _kill(pid):
    """Kill a process, its group, and its descendants in other groups."""
    descendants = []
    with contextlib.suppress(psutil.NoSuchProcess):
        descendants = psutil.Process(pid).children(recursive=True)
    for each in descendants:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _watch(process, limits, stopped):
    """Wait for the end of the process; raise OverLimit or Stopped."""
    start = time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL)
            return
        if stopped():
            raise Stopped
        if time.monotonic() - start > limits.seconds:
            raise OverLimit("time", f"the run took over {limits.seconds:g} s")
        used = _resident_bytes(process.pid)
        if used > limits.memory:
            raise OverLimit(
                "memory",
                f"the run took {used / 2**30:.2f} GiB of memory; its limit is"
                f" {limits.memory / 2**30:.2f} GiB",
            )


def _resident_bytes(pid):
    """Resident memory of a process and its descendants."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += each.memory_info().rss
    return total


@dataclass(frozen=True)
class StepResult:
    """The result of a program.

    Attributes
    ----------
    outcome : object
        What came of it. It has ``failure``, a text that is empty after a success.
    files : dict of bytes
        By name, compressed with zlib.
    """

    outcome: Any
    files: dict[str, bytes] = field(default_factory=dict)


def run_program(
    command: Sequence[str], files: dict[str, bytes], outcome_type: Callable[..., Any], *,
    subfolder: str, title: str, limits: RunLimits, stopped: Callable[[], bool],
    outputs: Callable[[Any], Sequence[str]],
) -> StepResult:
    """Run a program that writes ``outcome.json`` into its folder.

    Parameters
    ----------
    command : sequence of str
    files : dict of bytes
        The input files by name, compressed with zlib.
    outcome_type : callable
        Makes the outcome from the fields of ``outcome.json``. It must also take ``failure`` and
        ``detail`` alone: ``time`` or ``memory`` if the program exceeds a limit, ``crash`` if it
        ends without an outcome.
    subfolder : str
        Name of the parent folder, in Weft's build folder.
    title : str
        Name of the run, for messages.
    limits : RunLimits
    stopped : callable
        Whether the run must end early.
    outputs : callable
        The names of the output files, from the outcome.

    Raises
    ------
    weft.tasks.program.Stopped
        If ``stopped()`` became true.
    """
    parent = folder() / subfolder
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as name:
        here = Path(name)
        for file, data in files.items():
            write_bytes(here / file, zlib.decompress(data))
        try:
            status, output = run_limited(command, here, limits, stopped)
        except OverLimit as over:
            return StepResult(outcome_type(failure=over.kind, detail=f"{title}: {over}"))
        try:
            outcome = outcome_type(**json.loads((here / "outcome.json").read_text("utf-8")))
            found = {
                file: zlib.compress((here / file).read_bytes(), 6) for file in outputs(outcome)
            }
        except (OSError, TypeError, ValueError):
            last = output.strip().splitlines()[-1:] or ["no output"]
            detail = f"{title}: exit code {status} without a result: {last[0]}"
            return StepResult(outcome_type(failure="crash", detail=detail))
        return StepResult(outcome, found)
