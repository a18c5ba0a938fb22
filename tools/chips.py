"""Measure several simulated cores, and predict 1 to 64 chips behind the links of boards.

    python -m tools.chips

Exit code 1 if a result differs from the golden model, or a link carries other bytes than predicted.
"""

import functools
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from ml_dtypes import bfloat16

from tools import results
from tools.network_tables import replaced
from weft import Accelerator, Parallel
from weft.boards.catalog import find
from weft.boards.presets import PRESETS
from weft.config import Config
from weft.golden import matmul, matmul_bf16
from weft.host import GoldenTransport
from weft.host.parallel import even_parts
from weft.models.chips import Chip, Link, Share, core_seconds, link_bytes, shared_seconds
from weft.sim.transport import DIVISOR, SimBoardTransport, SimTransport

__all__ = ["CHIPS", "LINKS", "PAGE", "WEIGHTS", "curves", "draw", "main", "page_text"]

PAGE = results.ROOT / "docs" / "parallel.md"

# The shape of stories15M, a network of 15 million weights that writes text for children: for each
# token, (K, N, number) of its products with weights.
DIM, HIDDEN, LAYERS, VOCABULARY = 288, 768, 6, 32_000
PRODUCTS = [
    (DIM, 3 * DIM, LAYERS), (DIM, DIM, LAYERS), (DIM, 2 * HIDDEN, LAYERS), (HIDDEN, DIM, LAYERS),
    (DIM, VOCABULARY, 1),
]
WEIGHTS = sum(k * n * count for k, n, count in PRODUCTS)
CHIPS = [1, 2, 4, 8, 16, 32, 64]
# Rates and times of the pages "Over a serial port" and "Over USB". The latency is the time of kws
# without its bytes and its list. A board of each kind is on one USB port of the host, with hubs.
BUS, SOFTWARE = 44e6, 0.2e-3
LINKS = [
    Link("serial port, 3 Mbaud", 0.3e6, 0.15e-3, SOFTWARE, bus=BUS, duplex=True),
    Link("USB, full speed", 1.2e6, 0.37e-3, SOFTWARE, bus=BUS),
    Link("USB, high speed", BUS, 0.02e-3, SOFTWARE, bus=BUS),
    Link("USB, high speed, no software", BUS, 0.02e-3, 0, bus=BUS),
]
MEMORY = 0.2e9  # bytes a second of an SDRAM with 16 bits at 100 MHz
BATCH = 256  # tokens of a step of training
FLOATS = Config(dtype="bf16", rows=4, cols=4)
MATVEC = Config(rows=1, cols=8, depth=8, b_words=2048)
SIZES = 64, 32, 10  # of a network for digits
EXAMPLES = 64, 256  # of a step
MATVEC_SHAPE = 1, 288, 288
CALLS, RUNS = 10, 10  # of which the time of the driver is the least
BAUD = 3_000_000
BOARD = "icebreaker"  # whose core and serial port are simulated to count bytes
BOARD_SHAPES = [(1, 64, 30), (1, 300, 61), (16, 64, 30), (64, 64, 32)]
TRAINING = """\
A step of training: forward and backward through a network of 64, 32 and 10 values, on simulated
cores of 4 x 4 PEs in BF16. The examples are divided into as many shards as there are cores. A core
computes the gradients of a shard, and the ring of `Parallel.all_reduce` adds them in FP32.

**One core in turn** has the cycles of one core that computes the same shards; the gradients have
*0 bits that differ* from its gradients and from the golden model's. **Whole batch** has the cycles
of one core that computes all examples as one shard: other sums, and fewer loads of weights."""
SHARED = """\
A vector times a matrix, 1 x 288 x 288 in INT8, whose columns are shared by simulated cores of 1 x 8
PEs of 8. The columns stay in the buffers. The cycles are those of the slowest core; *predicted* has
those of the model. All results equal the golden model."""
LINK = """\
Bytes on the serial ports of two simulated boards that share a product, each with half of the
columns: as the model predicts them, and as the transports count them. The command fails if they
differ. **Time** is from the first bit to the board to the last bit from it, at 3 Mbaud, bit by bit;
the board has a clock of 12 MHz. With one row the model is up to 10 % too fast: the host waits for
acknowledgements, which the model leaves out. With many rows the model is too slow: results go out
while operands still come in."""
TOKENS = f"""\
Milliseconds of the products of a token with the weights of a network of the shape of stories15M:
{DIM} values, {LAYERS} layers of 6 heads, {HIDDEN} hidden values, {VOCABULARY:,} words,
{WEIGHTS:,} weights of one byte. **Predicted, not measured.** Each chip is an LFE5U-85F with the
product core of the board `ulx3s-85f`: 8 x 12 PEs of 8 at 125 MHz. All products are shared by their
columns, with int32 results, one after another. The host computes the rest: attention, norms,
functions. Its time is not counted.

* **Rates** are those of [USB](../usb.md): 0.3 MB/s for 3 Mbaud, 1.2 MB/s and 44 MB/s. All links of
  the host share 44 MB/s: they are behind the hubs of one port.
* **Latency** of a product: 0.15, 0.37 and 0.02 ms. It is what remains of an inference of kws in the
  records of links, without the time of its bytes and of its list. No operating system is in it.
* **Software** takes 0.2 ms for each chip and product: one process of Python drives all chips. The
  last columns are without it."""
