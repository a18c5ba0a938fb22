"""Cases on a cluster that loses a worker, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from cluster_processes import LIMIT, ClusterProcesses, make_certificate
from intruder import run_as_intruder
from regress_cases import case, work

from weft.regress.check import CaseStore
from weft.tasks.engine import Engine, security_of
from weft.tasks.store import run_items

pytestmark = pytest.mark.slow
SUPPORT = Path(__file__).resolve().parent.parent / "support"


@pytest.fixture
def cluster(tmp_path):
    made = ClusterProcesses(tmp_path)
    yield made
    made.close()


def test_a_killed_worker_costs_a_retry(cluster, tmp_path):
    first, _ = cluster.add_worker(), cluster.add_worker()
    cases = [case(rows=rows, seed=seed) for rows in (2, 3) for seed in (1, 2, 3)]
    waiting, killed, found = iter(cases), [], {}

    def arrived(one, outcome, known):
        found[one] = outcome
        if not killed:
            killed.append(first.pid)
            first.kill()

    with (
        CaseStore(tmp_path / "cases.sqlite") as store,
        Engine(work(0.3), cluster.address, security=security_of(*cluster.files)) as engine,
    ):
        while engine.workers < 2:
            time.sleep(0.1)
        run_items(
            lambda: next(waiting, None), engine, store, seconds=60, on_outcome=arrived,
            on_left=lambda *arguments: pytest.fail(),
        )
        assert {one: store.get(one) for one in cases} == found
    assert all(outcome.done for outcome in found.values()) and len(found) == 6
    runs = [tuple(line[1:3]) for line in cluster.runs()]
    assert len(set(runs)) == 6 and 6 <= len(runs) <= 7  # the lost run was repeated


def test_ctrl_c_keeps_finished_cases_and_ends_the_checks(tmp_path):
    log = tmp_path / "log"
    environment = os.environ | {
        "WEFT_BUILD": str(tmp_path / "build"), "FAKE_LOG": str(log), "PYTHONPATH": str(SUPPORT),
    }
    command = [
        sys.executable, SUPPORT / "regress_command.py", "regress", "--checks", "benches",
        "--jobs", "1", "--json", "all.json",
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    for _ in range(10 * LIMIT):
        if log.exists() and len(log.read_text().splitlines()) == 2:  # one has ended
            break
        time.sleep(0.1)
    checks = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "weft: stopped" and "Traceback" not in said
    _, alive = psutil.wait_procs(checks, timeout=LIMIT)
    assert checks and not alive
    with CaseStore(tmp_path / "build" / "regress.sqlite") as store:
        [(_, outcome)] = store.all()
    assert outcome.done
    assert '"passed": 1,' in (tmp_path / "all.json").read_text()


def test_a_cluster_with_a_key_runs_no_code_of_others(cluster, tmp_path):
    cluster.add_worker()
    key = make_certificate(tmp_path, "another")
    with Engine(work(0.3), cluster.address, security=security_of(*cluster.files)):
        for address, files in (
            (cluster.address.replace("tls:", "tcp:"), ()),
            (cluster.address, (cluster.files[0], *key)),
        ):
            assert run_as_intruder(tmp_path, address, files) != ""
            assert not (tmp_path / "intruded").exists()
    assert run_as_intruder(tmp_path, cluster.address, cluster.files) == ""  # with the key
    assert (tmp_path / "intruded").exists()
