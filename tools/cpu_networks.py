"""Time networks on a RISC-V processor: in plain C, with the C driver, and as a list of the core.

    python -m tools.cpu_networks measure WAY [NETWORK]
    python -m tools.cpu_networks interrupts
    python -m tools.cpu_networks table

``measure`` simulates the SoC of ``examples/soc`` with an inference of NETWORK, a TFLite file (by
default ``examples/digits_cnn.tflite``), checks the output and writes the cycles to
``build/interop/cpu``. WAY is one of:

    plain       the C code of `weft compile --c`, with its products in plain C
    axi, dma    the same code, with the generated driver and a core behind this bus
    list        one list of a network core, which lies in the memory of the processor

``interrupts`` runs ``examples/two_cores.c``, two cores with a network each, and checks both
outputs. ``table`` makes the record of all cycles.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import weft
from tools import results
from tools.cpu import CONFIGS, OUTPUT, ROOT, SOURCES, check_exit, run
from weft.config import Config
from weft.host import GoldenTransport
from weft.ip import Ip, identifier
from weft.models.c_code import c_files, network_core_c_files
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.ip import NetworkIp

__all__ = ["NETWORKS", "WAYS", "main", "networks"]

DIGITS = ROOT / "examples" / "digits_cnn.tflite"
# Of TensorFlow Lite Micro and MLPerf Tiny, in the folder WEFT_NETWORKS.
NETWORKS = "micro_speech_int8", "kws_int8", "resnet8_int8"
CONFIG = "8x8x1"
# Plain C needs no core; with one column, no product has weights that are 0 by construction.
PLAIN = Config(rows=1, cols=1, activation="none")
# A network core with as many MAC/cycle as CONFIG; the maps of all networks fit.
CHIP = NetworkCoreConfig(
    array=Config(rows=4, cols=4, depth=4, lanes=4, requantize="tflite", activation="none"),
    words=4096, b_words=1024, lines=128, program_words=1 << 16,
)
# By way: the rows of the table, and the names of the cycles that the firmware prints.
WAYS = {
    "plain": {"run": "plain C"},
    "axi": {"run": f"driver, FIFO, {CONFIG}"},
    "dma": {"run": f"driver, DMA, {CONFIG}"},
    "list": {
        "run": f"list of a network core, {CHIP.array.name}",
        "core": "... of which the core works",
        "load": "... load of the list, once",
    },
}
PRINTED = {"list": ("load", "run", "core")}  # in this order
ABOUT = """\
Clock cycles of one inference on a PicoRV32, from the call to the return, with networks
of TensorFlow Lite Micro (micro_speech) and MLPerf Tiny. Each output equals the golden model's, byte
for byte; the input is random. [The C driver](driver.md) describes the processor.

