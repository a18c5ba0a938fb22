"""Commands with limits: their output, their limits, and the end of all of their processes."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from weft.tasks.program import OverLimit, RunLimits, Stopped, run_limited

# Starts a child, writes its number, and waits. A shell does this in milliseconds.
PARENT = ["sh", "-c", "sleep 600 & echo $!; wait"]


def python(code):
    return [sys.executable, "-c", code]


def run(command, folder, limits=None, stopped=lambda: False):
    return run_limited(command, folder, limits or RunLimits(), stopped)


def wait_for_end(number):
    for _ in range(600):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        with open(f"/proc/{number}/stat") as file:
            if file.read().split()[2] == "Z":
                return
        time.sleep(0.1)
    raise AssertionError(f"process {number} must have ended")


def test_gives_exit_code_and_output(tmp_path):
    code = "import sys; print('said'); print('wrong', file=sys.stderr); sys.exit(3)"
    status, output = run(python(code), tmp_path)
    assert status == 3
    assert sorted(output.splitlines()) == ["said", "wrong"]


def test_a_command_over_its_time_ends_with_its_children(tmp_path):
    with pytest.raises(OverLimit, match=r"^the run took over 0.5 s$") as caught:
        run(PARENT, tmp_path, RunLimits(seconds=0.5))
    assert caught.value.kind == "time"
    wait_for_end(int((tmp_path / "output.txt").read_text()))


def test_a_command_over_its_memory_ends(tmp_path):
    code = "import time; kept = bytearray(200 << 20); time.sleep(600)"
    with pytest.raises(OverLimit, match="GiB of memory; its limit is 0.10 GiB$") as caught:
        run(python(code), tmp_path, RunLimits(memory=100 << 20))
    assert caught.value.kind == "memory"


def test_a_command_can_be_stopped(tmp_path):
    with pytest.raises(Stopped):
        run(PARENT, tmp_path, stopped=lambda: (tmp_path / "output.txt").stat().st_size)
    wait_for_end(int((tmp_path / "output.txt").read_text()))


def test_standard_input_ends_with_this_process(tmp_path):
    """A command that reads its standard input gets its end when the process that runs it dies."""
    runner = (
        "from pathlib import Path; from weft.tasks.program import *;"
        f"run_limited({python('import sys; sys.stdin.read()')!r}, Path({str(tmp_path)!r}),"
        " RunLimits(), lambda: print('x', flush=True) or False)"
    )
    with subprocess.Popen(python(runner), stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        [child] = psutil.Process(process.pid).children()
        process.kill()
    wait_for_end(child.pid)


# As PARENT, with a child in a session of its own; it watches its parent.
APART = """
import subprocess, time
from weft.tasks.program import end_with_parent
end_with_parent()
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


def test_processes_in_another_session_end_too(tmp_path):
    with pytest.raises(Stopped):
        run(python(APART), tmp_path, stopped=lambda: (tmp_path / "output.txt").stat().st_size)
    wait_for_end(int((tmp_path / "output.txt").read_text()))


def test_a_command_that_watches_its_parent_ends_with_it(tmp_path):
    """The runner is killed; the command then kills its child, and itself."""
    runner = (
        "from pathlib import Path; from weft.tasks.program import *;"
        f"run_limited({python(APART)!r}, Path({str(tmp_path)!r}), RunLimits(), lambda: False)"
    )
    with subprocess.Popen(python(runner)) as process:
        while not (path := tmp_path / "output.txt").exists() or not path.stat().st_size:
            time.sleep(0.1)
        [child] = psutil.Process(process.pid).children()
        process.kill()
    wait_for_end(child.pid)
    wait_for_end(int(path.read_text()))