OVER = """\
No chip has a memory beside the core, and the buffers of 64 chips hold 3 of the 15 MB. So the link
carries all weights for each token."""
BESIDE = """\
An assumption: each chip has a memory with the weights of its columns, of 16 bits at 100 MHz (0.2
GB/s). No product core of today reads one. The link carries activations only."""
STEPS = f"""\
Seconds of the products of a step of training of the same network in BF16, forward and backward,
for {BATCH} tokens, whose rows the chips share. **Predicted, not measured**, for the core
`ecp5-85f-bf16` of 8 x 8 PEs at 100 MHz, with the links above. The link carries weights, activations
and gradients. The host adds the gradients; its time is not counted, and no link carries a sum. The
times are upper limits: results and operands of many rows overlap on a serial port."""
DRIVER = """\
Milliseconds of the CPU of the host for each core and product of `Parallel.matmul`, without the time
of the golden cores that stand for boards: 1 x 288 x 288 in INT8 with resident columns, the best of
some runs of several products. It depends on the machine. The predictions below assume 0.2 ms."""


@functools.cache
def _chips() -> dict[str, Chip]:
    """The chips of the prediction: weights over the link, and weights beside the chip."""
    board = find("ulx3s-85f")
    chip = Chip(board.config, board.clock * 1e6)
    return {"link": chip, "memory": replace(chip, memory=MEMORY)}


def token_seconds(chip: Chip, link: Link, count: int) -> float:
    """Return the seconds of the products of a token, whose columns ``count`` chips share."""
    return sum(
        times * shared_seconds(chip, link, [
            Share(1, k, len(part), resident=chip.memory is not None)
            for part in even_parts(n, count)
        ])
        for k, n, times in PRODUCTS
    )


def step_seconds(chip: Chip, link: Link, count: int) -> float:
    """Return the seconds of the products of a step of training, whose batch the chips share."""
    rows = [len(part) for part in even_parts(BATCH, count)]
    return sum(
        times * shared_seconds(chip, link, [Share(*shape) for shape in shapes])
        for k, n, times in PRODUCTS
        for shapes in (
            [(m, k, n) for m in rows], [(m, n, k) for m in rows], [(k, m, n) for m in rows]
        )
    )


@functools.cache
def curves() -> dict[str, dict[str, list[float]]]:
    """The milliseconds of a token for each of `CHIPS`, by where the weights are, and the link."""
    return {
        where: {
            link.name: [round(1e3 * token_seconds(chip, link, count), 6) for count in CHIPS]
            for link in LINKS
        }
        for where, chip in _chips().items()
    }


def _products(core):
    """``product(a, b)`` of float32 operands on a core, rounded to BF16."""
    return lambda a, b: core.matmul(a, b, cast=True)


def _golden(a, b):
    return matmul_bf16(a.astype(bfloat16), b.astype(bfloat16))


def _gradients(product, weights, shard):
    """The gradients of ``|relu(x w1) w2 - t|**2 / 2``."""
    (w1, w2), (x, t) = weights, shard
    sums = product(x, w1)
    hidden = np.maximum(sums, np.float32(0))
    d = product(hidden, w2) - t
    return product(x.T, product(d, w2.T) * (sums > 0)), product(hidden.T, d)


def _summed(gradients):
    return [Parallel.all_reduce(parts) for parts in zip(*gradients, strict=True)]


def _step(count, weights, shards):
    """The summed gradients, and the cycles of the slowest of ``count`` simulated cores."""
    with Parallel([Accelerator(SimTransport(FLOATS)) for _ in range(count)]) as parallel:
        found = _summed(parallel.map(
            lambda core, shard: _gradients(_products(core), weights, shard), shards
        ))
        return found, max(each["busy"] for each in parallel.counters())


