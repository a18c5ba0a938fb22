"""The tables of ``docs/chip.md``."""

from collections.abc import Mapping
from pathlib import Path

from tools.chip_price.cost import NetworkCost, network_cost
from tools.chip_price.designs import DESIGNS, ChipDesign, choices
from tools.chip_price.layers import NO_PADDING, ChipLayer, layers_of
from tools.chip_price.link import link_bytes
from tools.chip_price.resources import MemoryNeed, device_blocks, dsp_blocks, memory_need
from tools.network_tables import replaced
from weft.network.ir import Graph, Window
from weft.network.loading import load

__all__ = ["NETWORKS", "PATH", "page", "tables"]

PATH = Path(__file__).parents[2] / "docs" / "chip.md"
NETWORKS = {
    "ad01": "ad01_int8", "kws": "kws_int8", "resnet8": "resnet8_int8", "vww": "vww_96_int8",
}
# Network, key of `DESIGNS`, most microseconds from START to done, most bytes over the link.
GOALS = [
    ("ad01", "batch1", 15, 1500), ("kws", "networks", 130, 700),
    ("resnet8", "networks", 320, 3400), ("vww", "networks", 500, 29500),
    ("kws", "networks-25f", 350, 700),
]


def page(folder: Path) -> str:
    """The text of the page with new tables."""
    graphs = {name: load(folder / f"{file}.tflite").graph for name, file in NETWORKS.items()}
    return replaced(PATH, "chip-price", tables(graphs))


def tables(graphs: Mapping[str, Graph]) -> str:
    """All tables, as Markdown."""
    lines = [
        "### Goals", "",
        "| network | preset | cycles | clock | us | goal | slowest clock | link bytes | goal |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
        *(_goal(graphs[name], name, *rest) for name, *rest in GOALS), "",
        "### Resources", "",
        "| preset | " + " | ".join(_resources(DESIGNS["networks"])) + " | one-step layer |",
        "|---|" + "---:|" * (len(_resources(DESIGNS["networks"])) + 1),
        *(_parts(key, design) for key, design in DESIGNS.items()), "",
        "### Choices", "",
        "| design | " + " | ".join(graphs) + " |",
        "|---|" + "---|" * len(graphs),
        *(_choice(design, graphs) for design in choices()),
    ]
    for name, key, *_ in GOALS:
        lines += ["", f"### {name} on `{key}`", "", *_layers(graphs[name], DESIGNS[key])]
    return "\n".join(lines)


def _priced(
    graph: Graph, design: ChipDesign,
) -> tuple[list[ChipLayer], NetworkCost, MemoryNeed, int]:
    """Layers of a network, their cost, the memory they take, and the bytes over the link."""
    layers, received = layers_of(graph, design.config.cols, design.config.depth)
    cost = network_cost(layers, design)
    need = memory_need(layers, cost, design)
    return layers, cost, need, link_bytes(layers[0].sent, received)


def _goal(graph, name, key, most, most_bytes):
    design = DESIGNS[key]
    _, cost, _, sent = _priced(graph, design)
    return (
        f"| {name} | `{key}` | {cost.cycles:,} | {design.clock} MHz"
        f" | {cost.cycles / design.clock:.1f} | {most} | {cost.cycles / most:.0f} MHz"
        f" | {sent:,} | {most_bytes:,} |"
    )


def _resources(design):
    parts = device_blocks(design, network_adds=True)
    return {
        **{f"{name} RAM": count for name, count in parts.items()},
        **{f"{name} DSP": count for name, count in dsp_blocks(design).items()},
    }


def _parts(key, design):
    window = Window((1, 1), (1, 1), (1, 1), NO_PADDING, (1, 1), (1, 1))
    layer = ChipLayer("one step", window, design.config.depth, design.config.cols, False, 0, 1)
    cycles = network_cost([layer], design).layers[0].cycles
    return f"| `{key}` | " + " | ".join(map(str, _resources(design).values())) + f" | {cycles} |"


def _choice(design, graphs):
    cells = []
    for graph in graphs.values():
        _, cost, need, _ = _priced(graph, design)
        cells.append(f"{cost.cycles:,} ({cost.cycles / design.clock:,.0f} us), {need.text}")
    return f"| {design.name} | " + " | ".join(cells) + " |"


def _layers(graph, design):
    layers, cost, need, _ = _priced(graph, design)
    yield (
        f"Maps {need.maps:,} bytes, weights {need.weights:,} ({cost.weights}), descriptors and log"
        f" {need.jobs:,};\nblock RAMs, memory + others: {need.text}."
    )
    yield ""
    yield "| layer | output | core | fetch | read | write | fill | latency | cycles | bound |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---|"
    for entry in cost.layers:
        height, width = entry.layer.window.output
        counts = (
            entry.core, entry.fetch, entry.read, entry.write, entry.fill, entry.latency,
            entry.cycles,
        )
        yield (
            f"| {entry.layer.name} | {height} x {width} x {entry.layer.columns} | "
            + " | ".join(f"{count:,}" for count in counts) + f" | {entry.bound} |"
        )
