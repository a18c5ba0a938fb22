"""Predict networks whose weights lie in the SDRAM of a board: cycles, bytes, and their bound.

    WEFT_NETWORKS=folder python -m tools.streams
"""

import dataclasses
import math
import sys

from tools.network_tables import predicted_cycles, save_table
from tools.network_writer import NONE, RELU6, Writer
from weft.golden.int4 import CODES, MAX_SCALE, nearest
from weft.models.ir import Gemm, Graph
from weft.models.loading import load
from weft.models.network_core.compiler import compile_network_core
from weft.models.onnx.int4 import GROUP
from weft.models.target import NetworkTarget, target_of
from weft.network_core.cycles import ProgramTiming

BOARD, PURPOSE = "ulx3s-85f", "networks-sdram"
FILES = "kws_int8", "resnet8_int8", "vww_96_int8", "resnet_large_int8", "mnv2_160_035"
# vww fits the chip, so it streams on a core with less memory: words of each bank.
SMALLER = 1024
# Most of the channels of vww are dead, and Weft leaves them out. The network of vww without dead
# channels has six times the weights, and streams with this memory.
ALIVE = 2048
RATE = 1.9  # bytes a cycle, of a chip of 16 bits: 2, less refreshes and rows
LIMIT = 1.15
ABOUT = f"""\
One inference on the core of `{BOARD} --for {PURPOSE}`, predicted by the cycle model of lists, with
the timing of its SDRAM. **Streamed**: bytes that an inference reads from the SDRAM. **Ideal**:
cycles of the same list if the memory answered in a cycle, with a beat a cycle. **Bound**: the
larger one of these cycles and of streamed bytes / {RATE} bytes a cycle. **Alone**: cycles of the
same core without SDRAM, if the network fits it. The networks without a file have random weights;
`tools.streams` makes them. The project wants at most {LIMIT} times the bound. The networks above it
compute their first layers for long, with large maps and few weights. Then weights for later layers
have no room on the chip, neither in the buffer B nor beside the maps, so the SDRAM is idle. Weights
that stay on the chip lower the bound, too: so compare cycles, and not only their part of it.
**int4**: what the same core with the option `int4` streams, and its cycles, if all weights but
those of depthwise layers are of int4."""


def mobilenet_v1(size: int = 128, classes: int = 1000) -> bytes:
    """MobileNetV1 with a width of 0.25 and random weights; the file."""
    w = Writer(1, (1, size, size, 3))
    x = w.convolution("x", 8, stride=2, activation=RELU6)
    for columns, stride in (
        (16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1),
    ):
        x = w.depthwise(x, stride=stride, activation=RELU6)
        x = w.convolution(x, columns, 1, activation=RELU6)
    x = w.pool(x, "AVERAGE_POOL_2D", size // 32, 1)
    return w.file(w.convolution(x, classes, 1, activation=NONE))


def mcunet(size: int = 112) -> bytes:
    """A network as MCUNet's search finds them: MobileNetV2 blocks of kernels 3, 5 and 7; the file.
    """
    w = Writer(2, (1, size, size, 3))
    x = w.convolution("x", 16, stride=2, activation=RELU6)
    x = w.convolution(w.depthwise(x, activation=RELU6), 8, 1, activation=NONE)
    channels = 8
    for expansion, kernel, columns, stride in (
        (3, 7, 16, 2), (4, 3, 16, 1), (5, 5, 24, 2), (4, 5, 24, 1), (5, 7, 40, 2), (4, 3, 40, 1),
        (4, 5, 48, 1), (4, 3, 48, 1), (5, 7, 96, 2), (4, 3, 96, 1), (5, 5, 160, 1),
    ):
        y = w.convolution(x, expansion * channels, 1, activation=RELU6)
        y = w.depthwise(y, kernel, stride, RELU6)
        y = w.convolution(y, columns, 1, activation=NONE)
        x = w.sum(y, x) if (stride, columns) == (1, channels) else y
        channels = columns
    x = w.pool(x, "AVERAGE_POOL_2D", w.shape(x)[1], 1)
    return w.file(w.convolution(x, 1000, 1, activation=NONE))


VWW_MADE = "network of vww, random weights"
MADE = {"MobileNetV1 0.25, 128 x 128": mobilenet_v1, "MCUNet-like, 112 x 112": mcunet}


def alone(network, target) -> str:
    """Cycles of the core without program memory, if the network fits it."""
    from weft.models.errors import UnfitError

    config = dataclasses.replace(target.config, program_words=0)
    try:
        program = network.compile(NetworkTarget(target.name, config))
    except UnfitError:
        return "-"
    return f"{program.cycles:,}"


def with_int4(graph: Graph) -> Graph:
    """The network with the weights of int4 next to its own; depthwise layers keep theirs."""
    def changed(node):
        if not isinstance(node, Gemm) or node.weights is None or len(node.weights) > 1:
            return node
        taps = math.prod(node.window.kernel) if node.window else 1
        rows = node.weights.reshape(taps, -1, node.weights.shape[-1]).swapaxes(1, 2)
        values = rows.reshape(-1, rows.shape[-1]) * (CODES[1] * MAX_SCALE / 127)
        found = nearest(values, GROUP).reshape(rows.shape).swapaxes(1, 2)
        return dataclasses.replace(node, weights=found.reshape(node.weights.shape))

    return dataclasses.replace(graph, nodes=tuple(map(changed, graph.nodes)))


def row(title, network, target) -> str:
    """A row of the table."""
    program = network.compile(target)
    ideal = predicted_cycles(program, ProgramTiming(1))
    bound = max(ideal, program.streamed / RATE)
    config = dataclasses.replace(target.config, int4=True)
    int4 = compile_network_core(
        with_int4(network.graph), dataclasses.replace(target, config=config)
    )
    places = "all" if program.whole else "lists, some" if program.lists_on_chip else "none"
    return (
        f"| {title} | {places} | {program.streamed:,} | {program.cycles:,} | {ideal:,}"
        f" | {bound:,.0f} | {program.cycles / bound:.2f} | {alone(network, target)}"
        f" | {int4.streamed:,} | {int4.cycles:,} |"
    )


def table(folder) -> str:
    """The table, as Markdown."""
    lines = [
        (
            "| network | on the chip | streamed | cycles | ideal | bound | cycles / bound | alone |"
            " streamed, int4 | cycles, int4 |"
        ),
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    target = target_of(BOARD, PURPOSE)
    cases = [(name, load(folder / f"{name}.tflite"), target) for name in FILES]
    for name, network, words in (
        ("vww_96_int8", load(folder / "vww_96_int8.tflite"), SMALLER),
        (VWW_MADE, load(mobilenet_v1(96, 2), "vww"), ALIVE),
    ):
        config = dataclasses.replace(target.config, words=words)
        smaller = dataclasses.replace(target, config=config)
        cases.append((f"{name}, {config.memory_bytes >> 10} KiB on the chip", network, smaller))
    cases += [(title, load(make(), title.split()[0]), target) for title, make in MADE.items()]
    for case in cases:
        lines.append(row(*case))
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> int:
    """Predict all networks; the exit code."""
    return save_table(
        "streams", table, title="Weights in the SDRAM of a board", command="make streams",
        about=ABOUT, of=["tools.streams"],
    )


if __name__ == "__main__":
    sys.exit(main())
