"""Time the kit's C driver on a RISC-V processor, and compare it with products in plain C.

    python -m tools.cpu measure CONFIG BUS
    python -m tools.cpu table

``measure`` simulates the SoC of ``examples/soc`` with a core behind BUS (axi or dma), checks every
result and writes the cycles to ``build/interop/cpu``. ``table`` makes the record of all cycles;
its exit code is 1 if the driver is not faster than plain C.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from tools import results
from weft.config import Config
from weft.golden import add_bias, scaled
from weft.host.packing import ENTRY
from weft.ip import Ip
from weft.kit.build import build

__all__ = ["BUSES", "CONFIGS", "OUTPUT", "ROOT", "SOURCES", "check_exit", "main", "run"]

ROOT = Path(__file__).resolve().parent.parent
SOURCES = Path(__file__).resolve().parent / "riscv"
OUTPUT = ROOT / "build" / "interop" / "cpu"
CONFIGS = {
    "8x8x1": Config(),
    "2x4x1": Config(rows=2, cols=4, a_words=64, b_words=64),
}
ABOUT = """\
Clock cycles of a PicoRV32 from the call of the driver to its return, when all results are in
memory. The command fails if a result is wrong, or if the driver is not faster than plain C for a
product of 8 x 8 x 8 or larger.

* **Columns.** `FIFO` is a core with AXI4-Lite (bus `axi`; `wishbone` has the same driver), `DMA` is
  bus `dma`. Both operands are sent with each product. With `B resident`, `weft_load_b` has sent B
  before; its cycles are not counted. Results are sums of 32 bits. In the last three columns they
  are requantized to int8 with an entry for each column (mode `tflite`), and the entries are sent
  with the product. A `-` means that B does not fit the core's buffers.
* **Operands** are random int8 from -128 to 127, in row-major order without gaps: A in rows of K, B
  in rows of N. The expected results come from numpy and the golden model.
* **Arrays.** `8x8x1` is the default Config. `2x4x1` has 2 rows, 4 columns and buffers of 64 words,
  so its larger products are split into many jobs.
* **Processor.** PicoRV32 with AXI4-Lite, a single-cycle multiplier (`ENABLE_FAST_MUL`), a divider
  and a barrel shifter. It has no cache: it fetches each instruction from memory.
* **Memory** answers a read in the cycle after its address, and completes a write in one cycle. The
  bus master of a `dma` core has its own port, as wide as its stream, which transfers one beat a
  cycle. Processor, bus and core share one clock.
* **Compiler.** Clang, from the package `ziglang`, with
  `-O3 -flto -std=c99 -ffreestanding -mcpu=generic_rv32+m` for the driver and for plain C. Without
  `-flto` the driver takes up to 3,000 cycles more for a product of one job.
