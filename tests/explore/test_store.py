"""The store: outcomes survive crashes, damage and a full disk, and two explorations share it."""

import json
import os
import shutil
import subprocess
import sys
import zlib

import pytest
from explore_points import point

from weft.explore.points import PointOutcome
from weft.explore.store import PointStore
from weft.tasks.store import StoreError

DONE = PointOutcome(used={"LUT": 10}, fmax=123.4, path="a to b")


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
    with PointStore(path, owner="one:1") as one, PointStore(path, owner="two:2") as two:
        assert one.claim(point(), 100)
        assert not two.claim(point(), 100)
        assert one.claim(point(), 100)
        assert two.claim(point(seed=2), 100)
        one.record(point(), DONE)
        assert two.get(point()) == DONE
        assert not two.claim(point(), 100)


def test_a_claim_ends(path):
    with PointStore(path, owner="one:1") as one, PointStore(path, owner="two:2") as two:
        assert one.claim(point(), -1)
        assert two.claim(point(), 100)
        two.close()
        assert one.claim(point(), 100)


def test_claims_of_a_killed_process_end(path):
    claim = (
        "import os; from explore_points import *; from weft.explore.store import PointStore;"
        f"assert PointStore({str(path)!r}).claim(point(), 1e6); os.kill(os.getpid(), 9)"
    )
    folder = os.path.dirname(sys.modules["explore_points"].__file__)
    environment = os.environ | {"PYTHONPATH": folder}
    killed = subprocess.run([sys.executable, "-c", claim], env=environment, timeout=600)
    assert killed.returncode == -9
    with PointStore(path) as store:
        assert store.claim(point(), 100)


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
