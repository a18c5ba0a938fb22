"""The core of this kit inside an Amaranth design, which sends commands and adds up the results.

It needs weft, which installs Amaranth::

    python amaranth_soc.py [config.toml]     simulates the design and writes amaranth_soc.v
"""

import sys
from pathlib import Path

import numpy as np
from amaranth.back import verilog
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from weft.commands import Job, Load, Region
from weft.config import Config
from weft.geometry import memories
from weft.host.packing import pack
from weft.hw.core import Core

__all__ = ["MatmulChecksum", "commands"]


def commands(config, a, b) -> bytes:
    """The command stream of one product of A[m, k] and B[k, n]; both start at page 0."""
    stream, spans = b"", []
    for region, lines in ((Region.A, a), (Region.B, np.ascontiguousarray(b.T))):
        operand = memories(config)[region]
        pitch = operand.panel_pages(lines.shape[1])
        panels = operand.panels(len(lines))
        load = Load(region, 0, pitch, panels, operand.panel_words(lines.shape[1]))
        stream += _padded(config, load.pack()) + pack(lines, operand)
        spans += [0, pitch, panels * pitch]
    return stream + _padded(config, Job(len(a), b.shape[1], a.shape[1], *spans, tag=1).pack())


def _padded(config, header):
    return header + bytes(max(0, config.bytes_in - len(header)))


class MatmulChecksum(wiring.Component):
    """``total = sum(A x B) mod 2^32``; the commands come from a memory inside the design.

    Parameters
    ----------
    config : Config
        An int8 core in which a tile row is a whole number of chunks, and a result word a whole
        number of results.
    stream : bytes
        The command stream. The results of its jobs are sums.
    results : int
        Number of results. Bytes of the last word after them are undefined.

    Attributes
    ----------
    start : In(1)
        Sends commands while it is high.
    done : Out(1)
        The last word of the results has arrived.
    total : Out(32)
        Sum of all results so far, modulo 2^32.
    """

    def __init__(self, config, stream, results):
        self.config, self.stream, self.results = config, stream, results
        super().__init__({"start": In(1), "done": Out(1), "total": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = Core(self.config)
        size = self.config.bytes_in
        words = [
            int.from_bytes(self.stream[n : n + size], "little")
            for n in range(0, len(self.stream), size)
        ]
        m.submodules.memory = memory = Memory(shape=8 * size, depth=len(words), init=words)
        read, addr = memory.read_port(domain="comb"), Signal(range(len(words) + 1))
        m.d.comb += [
            read.addr.eq(addr),
            core.commands.payload.eq(read.data),
            core.commands.valid.eq(self.start & (addr != len(words))),
            core.results.ready.eq(1),
        ]
        with m.If(core.commands.valid & core.commands.ready):
            m.d.sync += addr.eq(addr + 1)
        result, remaining = core.results.payload, Signal(range(self.results + 1), init=self.results)
        with m.If(core.results.valid):
            lanes = [result.data[low : low + 32] for low in range(0, len(result.data), 32)]
            values = [Mux(n < remaining, lane, 0) for n, lane in enumerate(lanes)]
            m.d.sync += [
                self.total.eq(self.total + sum(values)), self.done.eq(result.last),
                remaining.eq(Mux(remaining > len(lanes), remaining - len(lanes), 0)),
            ]
        return m


def simulate(config, a, b):
    """`MatmulChecksum.total` after a simulation of one product; None if it does not end."""
    design, totals = MatmulChecksum(config, commands(config, a, b), len(a) * b.shape[1]), []

    async def testbench(ctx):
        ctx.set(design.start, 1)
        for _ in range(100_000):
            if ctx.get(design.done):
                break
            await ctx.tick()
        totals.append(ctx.get(design.total) if ctx.get(design.done) else None)

    simulator = Simulator(design)
    simulator.add_clock(1e-8)
    simulator.add_testbench(testbench)
    simulator.run()
    return totals[0]


def main(path=None):
    """Simulate one product and write the design as Verilog; 0 if the total equals numpy's."""
    path = path or Path(__file__).resolve().parent.parent / "config.toml"
    config = Config.from_toml(path)
    if config.data_type.a.name != "int8" or config.bytes_out % 4 or config.cols % config.lanes:
        sys.exit(
            "this example needs dtype int8, bytes_out a multiple of 4, and cols a multiple of lanes"
        )
    rng = np.random.default_rng(1)
    m, n, k = config.rows, config.cols, 2 * config.depth
    a = rng.integers(-128, 128, (m, k), dtype=np.int8)
    b = rng.integers(-128, 128, (k, n), dtype=np.int8)
    want = int((a.astype(np.int64) @ b.astype(np.int64)).sum()) % (1 << 32)
    total = simulate(config, a, b)
    print(f"total is {total}, numpy's {want}")
    design = MatmulChecksum(config, commands(config, a, b), m * n)
    text = verilog.convert(design, name="matmul_checksum", emit_src=False)
    Path("amaranth_soc.v").write_text(text, encoding="utf-8")
    return 0 if total == want else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
