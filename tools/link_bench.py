"""Write ``docs/link-bench.md``: the cycles of products over a serial port, wire and core apart.

    python tools/link_bench.py

Exit code 1 where a result is not that of the golden model.
"""

import sys
from pathlib import Path

import numpy as np

from weft import Accelerator
from weft.boards.catalog import find
from weft.host import GoldenTransport
from weft.sim.board import SimBoardTransport

PATH = Path(__file__).parent.parent / "docs" / "link-bench.md"
# Of each board, products whose B its buffer holds.
BOARDS = {
    "icebreaker": [(1, 64, 32), (16, 64, 32), (64, 64, 32)],
    "ulx3s-25f": [(1, 64, 64), (16, 64, 64), (64, 64, 64), (128, 128, 128)],
}
BAUD, BITS = 3_000_000, 10  # a byte is a start bit, eight of data and a stop bit
HEAD = f"""\
# Over a serial port

What int8 products cost end to end on simulated boards, each at its own clock and with a serial
port of {BAUD:,} baud, bit by bit. B stays on the chip (`weights = acc.load(b)`), so that the wire
carries A, headers and results; "B once" is what it took to bring it there. Results are finished
on the chip (int8, `scale=`) or are int32 sums. `make link-bench` writes this page; every result is
compared with golden's.

**Wire** is {BITS} bits a byte, framing, acknowledgements and headers included, for the busier of
the two ways, which run at the same time; of int8, the parameters of the scale are among it.
**Core** is the cycles in which operands went into the array, its counter `active`: the rest of
the time it waits for the wire.

| board | M x K x N | results | bytes to | bytes from | wire | core | core/wire | B once |
|---|---|---|---:|---:|---:|---:|---:|---:|
"""


def measured(accelerator, golden, transport, a, b, **finish):
    """What the product took: bytes of B to the board, of the rest to and from it, and its record.

    Raises SystemExit where the result is not that of ``golden``.
    """
    before = transport.sent
    with accelerator.load(b) as weights:
        once = transport.sent - before
        sent, received = transport.sent, transport.received
        result, record = accelerator.matmul(a, weights, record=True, **finish)
        sent, received = transport.sent - sent, transport.received - received
    if not np.array_equal(result, golden.matmul(a, b, **finish)):
        raise SystemExit(f"{a.shape} x {b.shape} must be what golden computes")
    return once, sent, received, record


def rows(board, shapes):
    """The lines of ``board`` in the table."""
    rng = np.random.default_rng(1)
    divisor = round(board.clock * 1e6 / BAUD)
    transport = SimBoardTransport(board.config, divisor=divisor, say=print)
    golden = Accelerator(GoldenTransport(board.config))
    with Accelerator(transport) as accelerator, golden:
        for m, k, n in shapes:
            a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
            for name, finish in (("int8", {"scale": 2**-9}), ("int32", {})):
                once, sent, received, record = measured(
                    accelerator, golden, transport, a, b, **finish
                )
                wire = max(sent, received) * BITS / BAUD
                core = record.active / board.clock / 1e6
                yield (
                    f"| {board.name} | {m} x {k} x {n} | {name} | {sent:,} | {received:,}"
                    f" | {1e3 * wire:.2f} ms | {1e3 * core:.3f} ms | {core / wire:.1%}"
                    f" | {1e3 * once * BITS / BAUD:.2f} ms |\n"
                )


def main() -> int:
    lines = [HEAD]
    for name, shapes in BOARDS.items():
        for line in rows(find(name), shapes):
            lines.append(line)
            print(line, end="", flush=True)
    PATH.write_text("".join(lines), encoding="utf-8")
    print(PATH)
    return 0


if __name__ == "__main__":
    sys.exit(main())
