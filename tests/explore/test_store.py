"""The store: outcomes survive crashes, damage and a full disk, and two explorations share it."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import zlib

import pytest
from explore_points import point

from weft.explore.points import PointOutcome, PointStore
from weft.tasks import store
from weft.tasks.store import Claimant, StoreError, _start_of

ONE, TWO = Claimant("one", 1, ""), Claimant("two", 2, "")
DONE = PointOutcome(used={"LUT": 10}, fmax=123.4, path="a to b")


@contextlib.contextmanager
def sleeping_process():
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "points.sqlite"


def test_keeps_outcomes(path):
    layout = zlib.compress(json.dumps([["array", "LUT", 1, 2, "lc0"]]).encode())
    failed = PointOutcome(failure="overfull", detail="DSP 30 of 28")
    with PointStore(path) as store:
        assert store.get(point()) is None
        store.record(point(), DONE, layout)
        store.record(point(rows=3), failed)
    with PointStore(path) as store:
        assert store.get(point()) == DONE
        assert store.layout(point()) == [["array", "LUT", 1, 2, "lc0"]]
        assert store.layout(point(rows=3)) is None
        assert store.all() == [(point(), DONE), (point(rows=3), failed)]


def test_the_first_outcome_stays(path):
    with PointStore(path) as store:
        store.record(point(), DONE)
        store.record(point(), PointOutcome(failure="crash"))
        assert store.get(point()) == DONE


def test_two_explorations_share_it(path):
    with PointStore(path, owner=ONE) as one, PointStore(path, owner=TWO) as two:
        assert one.claim(point(), 100) is None
        assert two.claim(point(), 100) == ONE
        assert one.claim(point(), 100) is None
        assert two.claim(point(seed=2), 100) is None
        one.record(point(), DONE)
        assert two.get(point()) == DONE


def test_a_claim_ends(path):
    with PointStore(path, owner=ONE) as one, PointStore(path, owner=TWO) as two:
        assert one.claim(point(), -1) is None
        assert two.claim(point(), 100) is None
        two.close()
        assert one.claim(point(), 100) is None


def test_claims_of_a_killed_process_end(path):
    """Both of a store that opens later, and of one that is open."""
    claim = (
        "import os; from explore_points import *; from weft.explore.points import PointStore;"
        f"assert PointStore({str(path)!r}).claim(point(), 1e6) is None; os.kill(os.getpid(), 9)"
    )
    folder = os.path.dirname(sys.modules["explore_points"].__file__)
    environment = os.environ | {"PYTHONPATH": folder}
    with PointStore(path) as opened:
        killed = subprocess.run([sys.executable, "-c", claim], env=environment, timeout=600)
        assert killed.returncode == -9
        assert opened.claim(point(), 100) is None
    with PointStore(path) as store:
        assert store.claim(point(), 100) is None


def test_a_number_that_another_process_has_now_claims_nothing(path):
    """The process that claimed has ended; this process got its number."""
    here = Claimant.here()
    assert here.alive and here.number == os.getpid() and Claimant.of(str(here)) == here
    for start in ("", "another boot", here.start + "0"):
        ended = Claimant(here.host, here.number, start)
        assert ended.alive is False
        opened = PointStore(path, owner=ended)
        assert opened.claim(point(), 1e6) is None
        with PointStore(path) as store:
            assert opened.claim(point(), 1e6) is None
            assert store.claim(point(), 100) is None
        opened.close()


def test_a_process_of_another_machine_keeps_its_claim(path):
    far = Claimant("far", os.getpid(), Claimant.here().start)
    opened = PointStore(path, owner=far)
    assert opened.claim(point(), 1e6) is None
    with PointStore(path) as store:
        assert store.claim(point(), 100) == far
    assert far.alive is None
    assert far.describe() == f"left to process {os.getpid()} of far, which may have ended"
    opened.close()


def test_a_process_that_waits_for_its_parent_has_ended():
    with sleeping_process() as process:
        one = Claimant(os.uname().nodename, process.pid, _start_of(process.pid))
        assert one.alive
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert one.alive is False
        assert one.describe() == f"left to process {process.pid}, which ended without an outcome"


def test_knows_a_process_on_a_system_without_proc(monkeypatch, tmp_path):
    monkeypatch.setattr(store, "PROC", tmp_path)
    with sleeping_process() as process:
        one = Claimant(os.uname().nodename, process.pid, _start_of(process.pid))
        assert one.alive and float(one.start) > 1e9
        assert Claimant(one.host, one.number, "1.00").alive is False
        process.kill()
    assert one.alive is False


def test_remembers_the_last_exploration(path):
    with PointStore(path) as store:
        assert store.last() is None
        store.begin({"board": "icebreaker"})
        store.begin({"board": "ulx3s-25f"})
        assert store.last() == {"board": "ulx3s-25f"}


def test_a_damaged_file_is_kept_aside(path):
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 1000)
    said = []
    with PointStore(path, say=said.append) as store:
        store.record(point(), DONE)
    aside = path.with_name("points.sqlite.damaged-1")
    assert aside.read_bytes() == b"not a database" * 1000
    [text] = said
    assert text == (
        f"the store {path} is damaged (file is not a database); it is kept as {aside}, and a new"
        " one has the 0 outcomes that could be read"
    )
    path.write_bytes(b"again")
    with PointStore(path, say=said.append):
        pass
    assert path.with_name("points.sqlite.damaged-2").exists()


def test_points_that_can_be_read_are_saved(path):
    with PointStore(path) as store:
        for rows in range(1, 40):
            store.record(point(rows=rows), DONE, os.urandom(3000))
    data = bytearray(path.read_bytes())
    data[-20_000:-16_000] = os.urandom(4000)
    path.write_bytes(data)
    said = []
    with PointStore(path, say=said.append) as store:
        saved = len(store.all())
    assert len(said) == 1 and f"has the {saved} outcomes" in said[0]
    assert 10 < saved < 40


def test_says_that_the_folder_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"points.sqlite cannot be used: .*; check its folder$"):
        PointStore(tmp_path / "file" / "points.sqlite")


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder]
    if os.geteuid() or not shutil.which("mount") or subprocess.run(mount).returncode:
        pytest.skip("a small file system can be mounted by root only")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_loses_nothing(small_disk):
    recorded = []
    with PointStore(small_disk / "points.sqlite") as store:
        with pytest.raises(StoreError, match="full; free some space and run the command again"):
            for seed in range(200):
                recorded.append(point(seed=seed))
                store.record(recorded[-1], DONE, os.urandom(50_000))
        # The outcome that met the full disk is written, too.
        assert [found for found, _ in store.all()] == recorded
    with pytest.raises(StoreError, match="free some space"):
        PointStore(small_disk / "points.sqlite")
