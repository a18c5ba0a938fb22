"""Placements of several designs, and the versions that workers must share."""

import zlib

import pytest

from weft.bench.measure import DesignRun, PlacementWork, placed
from weft.boards import toolchain
from weft.boards.benchmark import CriticalPath, PnrResult
from weft.boards.devices import DEVICES
from weft.boards.toolchain import Netlist, ToolchainError
from weft.tasks.engine import Engine


class SeedTools:
    """A fake toolchain: the seed is the clock, and the text of a design its LUTs."""

    def __init__(self, root, *, say):
        pass

    def synthesize(self, design, device, folder):
        (folder / "top.json").write_text(design)
        (folder / "cells.json").write_text('{"design": {"num_cells_by_type": {}}}')

    def place(self, netlist, device, seed, *, out_of_context):
        assert isinstance(netlist, Netlist) and out_of_context
        luts = int((netlist.folder / "top.json").read_text())
        if luts > 99:
            raise ToolchainError("it must fit")
        return PnrResult({"LUT": luts}, seed, CriticalPath(("a", "b"), 1.0, 2.0), 0.1)


def items(*luts):
    return [
        DesignRun(f"of {each}", zlib.compress(str(each).encode()), DEVICES["LFE5U-25F"], seed, True)
        for each in luts for seed in (3, 1, 2)
    ]


@pytest.fixture
def engine(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path))
    monkeypatch.setattr(toolchain, "Toolchain", SeedTools)
    with Engine(PlacementWork(), workers=2) as made:
        yield made


def test_results_are_in_the_order_of_the_seeds(engine):
    found = placed(engine, items(5, 7))
    assert {name: [(one.used["LUT"], one.fmax) for one in results]
            for name, results in found.items()} == {
        "of 5": [(5, 1), (5, 2), (5, 3)], "of 7": [(7, 1), (7, 2), (7, 3)],
    }


def test_a_failure_names_its_design(engine):
    with pytest.raises(ToolchainError, match="^of 100: it must fit$"):
        placed(engine, items(5, 100))


def test_workers_must_share_tools_and_passes(monkeypatch):
    found = PlacementWork().versions()
    assert toolchain.VERSIONS.items() <= found.items()
    assert len(found["passes"]) == 16


def test_equal_designs_on_other_devices_differ():
    one, other = (
        DesignRun("x", zlib.compress(b"design"), DEVICES[name], 1)
        for name in ("LFE5U-25F", "LFE5U-85F")
    )
    assert one.design != other.design