def training_rows() -> Iterator[str]:
    """Yield the lines of the table of training."""
    rng = np.random.default_rng(1)
    inputs, hidden, outputs = SIZES
    x, w1, w2, t = (
        rng.standard_normal(shape).astype(np.float32) for shape in (
            (max(EXAMPLES), inputs), (inputs, hidden), (hidden, outputs), (max(EXAMPLES), outputs)
        )
    )
    for rows in EXAMPLES:
        _, whole = _step(1, (w1, w2), [(x[:rows], t[:rows])])
        for count in (2, 4):
            shards = [(x[part.start : part.stop], t[part.start : part.stop])
                      for part in even_parts(rows, count)]
            want = _summed([_gradients(_golden, (w1, w2), shard) for shard in shards])
            several, cycles = _step(count, (w1, w2), shards)
            one, in_turn = _step(1, (w1, w2), shards)
            bits = sum(
                np.bitwise_count(a.view(np.uint32) ^ b.view(np.uint32)).sum()
                for found in (several, one) for a, b in zip(found, want, strict=True)
            )
            if bits:
                raise SystemExit(f"{bits} bits of the gradients of {count} cores differ")
            yield (
                f"| {count} | {rows} | {cycles:,} | {in_turn:,} | {in_turn / cycles:.2f}"
                f" | {whole:,} | {whole / cycles:.2f} | {bits} |\n"
            )


def shared_rows() -> Iterator[str]:
    """Yield the lines of the table of a shared product."""
    rng = np.random.default_rng(1)
    m, k, n = MATVEC_SHAPE
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
    alone = None
    for count in (1, 2, 4):
        with Parallel([Accelerator(SimTransport(MATVEC)) for _ in range(count)]) as parallel:
            y, stats = parallel.matmul(a, parallel.load(b), record=True)
        if not np.array_equal(y, matmul(a, b)):
            raise SystemExit(f"the product of {count} cores differs from the golden model")
        cycles = max(each.cycles for each in stats)
        share = Share(m, k, len(even_parts(n, count)[0]), resident=True)
        predicted = core_seconds(Chip(MATVEC, 1.0), share)
        alone = alone or cycles
        yield f"| {count} | {cycles:,} | {predicted:,.0f} | {alone / cycles:.2f} |\n"


class _Timed(GoldenTransport):
    """A golden core; ``seconds`` is the time of the CPU that it has taken."""

    seconds = 0.0

    def send(self, commands):
        start = time.thread_time()
        super().send(commands)
        self.seconds += time.thread_time() - start


def _driver_seconds(cores, call):
    """Return the time of the CPU of ``CALLS`` calls, without that of golden ``cores``."""
    golden = sum(core.seconds for core in cores)
    start = time.process_time()
    for _ in range(CALLS):
        call()
    return time.process_time() - start - (sum(core.seconds for core in cores) - golden)


def driver_rows() -> Iterator[str]:
    """Yield the lines of the table of the driver's time."""
    _, k, n = MATVEC_SHAPE
    a, b = np.ones((1, k), np.int8), np.ones((k, n), np.int8)
    for count in (1, 8, 64):
        cores = [_Timed(MATVEC) for _ in range(count)]
        with Parallel([Accelerator(core) for core in cores]) as parallel, parallel.load(b) as held:
            call = functools.partial(parallel.matmul, a, held)
            least = min(_driver_seconds(cores, call) for _ in range(RUNS))
        yield f"| {count} | {1e3 * least / CALLS / count:.2f} ms |\n"


def link_rows(folder: Path) -> Iterator[str]:
    """Yield the lines of the table of bytes; the bits of the simulated boards go into files."""
    rng = np.random.default_rng(1)
    config = find(BOARD).config
    chip, baud = Chip(config, DIVISOR * BAUD), replace(LINKS[0], latency=0, software=0, bus=None)
    files = [folder / str(board) for board in range(2)]
    transports = [SimBoardTransport(config, events=file, say=print) for file in files]
    with Parallel([Accelerator(transport) for transport in transports]) as parallel:
        parallel.matmul(np.ones((1, 2), np.int8), np.ones((2, 2), np.int8))
        for m, k, n in BOARD_SHAPES:
            a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
            before = [(each.sent, each.received) for each in transports]
            sizes = [len(file.read_text()) for file in files]
            if not np.array_equal(parallel.matmul(a, b), matmul(a, b)):
                raise SystemExit(f"the product {m} x {k} x {n} differs from the golden model")
            for board, transport in enumerate(transports):
                share = Share(m, k, len(even_parts(n, 2)[board]))
                moved = link_bytes(config, share)
                carried = (transport.sent - before[board][0],
                           transport.received - before[board][1])
                if carried != (moved.sent, moved.received):
                    raise SystemExit(f"{share} carried {carried} bytes, and not {moved}")
                cycles = [int(line.split()[1])
                          for line in files[board].read_text()[sizes[board] :].splitlines()]
                simulated = (max(cycles) - min(cycles)) / chip.clock
                yield (
                    f"| {m} x {k} x {n} | {board} | {moved.sent:,} | {carried[0]:,}"
                    f" | {moved.received:,} | {carried[1]:,}"
                    f" | {1e3 * shared_seconds(chip, baud, [share]):.2f} ms"
                    f" | {1e3 * simulated:.2f} ms |\n"
                )


