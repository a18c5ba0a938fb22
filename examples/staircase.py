"""Two products on an array alone, cycle by cycle: python examples/staircase.py ROWS COLS

1 1 is one PE, 1 4 is a row of PEs, 4 4 is an array. The program feeds the generated hardware in
Amaranth's simulator, prints what enters and leaves it, and compares the results with NumPy's.
"""

import argparse
import itertools

import numpy as np
from amaranth.hdl import Module
from amaranth.sim import Simulator

from weft.hw.arith.mac import PlainMac
from weft.hw.array.systolic import SystolicArray

PRODUCTS, K = 2, 3  # K is the number of steps of a product
MAX_SIZE = 8


def simulate(rows, cols):
    """Run two products: (cycles, results of the array, results of NumPy).

    A cycle is (operands of A, operands of B, (at work, sum) of each PE, results that leave).
    """
    rng = np.random.default_rng(3)
    a = rng.integers(-9, 10, (PRODUCTS, rows, K))
    b = rng.integers(-9, 10, (PRODUCTS, K, cols))
    period = max(K, rows)  # the results of a product take `rows` cycles to leave
    start_delay = PlainMac.LATENCY - PlainMac.SLOTS
    drain_delay = K + PlainMac.LATENCY + rows - 1  # from the first step to the first result
    cells = []

    def cell(col):
        cells.append(PlainMac(depth=1))
        return cells[-1]

    array = SystolicArray(rows=rows, cols=cols, hop=1, mac=cell)
    table, results = [], np.zeros((PRODUCTS, rows, cols), int)

    def step(t):
        """(product, k) of the step that starts in cycle t; None if there is none."""
        product, k = divmod(t, period)
        return (product, k) if 0 <= product < PRODUCTS and k < K else None

    def value(operand, t):
        return None if step(t) is None else int(operand[step(t)])

    async def feed(ctx):
        for t in range((PRODUCTS - 1) * period + drain_delay + rows + cols - 1):
            # Each row and each column starts one cycle after its neighbour: the skew.
            left = [value(a[:, i], t - (rows - 1 - i)) for i in range(rows)]
            top = [value(b[:, :, j], t - j) for j in range(cols)]
            first, last = step(t - start_delay), step(t - PlainMac.LATENCY)
            drained = [t - drain_delay - n * period for n in range(PRODUCTS)]
            for i in range(rows):
                ctx.set(array.a[i][0], left[i] or 0)
                ctx.set(array.shift[i], any(0 <= n < i for n in drained))
            for j in range(cols):
                ctx.set(array.b[j][0], top[j] or 0)
            ctx.set(array.control.en, step(t) is not None)
            ctx.set(array.control.clear, first is not None and first[1] == 0)
            ctx.set(array.control.capture, last is not None and last[1] == K - 1)
            leaving = [None] * cols
            for (n, since), j in itertools.product(enumerate(drained), range(cols)):
                if 0 <= since - j < rows:
                    leaving[j] = results[n, since - j, j] = ctx.get(array.south[j].sum)
            working = [(ctx.get(mac.en), ctx.get(mac.sum)) for mac in cells]
            table.append((left, top, working, leaving))
            await ctx.tick()

    m = Module()
    m.submodules.array = array
    simulator = Simulator(m)
    simulator.add_clock(1e-8)
    simulator.add_testbench(feed)
    simulator.run()
    return table, results, a @ b


def row(values, width):
    """Values of a cycle in columns of ``width``; None is empty."""
    return " ".join(" " * width if value is None else f"{value:{width}}" for value in values)


def main():
    """Print the table of an array; the exit code."""
    parser = argparse.ArgumentParser(description="Two products on an array, cycle by cycle.")
    for name in ("rows", "cols"):
        parser.add_argument(name, type=int, nargs="?", default=4, help="of PEs; default 4")
    args = parser.parse_args()
    for name, value in vars(args).items():
        if not 1 <= value <= MAX_SIZE:
            parser.error(f"{name} must be in 1..{MAX_SIZE}, not {value}")
    table, results, wanted = simulate(args.rows, args.cols)
    a, b = (max(len("A enters"), 4 * size - 1) for size in (args.rows, args.cols))
    print(f"cycle  {'A enters':{a}}  {'B enters':{b}}  PEs at work  results leave")
    for t, (left, top, cells, leaving) in enumerate(table):
        working = sum(enabled for enabled, _ in cells)
        line = f"{t:5}  {row(left, 3):{a}}  {row(top, 3):{b}}  {working:11}  {row(leaving, 4)}"
        print(line.rstrip())
    right = int((results == wanted).sum())
    print(f"{right} of {wanted.size} results equal NumPy's")
    return int(right < wanted.size)


if __name__ == "__main__":
    raise SystemExit(main())
