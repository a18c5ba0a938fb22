"""The steps of a point with a stand-in of the tools: results, files, and each kind of failure."""

import json
import zlib

import pytest
from explore_points import point, steps
from fake_flow import CRASHES, GROWS, HANGS, OVERFULL

from weft.explore.flow import classify
from weft.explore.points import PACKED
from weft.sim.cache import folder


@pytest.fixture(autouse=True)
def build(monkeypatch, tmp_path):
    """A build folder that stays empty."""
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "build"))
    yield
    assert list((folder() / "explore").glob("*")) == []


def test_a_point_is_synthesized_then_placed():
    netlist = steps().synthesize(point())
    assert netlist.outcome.done
    assert sorted(netlist.files) == ["cells.json", "top.json"]
    placed = steps().place(netlist, point(seed=4))
    assert placed.outcome.used == {"LUT": 2000, "FF": 1800, "DSP": 2, "RAM": 12}
    assert placed.outcome.fmax == 104
    assert placed.outcome.seconds == {"synthesis": 0.1, "place": 0.2}
    [cell] = json.loads(zlib.decompress(placed.files["layout.json"]))
    assert cell == ["array", "LUT", 3, 4, "SLICEA.LUT0"]


def test_a_point_without_a_seed_is_packed():
    made = steps()
    task = made.task(point(seed=PACKED))
    assert task.key.startswith("pack-") and task.function == made.pack
    packed = made.pack(made.synthesize(point()), point(seed=PACKED))
    assert packed.outcome.done and packed.outcome.used["LUT"] == 2000
    assert packed.outcome.fmax == 0 and packed.files == {}
    assert packed.outcome.seconds == {"synthesis": 0.1}


@pytest.mark.parametrize("rows, limits, failure, detail", [
    (HANGS, {"seconds": 0.3}, "time", "synthesize: the run took over 0.3 s"),
    (GROWS, {"memory": 200 << 20}, "memory", "its limit is 0.20 GiB"),
    (CRASHES, {}, "crash", "synthesize: exit code 1 without a result: the tool has a bug"),
    (OVERFULL, {}, "overfull", "it needs DSP 30 of 28"),
])
def test_each_failure_has_its_reason(rows, limits, failure, detail):
    made = steps(**limits)
    netlist = made.synthesize(point(rows=rows))
    assert netlist.outcome.failure == failure
    assert netlist.outcome.detail.endswith(detail)
    assert made.place(netlist, point(rows=rows)) == netlist


@pytest.mark.parametrize("text, kind", [
    ("the design does not fit the LFE5U-25F: it needs LUT 30,000 of 24,288", "overfull"),
    ("nextpnr-ecp5 failed while placing and routing the design: ERROR: Routing design failed",
     "unroutable"),
    ("nextpnr-ice40 failed while placing and routing the design: ERROR: Unable to place cell 'x'",
     "unroutable"),
    ("yosys failed while synthesizing the design: no output; its status is 1", "crash"),
    ("cannot run nextpnr-ecp5 in out: no such file", "crash"),
])
def test_messages_of_the_tools_are_classified(text, kind):
    assert classify(text) == kind