* **Plain C** (`tools/riscv/plain.c`) keeps a block of 2 x 4 sums in registers. It is the fastest of
  nine versions: blocks of 1 x 4, 4 x 1, 2 x 2, 4 x 2, 1 x 8, 2 x 8 and 4 x 4, and no block, take 3
  to 120 % longer. The sizes are multiples of its block; it does not handle other sizes, which the
  driver does."""
BUSES = "axi", "dma"
SIZES = 4, 8, 16, 32
FASTER_FROM = 8  # smallest size for which the driver must be faster than plain C
# The measurements of a size, in the order in which the firmware prints them.
COLUMNS = "plain", "driver", "resident", "plain_int8", "int8"
LIMITS = {"zero": 3, "low": -100, "high": 90}


def operands() -> str:
    """The header ``operands.h``: products, with the results of numpy and the golden model."""
    rng = np.random.default_rng(1)
    lines, rows = [], []
    for n in SIZES:
        a, b = rng.integers(-128, 128, (2, n, n), dtype=np.int8)
        sums = a.astype(np.int64) @ b.astype(np.int64)
        columns = np.zeros(n, ENTRY)
        columns["bias"] = rng.integers(-(1 << 12), 1 << 12, n)
        columns["multiplier"] = rng.integers(1 << 30, 1 << 31, n)
        columns["shift"] = rng.integers(-10, -4, n)
        for name, value in LIMITS.items():
            columns[name] = value
        acc = add_bias(sums.astype(np.int32), columns["bias"])
        y = scaled(acc, multiplier=columns["multiplier"], shift=columns["shift"], mode="tflite")
        y = np.clip(y.astype(np.int64) + LIMITS["zero"], LIMITS["low"], LIMITS["high"])
        for name, kind, values in (
            ("a", "int8_t", a), ("b", "int8_t", b), ("sums", "int32_t", sums), ("y", "int8_t", y),
        ):
            text = ", ".join(map(str, values.ravel()))
            lines.append(
                f"static const {kind} {name}{n}[] __attribute__((aligned(4))) = {{{text}}};"
            )
        fields = "bias", "multiplier", "shift", "b_zero", "zero", "low", "high"
        entries = ", ".join(
            "{" + ", ".join(str(entry[field]) for field in fields) + "}" for entry in columns
        )
        lines.append(f"static const weft_column columns{n}[] = {{{entries}}};")
        rows.append(f"    {{{n}, a{n}, b{n}, sums{n}, columns{n}, y{n}}},")
    head = [f"enum {{ SIZES = {len(SIZES)}, MAX_SIZE = {max(SIZES)} }};"]
    table = ["static const struct operands all[] = {", *rows, "};", ""]
    return "\n".join(head + lines + table)


def measure(name: str, bus: str) -> int:
    """Measure every product with a Config and a bus, and write the cycles to a file."""
    sources = [SOURCES / "firmware.c", SOURCES / "plain.c"]
    ip = Ip(config=CONFIGS[name], bus=bus)
    extra = {"operands.h": operands().encode()}
    output = run(ip, OUTPUT / f"{name}-{bus}", sources, [SOURCES], extra)
    (OUTPUT / f"{name}-{bus}.json").write_text(json.dumps(parsed(output)), encoding="utf-8")
    return 0


def run(
    ip, folder: Path, sources: list, includes: list, extra: dict[str, bytes], *, driver=True,
    second=None,
) -> str:
    """Compile firmware with the ``extra`` files, simulate it; its output.

    Without ``driver`` it gets only the headers of the driver. ``second`` is another core in the
    SoC, with another prefix.
    """
    sys.path.append(str(ROOT / "examples" / "soc"))
    from riscv_soc import compile_firmware, compile_soc

    folder.mkdir(parents=True, exist_ok=True)
    files = build(ip)
    more = build(second) if second else {}
    parts = {
        path[7:]: data for path, data in (files | more).items() if path.startswith("driver/")
    }
    for file, data in (parts | extra).items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(data)
    if driver:
        sources = [*sources, *(folder / name for name in parts if name.endswith(".c"))]
    compile_firmware(folder, sources, includes)
    program = compile_soc(
        folder, ip, files[f"{ip.name}.v"], (second, more[f"{second.name}.v"]) if second else None
    )
    done = subprocess.run([program], cwd=folder, capture_output=True, text=True)
    print(done.stdout, done.stderr, sep="", end="")
    return done.stdout


def check_exit(output, firmware):
    """SystemExit if the firmware ended with an error."""
    if not re.search(r"^exit 0$", output, re.M):
        last = output.strip().splitlines()[-2:]
        raise SystemExit(
            f"cpu: the firmware did not end with `exit 0`; its last lines: {last}. The number is"
            f" the number of the failed check in tools/riscv/{firmware}"
        )


def parsed(output: str) -> dict[int, dict[str, int]]:
    """Cycles by size and column; SystemExit if the firmware ended with an error."""
    check_exit(output, "firmware.c")
    numbers = [int(line) for line in output.splitlines() if line.isdigit()]
    step = len(COLUMNS) + 1
    rows = [numbers[i : i + step] for i in range(0, len(numbers), step)]
    assert [row[0] for row in rows] == [*SIZES]
    return {row[0]: dict(zip(COLUMNS, row[1:], strict=True)) for row in rows}


def table(found) -> tuple[str, list[str]]:
    """The table of ``found[config][bus][size]``, and a line for each product that is not faster."""
    heads = (
        "array", "product", "plain C", "FIFO", "FIFO, B resident", "DMA", "DMA, B resident",
        "plain C, to int8", "FIFO, to int8", "DMA, to int8",
    )
    lines, slow = [f"| {' | '.join(heads)} |", "|---|---" + 8 * "|---:" + "|"], []
    for name, buses in found.items():
        for n in SIZES:
            axi, dma = buses["axi"][n], buses["dma"][n]
            cells = [axi["plain"]]
            cells += [row[column] for row in (axi, dma) for column in ("driver", "resident")]
            cells += [axi["plain_int8"], axi["int8"], dma["int8"]]
            lines.append(f"| {name} | {n} x {n} x {n} | " + " | ".join(
                f"{cell:,}" if cell else "-" for cell in cells
            ) + " |")
            slow += [
                f"{name}, {n} x {n} x {n}, {bus}, {column}: {row[column]:,} cycles, plain C"
                f" {row[plain]:,}"
                for bus, row in (("axi", axi), ("dma", dma))
                for column, plain in (
                    ("driver", "plain"), ("resident", "plain"), ("int8", "plain_int8"),
                )
                if n >= FASTER_FROM and row[column] >= row[plain]
            ]
    return "\n".join([*lines, ""]), slow


def main(arguments) -> int:
    """Run the command; the exit code."""
    match arguments:
        case ["measure", name, bus] if name in CONFIGS and bus in BUSES:
            return measure(name, bus)
        case ["table"]:
            found = {name: {bus: _cycles(name, bus) for bus in BUSES} for name in CONFIGS}
            text, slow = table(found)
            print(text, end="")
            print(results.save(
                "driver", [results.table(text)], title="The C driver on a processor",
                command="make interop ARGS=cpu", about=ABOUT,
                of=["weft.kit.build", "weft.hw.bus.top"],
            ))
            for line in slow:
                print(f"cpu: the driver is not faster than plain C: {line}", file=sys.stderr)
            return 1 if slow else 0
    print(
        f"usage: cpu.py measure {'|'.join(CONFIGS)} {'|'.join(BUSES)}\n"
        "       cpu.py table",
        file=sys.stderr,
    )
    return 2


def _cycles(name, bus):
    """The cycles that `measure` has written."""
    rows = json.loads((OUTPUT / f"{name}-{bus}.json").read_text(encoding="utf-8"))
    return {int(n): row for n, row in rows.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
