"""Place and route SDRAM controllers alone, and measure their rates before a simulated chip.

    make sdram

Exit code 1 if a controller is larger or slower than its limit.
"""

import random
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

from tools import results
from tools.area import DEVICE, PlainPorts
from verif.sdram_bench import Phase, SdramBench
from weft.boards.toolchain import Toolchain, digests, to_rtlil
from weft.hw.sdram.controller import SdramController
from weft.sdram import SDRAM_CHIPS

__all__ = ["CONTROLLERS", "designs", "main", "rates"]

BUILD = results.ROOT / "build"
SEEDS = range(1, 4)
# Chip, MHz, bytes of a beat.
CONTROLLERS = (
    ("IS42S16160G-7", 110, 16), ("IS42S16160G-7", 133, 16), ("EM638325-7", 110, 16),
)
# Limits: LUT4, registers, and MHz of the median.
MOST_LUT4, MOST_FF, LEAST_MHZ = 500, 600, 110
BURST = 16
ABOUT = f"""\
SDRAM controllers (`weft.hw.sdram.controller.SdramController`) alone: [SDRAM](../sdram.md) describes
them. Each is placed and routed on an {DEVICE.name}, speed grade 6, with {len(SEEDS)} seeds. LUT4,
CCU2C (carry chains) and DPR16X4 (LUT RAM) are cells after `synth_ecp5`; LUT placed counts what
nextpnr needs for all of them. fmax counts the paths between registers.

The rates are simulated, with the intervals and times of the chip, before a model that refuses what
the chip does not allow. Bursts have random addresses in the whole chip; a master without pauses
offers the next address as soon as it can. Linear reads are measured from one batch of refreshes to
the next one. MB/s are 10^6 bytes a second."""
AREA_HEADS = """\
| controller | LUT4 | CCU2C | DPR16X4 | FF | LUT placed | best fmax | median fmax |
|---|---:|---:|---:|---:|---:|---:|---:|
"""
RATE_HEADS = """\
| controller, MB/s | linear reads | formula | 256 B | 64 B | one beat | linear writes |
|---|---:|---:|---:|---:|---:|---:|
"""


def title(chip, mhz, data_bytes):
    """The name of a controller in the record."""
    return f"{chip}, {mhz} MHz, beats of {data_bytes} bytes"


def controller(name, mhz, data_bytes):
    """The controller of a row, with plain ports."""
    chip = SDRAM_CHIPS[name]
    return PlainPorts(SdramController(chip, chip.timing(mhz), data_bytes=data_bytes))


def designs() -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """The name of each row of the record, and a function for the digests of its design."""
    for row in CONTROLLERS:
        yield title(*row), lambda row=row: digests(to_rtlil(controller(*row)), DEVICE, [*SEEDS])


def placed(tools, row):
    """A row of the table of areas, and whether the controller is within its limits."""
    rtlil = to_rtlil(controller(*row))
    netlist = tools.synthesize(rtlil, DEVICE, BUILD / "sdram")
    runs = [tools.place(netlist, DEVICE, seed, out_of_context=True) for seed in SEEDS]
    cells, used = netlist.cells, runs[0].used
    best, median = max(run.fmax for run in runs), statistics.median(run.fmax for run in runs)
    good = cells["LUT4"] <= MOST_LUT4 and used["FF"] <= MOST_FF and median >= LEAST_MHZ
    return (
        f"| {title(*row)} | {cells['LUT4']} | {cells['CCU2C']} | {cells['TRELLIS_DPR16X4']}"
        f" | {used['FF']} | {used['LUT']} | {best:.0f} MHz | {median:.0f} MHz |"
    ), good


def rates(name, mhz, data_bytes):
    """A row of the table of rates: MB/s from the first beat, or response, to the last one.

    Raises ValueError if the linear stream has other than two batches of refreshes.
    """
    chip = SDRAM_CHIPS[name]
    # The set-up is as short as the controller allows: nothing else depends on it.
    bench = SdramBench(
        replace(chip, power_up=1.0), mhz=mhz, data_bytes=data_bytes, contents=lambda *place: 0
    )
    timing, block, rng = chip.timing(mhz), BURST * data_bytes, random.Random(1)
    batch = timing.postponed * timing.refresh  # cycles between two batches of refreshes
    words = block // chip.word_bytes

    def bursts(size):
        beats = max(1, size // data_bytes)
        for _ in range(batch // (beats * data_bytes // chip.word_bytes + 8)):
            yield rng.randrange(chip.size // (beats * data_bytes)) * beats * data_bytes, beats

    every = (1 << data_bytes) - 1
    reads = [
        Phase([(n * block, BURST) for n in range(2 * batch // words + 1)]),
        *(Phase(bursts(size)) for size in (256, 64, 1)),
    ]
    writes = Phase([], [(n * block, [(n, every)] * BURST) for n in range(batch // words)])
    bench.run(*reads, writes, limit=1_000_000)
    stream, *others = reads
    # Of the stream, from one batch of refreshes to the next one.
    steps = zip(stream.taken, stream.taken[1:], strict=False)
    first, last = (n for n, (x, y) in enumerate(steps) if y - x > data_bytes // chip.word_bytes)
    linear = (last - first) * data_bytes * mhz / (stream.taken[last] - stream.taken[first])
    others = (
        (len(phase.beats) - 1) * data_bytes * mhz / (phase.taken[-1] - phase.taken[0])
        for phase in others
    )
    written = (len(writes.writes) - 1) * block * mhz / (writes.answered[-1] - writes.answered[0])
    found = linear, chip.rate(mhz), *others, written
    return f"| {title(name, mhz, data_bytes)} |" + "".join(f" {one:.1f} |" for one in found)


def main() -> int:
    tools = Toolchain(BUILD)
    tools.set_up()
    areas, speeds, good = [AREA_HEADS], [RATE_HEADS], True
    for row in CONTROLLERS:
        speeds.append(rates(*row) + "\n")
        print(speeds[-1], end="", flush=True)
        text, within = placed(tools, row)
        areas.append(text + "\n")
        print(text, flush=True)
        good &= within
    tables = [
        results.table("".join(areas), title="Area and clock"),
        results.table("".join(speeds), title="Rates"),
    ]
    print(results.save(
        "sdram", tables, title="SDRAM controllers", command="make sdram", about=ABOUT,
        of=["tools.sdram"], designs={name: found() for name, found in designs()},
    ))
    if not good:
        print("a controller is larger or slower than its limit", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
