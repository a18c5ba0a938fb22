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
from weft.demo import Network
from weft.golden import add_bias, matmul, requantize
from weft.ip import Ip
from weft.kit.build import build

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
    network = Network.load()
    values = images = network.encode(network.images[:IMAGES])
    lines, rows = [], []
    for number, layer in enumerate(network.layers):
        n, k = layer.weights.shape
        # (a - zero point) @ b + bias = a @ b + (bias - zero point * column sums of b)
        bias = layer.bias.astype(np.int64) - layer.x_zero_point * layer.weights.sum(1, dtype=int)
        columns = ", ".join(
            f"{{{b}, {multiplier}u, {shift}, 0, {layer.y_zero_point}, {layer.low}, {layer.high}}}"
            for b, multiplier, shift in zip(
                bias, np.broadcast_to(layer.multiplier, n), np.broadcast_to(layer.shift, n),
                strict=True,
            )
        )
        lines += [
            array(f"weights{number}", "int8_t", layer.weights),
            f"static const weft_column columns{number}[] = {{{columns}}};",
        ]
        rows.append(f"    {{{k}, {n}, weights{number}, columns{number}}},")
        sums = matmul(values, layer.weights.T, a_zero_point=layer.x_zero_point)
        values = requantize(
            add_bias(sums, layer.bias), layer.multiplier, layer.shift, mode=CONFIG.requantize,
            zero_point=layer.y_zero_point, low=layer.low, high=layer.high,
        )
    width = max(layer.weights.shape[0] for layer in network.layers)
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
