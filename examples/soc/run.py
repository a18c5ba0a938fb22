"""A network on a core in a RISC-V SoC, in simulation: python examples/soc/run.py [build folder]

It generates the core with its C driver, compiles the firmware that classifies images with the
driver, and simulates the SoC. docs/soc.md explains each step.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
from riscv_soc import FOLDER, compile_firmware, compile_soc

from weft import Config
from weft.demo import digits_images, digits_network
from weft.golden import add_bias, matmul, requantize
from weft.ip import Ip
from weft.kit.build import build
from weft.models.program_session import quantized
from weft.quantize import tflite_scale

__all__ = ["CONFIG", "IMAGES", "main", "network_header"]

CONFIG = Config(rows=2, cols=4, a_words=256, b_words=256, activation="none")
IMAGES = 16
TIMEOUT = 600  # seconds for the simulation


def array(name: str, kind: str, values) -> str:
    """The definition of a C array of integers."""
    text = ", ".join(map(str, np.ravel(values)))
    return f"static const {kind} {name}[] __attribute__((aligned(4))) = {{{text}}};"


def network_header() -> tuple[str, list[int]]:
    """The file ``network.h``, and the digits that the golden model gives."""
    graph = digits_network("int8").graph
    images = quantized(digits_images()[0][:IMAGES], graph.tensors[0], graph.source)
    values, lines, rows, width = images, [], [], 0
    for number, layer in enumerate(graph.nodes):
        weights, given = layer.weights[0], layer.requantization
        k, n = weights.shape
        # (a - zero point) @ b + bias = a @ b + (bias - zero point * column sums of b)
        bias = layer.bias - layer.x_zero * weights.sum(0, dtype=int)
        multiplier, shift = tflite_scale(given.x_scale, given.w_scale, given.y_scale)
        columns = ", ".join(
            f"{{{c}, {m}u, {s}, 0, {given.zero}, {given.low}, {given.high}}}"
            for c, m, s in zip(bias, multiplier, shift, strict=True)
        )
        lines += [
            array(f"weights{number}", "int8_t", weights.T),
            f"static const weft_column columns{number}[] = {{{columns}}};",
        ]
        rows.append(f"    {{{k}, {n}, weights{number}, columns{number}}},")
        sums = matmul(values, weights, a_zero_point=layer.x_zero)
        values = requantize(
            add_bias(sums, layer.bias.astype(np.int32)), multiplier, shift,
            mode=CONFIG.requantize, zero_point=given.zero, low=given.low, high=given.high,
        )
        width = max(width, n)
    text = [
        '#include "weft.h"',
        f"enum {{ IMAGES = {IMAGES}, LAYERS = {len(rows)}, MAX_WIDTH = {width} }};",
        "struct layer {", "    int k, n;", "    const int8_t *weights; /* [n, k] */",
        "    const weft_column *columns;", "};",
        *lines, array("images", "int8_t", images), array("expected", "int8_t", values),
        "static const struct layer layers[] = {", *rows, "};", "",
    ]
    return "\n".join(text), values.argmax(1).tolist()


def main(folder="build/soc") -> int:
    """Build and run the SoC; 0 if the digits are the golden model's, else 1."""
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    ip = Ip(config=CONFIG, bus="axi")
    files = build(ip)  # the IP kit: path -> contents
    driver = {Path(name).name: data for name, data in files.items() if name.startswith("driver/")}
    for name, data in driver.items():
        (folder / name).write_bytes(data)
    header, digits = network_header()
    (folder / "network.h").write_text(header, encoding="utf-8")
    sources = [FOLDER / "firmware.c", *(folder / name for name in driver if name.endswith(".c"))]
    compile_firmware(folder, sources, [])
    program = compile_soc(folder, ip, files[f"{ip.name}.v"])
    done = subprocess.run([program], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    lines = done.stdout.splitlines()
    numbers = [int(line) for line in lines if line.isdigit()]
    layers = len(numbers) - IMAGES
    for number, cycles in enumerate(numbers[: max(layers, 0)], 1):
        print(f"layer {number}: {cycles:,} cycles")
    print("digits:", *numbers[layers:])
    if "exit 0" not in lines or numbers[layers:] != digits:
        print(f"the firmware failed; its output: {lines[-2:]}", file=sys.stderr)
        return 1
    print("All results equal the golden model's.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
