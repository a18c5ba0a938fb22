"""What the tests of explorations share: points of few rows, and the stand-in of the tools."""

import math
import sys
from pathlib import Path

from weft.boards.devices import DEVICES
from weft.config import Config
from weft.explore.features import dsp_blocks, ram_blocks
from weft.explore.points import Point, PointOutcome
from weft.explore.recorded import varied
from weft.explore.steps import PointSteps
from weft.tasks.limits import RunLimits

FAKE = sys.executable, str(Path(__file__).with_name("fake_flow.py"))
DEVICE = DEVICES["LFE5U-25F"]


def point(rows=2, seed=1):
    """A point on an LFE5U-25F."""
    return Point(DEVICE, Config(target="ecp5", rows=rows, cols=2), seed)


def steps(*arguments, **limits):
    """PointSteps of the stand-in."""
    return PointSteps(RunLimits(**limits), (*FAKE, *map(str, arguments)))


def records(count=30, device=DEVICE, seed=3):
    """Points of the space, with outcomes that follow from their Configs by simple formulas."""
    points, found = varied(device, seed), {}
    while len(found) < count:
        made = next(points)
        found.setdefault(made.key, (made, measured(made.config, made.seed)))
    return list(found.values())


def measured(config, seed=1):
    """An outcome whose area and clock follow from the Config."""
    array = {"LUT": 50 * config.peak + 30 * config.rows * config.cols, "FF": 40 * config.peak}
    control = {"LUT": 900 + 20 * config.jobs, "FF": 500}
    link = {"LUT": 700, "FF": 650, "RAM": 2}
    blocks = {
        "array": array, "job_table": control, "link": link,
        "feeder": {"FF": 100, "RAM": ram_blocks(config)},
    }
    used = {
        name: sum(block.get(name, 0) for block in blocks.values()) for name in ("LUT", "FF", "RAM")
    }
    used["DSP"] = dsp_blocks(config)
    fmax = 160 - 5 * math.log2(config.peak) + seed
    path = "a to b, 1.0 ns in cells, 2.0 ns between them"
    return PointOutcome(used=used, blocks=blocks, fmax=fmax, path=path, seconds={"place": 1.0})
