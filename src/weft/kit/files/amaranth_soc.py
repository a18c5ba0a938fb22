"""The core of this kit as a component of an Amaranth design, which feeds it and looks at it.

Wants weft, which brings Amaranth::

    python amaranth_soc.py [config.toml]     simulates it, and writes amaranth_soc.v
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

__all__ = ["Soc", "commands"]


def commands(config, a, b) -> bytes:
    """The command stream of one product of [m, k] and [k, n], from page 0 on."""
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


class Soc(wiring.Component):
    """Multiplies what lies in a memory, once, and adds up the results as they come.

    Parameters
    ----------
    config : Config
        Of int8, where tiles are whole chunks of results, and words whole results.
    stream : bytes
        Of commands, whose results are sums.
    results : int
        How many there are: what the last word holds beyond them is undefined.

    Attributes
    ----------
    go : In
        Starts, as long as it is high.
    done : Out
        The last word of the results has come.
    total : Out
        All results together, modulo 2^32.
    """

    def __init__(self, config, stream, results):
        self.config, self.stream, self.results = config, stream, results
        super().__init__({"go": In(1), "done": Out(1), "total": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = Core(self.config)
        size = self.config.bytes_in
        words = [
            int.from_bytes(self.stream[n : n + size], "little")
            for n in range(0, len(self.stream), size)
        ]
        m.submodules.words = held = Memory(shape=8 * size, depth=len(words), init=words)
        read, place = held.read_port(domain="comb"), Signal(range(len(words) + 1))
        m.d.comb += [
            read.addr.eq(place),
            core.commands.payload.eq(read.data),
            core.commands.valid.eq(self.go & (place != len(words))),
            core.results.ready.eq(1),
        ]
        with m.If(core.commands.valid & core.commands.ready):
            m.d.sync += place.eq(place + 1)
        result, left = core.results.payload, Signal(range(self.results + 1), init=self.results)
        with m.If(core.results.valid):
            lanes = [result.data[low : low + 32] for low in range(0, len(result.data), 32)]
            there = [Mux(n < left, lane, 0) for n, lane in enumerate(lanes)]
            m.d.sync += [
                self.total.eq(self.total + sum(there)), self.done.eq(result.last),
                left.eq(Mux(left > len(lanes), left - len(lanes), 0)),
            ]
        return m


def simulated(config, a, b):
    """What `Soc.total` comes to."""
    soc, found = Soc(config, commands(config, a, b), len(a) * b.shape[1]), []

    async def bench(ctx):
        ctx.set(soc.go, 1)
        for _ in range(100_000):
            if ctx.get(soc.done):
                break
            await ctx.tick()
        found.append(ctx.get(soc.total) if ctx.get(soc.done) else None)

    simulator = Simulator(soc)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return found[0]


def main(path=None):
    """One product simulated, and the design as Verilog; 0 where the sum of its results is right."""
    path = path or Path(__file__).resolve().parent.parent / "config.toml"
    config = Config.from_toml(path)
    if config.dtype != "int8" or config.bytes_out % 4 or config.cols % config.lanes:
        sys.exit("this example adds up sums of int8, in whole words and chunks")
    rng = np.random.default_rng(1)
    m, n, k = config.rows, config.cols, 2 * config.depth
    a = rng.integers(-128, 128, (m, k), dtype=np.int8)
    b = rng.integers(-128, 128, (k, n), dtype=np.int8)
    want = int((a.astype(np.int64) @ b.astype(np.int64)).sum()) % (1 << 32)
    total = simulated(config, a, b)
    print(f"total is {total}, numpy's {want}")
    soc = Soc(config, commands(config, a, b), m * n)
    text = verilog.convert(soc, name="soc", emit_src=False)
    Path("amaranth_soc.v").write_text(text, encoding="utf-8")
    return 0 if total == want else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
