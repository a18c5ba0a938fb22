"""What the tests of explorations share: points of few rows, and the stand-in of the tools."""

import itertools
import math
import sys
from pathlib import Path

from weft.boards.designs import NETWORKS_UP5K
from weft.boards.devices import DEVICES
from weft.config import Config
from weft.designs import replace
from weft.explore import network_features
from weft.explore.features import dsp_blocks, ram_blocks
from weft.explore.findings import varied
from weft.explore.flow import PointSteps
from weft.explore.points import PACKED, Point, PointOutcome
from weft.explore.space import grid
from weft.network_core.config import NetworkCoreConfig
from weft.tasks.program import RunLimits

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
    link = {"LUT": 700, "FF": 650}
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


def network_core(rows=2, cols=4, depth=4, words=1024, **fields):
    """A network core for an ECP5."""
    names = {"b_words", "lines", "read_vectors"} & fields.keys()
    own = {name: fields.pop(name) for name in names}
    core = Config(
        target="ecp5", requantize="tflite", activation="none", rows=rows, cols=cols, depth=depth,
        **{"lanes": 2, "hop": 2, "dsp_cols": 1} | fields,
    )
    return NetworkCoreConfig(array=core, words=words, **own)


def network_records():
    """Packed points of network cores, whose cells follow from simple formulas."""
    shapes = itertools.product((1, 2, 3, 6), (4, 8), (2, 4))
    return [
        (Point(DEVICE, config, PACKED), network_outcome(config))
        for config in itertools.starmap(network_core, shapes)
    ]


def network_outcome(config):
    """The outcome of a packed network core."""
    core = config.array
    array = {"LUT": 40 * core.rows * (core.cols + 1) * core.depth, "FF": 90 * core.rows}
    output = {"LUT": 500 + 300 * core.lanes, "FF": 800}
    blocks = {"array": array, "output": output, "list_reader": {"LUT": 1500, "FF": 1400}}
    used = {name: sum(block[name] for block in blocks.values()) for name in ("LUT", "FF")}
    used |= {"DSP": network_features.dsp_blocks(config),
             "RAM": network_features.ram_blocks(config)}
    return PointOutcome(used=used, blocks=blocks)


def single_port_records():
    """Placed points of network cores whose memory has one port."""
    device = DEVICES["iCE40UP5K"]
    cores = [replace(NETWORKS_UP5K.config, scale_cycles=cycles) for cycles in (4, 8)]
    return [
        (Point(device, config), single_port_outcome(config))
        for core, words in itertools.product(cores, (16384, 32768))
        for config in grid(device, core, lambda config, words=words: 4 * words)
    ]


def single_port_outcome(config):
    """The outcome of such a core that was placed."""
    blocks = {"output": {"LUT": 1000, "FF": 600}, "port": {"LUT": config.words // 256, "FF": 2},
              "engine": {"LUT": 3000, "FF": 1800}}
    used = {name: sum(block[name] for block in blocks.values()) for name in ("LUT", "FF")}
    counted = network_features.SINGLE_PORT.counted
    used |= {name: count(config) for name, count in counted.items()}
    return PointOutcome(used=used, blocks=blocks, fmax=37.5, path="a to b", seconds={"place": 1.0})
