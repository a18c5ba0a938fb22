"""Measure the time of products and networks over a serial port.

    WEFT_NETWORKS=folder python -m tools.link_bench

The folder has the networks of MLPerf Tiny. Exit code 1 if a result differs from the golden model
or from TensorFlow Lite Micro.
"""

import sys

import numpy as np

from tools import network_link, results
from tools.network_tables import networks_folder
from weft import Accelerator
from weft.boards.catalog import find
from weft.host import GoldenTransport
from weft.sim.transport import SimBoardTransport

# Products (M, K, N) for each board; its buffer must hold B.
BOARDS = {
    "icebreaker": [(1, 64, 16), (16, 64, 16), (64, 64, 16)],
    "ulx3s-25f": [(1, 64, 64), (16, 64, 64), (64, 64, 64), (128, 128, 128)],
}
BAUD, BITS = 3_000_000, 10  # bits per byte: start bit, 8 data bits, stop bit
ABOUT = f"""\
The time of int8 products on the wire and in the core of simulated boards, each at its own clock.
The serial port has {BAUD:,} baud and is simulated bit by bit. B stays on the chip (`weights =
acc.load(b)`), so the wire carries A, headers and results; "B once" is the time to load B. The core
converts the results to 8 bits (int8, with `scale=`) or sends int32 sums. The command compares
every result with the golden model. The board receives *bytes sent*, and the host receives *bytes
received*.

**Wire** is the time of the bytes on the wire, {BITS} bits each, in the direction that has more of
them; both directions run at the same time. It includes frames, acknowledgements and headers. An
int8 product also sends the parameters of the scale, unless the core has them from the product
before. A large int32 product may be split into more jobs, with more headers. **Core** is the time
in which operands enter the array, from the counter `active`; the rest of the time the core waits
for the wire."""
HEADS = """\
| board | M x K x N | results | bytes sent | bytes received | wire | core | core/wire | B once |
|---|---|---|---:|---:|---:|---:|---:|---:|
"""


def measure(accelerator, golden, transport, a, b, **finish):
    """Return the bytes to load B, the other bytes to and from the board, and the Stats.

    Raises SystemExit if the result differs from ``golden``.
    """
    before = transport.sent
    with accelerator.load(b) as weights:
        once = transport.sent - before
        sent, received = transport.sent, transport.received
        result, stats = accelerator.matmul(a, weights, record=True, **finish)
        sent, received = transport.sent - sent, transport.received - received
    if not np.array_equal(result, golden.matmul(a, b, **finish)):
        raise SystemExit(f"the product of {a.shape} and {b.shape} differs from the golden model")
    return once, sent, received, stats


def rows(board, shapes):
    """Yield the lines of ``board`` for the table."""
    rng = np.random.default_rng(1)
    divisor = round(board.clock * 1e6 / BAUD)
    transport = SimBoardTransport(board.config, divisor=divisor, say=print)
    golden = Accelerator(GoldenTransport(board.config))
    with Accelerator(transport) as accelerator, golden:
        for m, k, n in shapes:
            a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
            for name, finish in (("int8", {"scale": 2**-9}), ("int32", {})):
                once, sent, received, stats = measure(
                    accelerator, golden, transport, a, b, **finish
                )
                wire = max(sent, received) * BITS / BAUD
                core = stats.active / board.clock / 1e6
                yield (
                    f"| {board.name} | {m} x {k} x {n} | {name} | {sent:,} | {received:,}"
                    f" | {1e3 * wire:.2f} ms | {1e3 * core:.3f} ms | {core / wire:.1%}"
                    f" | {1e3 * once * BITS / BAUD:.2f} ms |\n"
                )


def _table(title, about, heads, lines):
    """The table of ``lines``, each of which is printed when it is measured."""
    found = []
    for line in lines:
        found.append(line)
        print(line, end="", flush=True)
    return results.table(heads + "".join(found), title=title, about=about)


def main() -> int:
    folder = networks_folder()
    if folder is None:
        return 2
    products = (line for name, shapes in BOARDS.items() for line in rows(find(name), shapes))
    tables = [
        _table("Products", ABOUT, HEADS, products),
        _table("Networks on the chip", network_link.ABOUT, network_link.HEADS,
               network_link.rows(folder)),
    ]
    print(results.save(
        "link", tables, title="Over a serial port", command="make link-bench", about="",
        of=["tools.link_bench"],
    ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
