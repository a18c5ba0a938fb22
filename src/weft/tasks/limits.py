"""Runs a command with a time limit and a memory limit, and ends all of its processes."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["RunLimits", "OverLimit", "Stopped", "end_with_parent", "run_limited"]

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