* **Plain C** is the [C code](../networks.md#c-code-for-an-soc) of `weft compile --c` without a
  core: `tools/riscv/plain_driver.c` computes its products in blocks of 2 x 4 sums, and
  `tools/riscv/plain_layer.h` its depthwise convolutions, without rows of A.
* **Driver.** The same C code with the generated driver: the processor writes the windows of
  convolutions, and computes ADD, AVERAGE_POOL_2D and SOFTMAX; the core computes the products. With
  FIFO ports it also moves each operand. A depthwise convolution is one product for 8 channels,
  whose B is 0 except on its diagonals.
* **List.** A [network core](../network-core.md#program-memory) with as many MAC/cycle. Its list and
  its weights are linked into the memory of the processor, where the core reads them as an AXI4
  master. The load fills the weight buffer. An inference writes the input through the registers,
  runs the list, and reads the result; the processor computes SOFTMAX. The cycles in which the core
  works are a part of the inference: with interrupts the processor is free then. The core has
  `words = 4096`, `b_words = 1024` and `lines = 128`."""


def networks(tiny=NETWORKS) -> list[Path]:
    """The network of the examples, and ``tiny`` ones of MLPerf, if their folder is known."""
    folder = os.environ.get("WEFT_NETWORKS")
    return [DIGITS, *(Path(folder) / f"{name}.tflite" for name in tiny if folder)]


def measure(way: str, network: Path) -> int:
    """Measure an inference, and write its cycles to a file."""
    model, folder = weft.load(network), OUTPUT / f"network-{way}"
    if way == "list":
        ip, program = NetworkIp(config=CHIP, bus="axi"), model.compile(CHIP)
        files = network_core_c_files(program) | expectation(program, "golden")
        sources = [SOURCES / "list.c"]
    else:
        config = PLAIN if way == "plain" else CONFIGS[CONFIG]
        ip = Ip(config=config, bus="axi" if way == "plain" else way)
        program = model.compile(config)
        files = c_files(model.graph, program)
        files |= expectation(program, GoldenTransport(config), plain=way == "plain")
        sources = [SOURCES / "network.c"]
        if way == "plain":
            sources.append(SOURCES / "plain_driver.c")
            files["net.c"] = in_plain_c(files["net.c"])
    output = run(ip, folder, [*sources, folder / "net.c"], [SOURCES], files, driver=way != "plain")
    check_exit(output, sources[0].name)
    numbers = [int(line) for line in output.splitlines() if line.isdigit()]
    cycles = dict(zip(PRINTED.get(way, ("run",)), numbers, strict=True))
    _result(way, network.stem).write_text(json.dumps(cycles), encoding="utf-8")
    return 0


def interrupts() -> int:
    """Run the example with interrupts, two cores and a network for each."""
    one, two, files = two_cores()
    folder = OUTPUT / "interrupts"
    files |= expectation(weft.load(DIGITS).compile(two.config), "golden")
    sources = [SOURCES / "interrupts.c", *(folder / ip.prefix / "net.c" for ip in (one, two))]
    check_exit(run(one, folder, sources, [SOURCES], files, second=two), "interrupts.c")
    return 0


def two_cores() -> tuple[NetworkIp, NetworkIp, dict[str, bytes]]:
    """The cores of ``examples/two_cores.c``, and its files but for the drivers."""
    one = NetworkIp(config=CHIP, bus="axi", prefix="one")
    two = NetworkIp(config=replace(CHIP, program_words=0), bus="axi", prefix="two")
    files = {"two_cores.c": (ROOT / "examples" / "two_cores.c").read_bytes()}
    for ip in (one, two):
        code = network_core_c_files(weft.load(DIGITS).compile(ip.config), ip.prefix)
        files |= {f"{ip.prefix}/{name}": data for name, data in code.items()}
    return one, two, files


def in_plain_c(code: bytes) -> bytes:
    """The C code of a network, with layers that `tools/riscv/plain_layer.h` computes."""
    head = b'#include "net.h"\n'
    code = code.replace(b" net_compute(", b" plain_compute(")
    return code.replace(head, head + b'#include "plain_layer.h"\n', 1)


def expectation(program, golden, *, plain=False) -> dict[str, bytes]:
    """The header ``expected.h``: an image, the output of the golden model, names of the network."""
    shape = program.tensors[program.inputs[0]].shape
    image = np.random.default_rng(1).integers(-128, 128, shape, np.int8)
    with program.open(golden) as session:
        expected = session(image)
    name = identifier(program.name)
    arrays = "".join(
        f"static const int8_t {name}[] = {{{', '.join(map(str, values.ravel()))}}};\n"
        for name, values in (("image", image), ("expected", expected))
    )
    macros = {
        "NETWORK_RUN": f"{name}_run", "NETWORK_LOAD": f"{name}_load", "PROGRAM": f"{name}_program",
        "OF_NETWORK(what)": f"{name.upper()}_##what", **({"PLAIN": ""} if plain else {}),
    }
    lines = "".join(f"#define {macro} {text}".rstrip() + "\n" for macro, text in macros.items())
    return {"expected.h": f"#include <stdint.h>\n{lines}{arrays}".encode()}


def table(found) -> str:
    """The table of ``found[network][way]``: cycles by name."""
    lines = [f"| an inference of | {' | '.join(found)} |", "|---" + len(found) * "|---:" + "|"]
    for way, names in WAYS.items():
        for key, text in names.items():
            cells = " | ".join(f"{cycles[way][key]:,}" for cycles in found.values())
            lines.append(f"| {text} | {cells} |")
    return "\n".join([*lines, ""])


def _result(way, name):
    return OUTPUT / f"network-{way}-{name}.json"


def _write_table():
    """Print the table, and make its record if all networks are there; the exit code."""
    found = {
        network.stem: {
            way: json.loads(_result(way, network.stem).read_text(encoding="utf-8")) for way in WAYS
        }
        for network in networks()
    }
    text = table(found)
    print(text, end="")
    if len(found) == 1 + len(NETWORKS):
        print(results.save(
            "processor", [results.table(text)], title="Networks on a processor",
            command="make interop ARGS=cpu", about=ABOUT,
            of=["weft.kit.build", "weft.models.c_code", "weft.hw.bus.top"],
        ))
    return 0


def main(arguments) -> int:
    """Run the command; the exit code."""
    match arguments:
        case ["measure", way] if way in WAYS:
            return measure(way, DIGITS)
        case ["measure", way, network] if way in WAYS:
            return measure(way, Path(network))
        case ["interrupts"]:
            return interrupts()
        case ["table"]:
            return _write_table()
    print(
        f"usage: cpu_networks.py measure {'|'.join(WAYS)} [NETWORK]\n"
        "       cpu_networks.py interrupts\n"
        "       cpu_networks.py table",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