def _by_chips(values, unit, decimals) -> Iterator[str]:
    """Yield a line for each number of chips, from the values of each link."""
    for n, count in enumerate(CHIPS):
        cells = [
            cell for link in values
            for cell in (f"{link[n]:,.{decimals}f} {unit}", f"{link[0] / link[n]:.2f}")
        ]
        yield f"| {count} | {' | '.join(cells)} |\n"


def _heads(*names):
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}\n"


def _table(title, about, heads, lines):
    """The table of ``lines``, each of which is printed when it is measured."""
    print(f"\n{title}\n{heads}", end="")
    found = []
    for line in lines:
        found.append(line)
        print(line, end="", flush=True)
    return results.table(heads + "".join(found), title=title, about=about)


def page_text() -> str:
    """The text of the page, with the table of `curves` for the links of boards."""
    links = [(where, link) for where in curves() for link in LINKS[:3]]
    titles = {"link": "over the link", "memory": "beside the chip"}
    heads = [f"{titles[where]}: {link.name}" for where, link in links]
    lines = [f"| chips | {' | '.join(heads)} |", f"|---:|{'---:|' * len(heads)}"]
    for n, count in enumerate(CHIPS):
        times = [f"{curves()[where][link.name][n]:,.0f} ms" for where, link in links]
        lines.append(f"| {count} | {' | '.join(times)} |")
    return replaced(PAGE, {"make chips": "\n".join(lines)})


def draw(path) -> None:
    """Draw `curves`: a panel for each place of the weights, a line for each link."""
    from matplotlib.figure import Figure

    titles = {"link": "weights over the link", "memory": "weights in a memory beside each chip"}
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (where, links) in zip(panels, curves().items(), strict=True):
        for name, values in links.items():
            axes.plot(CHIPS, values, marker="o", markersize=4, label=name)
        axes.set_title(titles[where], fontsize=10)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(CHIPS, [str(count) for count in CHIPS])
        axes.set_xlabel("chips")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("ms of the products of a token, predicted")
    panels[1].legend(fontsize=8)
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        tables = _tables(Path(folder))
    PAGE.write_text(page_text(), encoding="utf-8")
    print(results.save(
        "chips", tables, title="Several chips", command="make chips", about="", of=["tools.chips"]
    ))
    return 0


def _tables(folder):
    """All tables of the record."""
    chip = Chip(PRESETS["ecp5-85f-bf16"].config, 100e6)
    steps = [[step_seconds(chip, link, count) for count in CHIPS] for link in LINKS]
    columns = [name for link in LINKS for name in (link.name, "speed-up")]
    of_links = _heads("chips", *columns)
    tokens = {where: list(links.values()) for where, links in curves().items()}
    return [
        _table("Training on simulated cores", TRAINING, _heads(
            "cores", "examples", "cycles, slowest core", "one core in turn", "speed-up",
            "whole batch", "speed-up to it", "bits that differ",
        ), training_rows()),
        _table("A product on simulated cores", SHARED, _heads(
            "cores", "cycles", "predicted", "speed-up"
        ), shared_rows()),
        _table("Bytes on links", LINK, _heads(
            "M x K x N", "board", "sent, predicted", "sent", "received, predicted", "received",
            "time, predicted", "time, simulated",
        ), link_rows(folder)),
        _table("Time of the driver", DRIVER, _heads("cores", "of a core and product"),
               driver_rows()),
        _table("A token, weights over the link", f"{TOKENS}\n\n{OVER}", of_links,
               _by_chips(tokens["link"], "ms", 1)),
        _table("A token, weights beside the chip", BESIDE, of_links,
               _by_chips(tokens["memory"], "ms", 1)),
        _table("A step of training over links", STEPS, of_links, _by_chips(steps, "s", 1)),
    ]


if __name__ == "__main__":
    sys.exit(main())
