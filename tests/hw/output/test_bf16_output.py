"""The BF16 epilogue against numpy and ml_dtypes: clamps and roundings of all kinds, in order."""

import numpy as np
import pytest
from amaranth.hdl import Value
from ml_dtypes import bfloat16
from tiers import quick

from verif.amaranth_bench import play, simulate
from verif.loader_model import write_port
from weft.commands import Region, epilogue_flags
from weft.config import Config
from weft.dtypes import DTYPES
from weft.geometry import memories
from weft.hw.control.job_table import JobEntry
from weft.hw.control.tile_generator import Tile
from weft.hw.dtypes import Bf16Output
from weft.hw.export import to_verilog
from weft.hw.output.result_scheduler import Chunk
from weft.hw.primitives import Primitives
from weft.timing import Latencies

SMALL = {"dtype": "bf16", "rows": 3, "cols": 5, "a_words": 64, "b_words": 64}
CONFIGS = {
    "lane": Config(lanes=1, bytes_in=2, **SMALL),
    "two-lanes": Config(lanes=2, **SMALL),
    "wide": Config(lanes=4, bytes_in=64, **SMALL),
    "ragged": Config(lanes=8, **SMALL),
    "no-limits": Config(lanes=2, activation="none", **SMALL),
    "ice40": Config(lanes=2, target="ice40up", **SMALL),
}
ALL = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
NAN = 0x7FC00000
# Zeros, the ends of the subnormal and of the normal numbers, ones and their neighbours, infinity.
POSITIVE = [
    0, 1, 0x007FFFFF, 0x00800000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x40000000, 0x7F7FFFFF,
    0x7F800000,
]
EDGES = [*POSITIVE, *(0x80000000 | bits for bits in POSITIVE)]


def expected_results(bits, low, high, *, clamp, rounds):
    """The results of sums; all as bits."""
    x, low, high = (np.array(one, np.uint32).view(np.float32) for one in (bits, low, high))
    if clamp:
        x = np.where(x <= low, low, np.where(x >= high, high, x))
        x = np.where(x == 0, np.float32(0), x)
    if rounds:
        with np.errstate(over="ignore"):
            return x.astype(bfloat16).view(np.uint16).tolist()
    return x.astype(np.float32).view(np.uint32).tolist()


class Bench:
    """A `Bf16Output`, the limits to load into it, and random chunks."""

    def __init__(self, config, limits=None):
        self.config = config
        self.rng = np.random.default_rng(1)
        self.geometries = memories(config)
        job = JobEntry(self.geometries, epilogue_flags(config))
        tile = Tile(self.geometries, job["epilogue"].shape)
        chunk = Chunk(lanes=config.lanes, tile=tile, cols=config.cols)
        self.sum_latency = Latencies.of(config).sum_latency
        self.clamps = Region.PARAMETERS in self.geometries
        writes = {}
        if self.clamps:
            writes["parameters"] = write_port(self.geometries[Region.PARAMETERS])
        self.dut = Bf16Output(
            geometries=self.geometries, chunk=chunk, acc=32, lanes=config.lanes,
            sum_latency=self.sum_latency, writes=writes, target=config.target,
        )
        self.panels = self.geometries[Region.B].pages
        self.row_chunks = -(-config.cols // config.lanes)
        limits = limits or (self.limits() for _ in range(self.panels * config.cols))
        self.columns = np.array(list(limits), np.uint32).reshape(self.panels, config.cols, 2)

    def number(self):
        """Bits of a random number: an edge case, a normally distributed one, or any bits."""
        if self.rng.random() < 0.4:
            return int(self.rng.choice(EDGES))
        if self.rng.random() < 0.5:
            return int(np.float32(self.rng.normal()).view(np.uint32))
        bits = int(self.rng.integers(1 << 32))
        return bits if bits & 0x7F800000 != 0x7F800000 else NAN

    def limits(self):
        found = np.array([self.number(), self.number()], np.uint32)
        found[found == NAN] = 0x3F800000
        order = np.argsort(found.view(np.float32), kind="stable")
        return found[order].tolist()

    def chunk(self, sums=None, **fields):
        """A request for a chunk, its sums, and its expected results."""
        rng, config = self.rng, self.config
        epilogue = {flag.name.lower(): int(rng.integers(2)) for flag in epilogue_flags(config)}
        sums = sums or [self.number() for _ in range(config.lanes)]
        chunk = {
            "index": int(rng.integers(self.row_chunks)), "epilogue": epilogue,
            "b_panel": int(rng.integers(self.panels)), "uses_epilogue": 1, **fields,
        }
        first = chunk["index"] * config.lanes
        low, high = self.columns[chunk["b_panel"], first : first + config.lanes].T
        return chunk, sums, expected_results(
            sums[: len(low)], low, high,
            clamp=chunk["epilogue"].get("clamp"), rounds=chunk["epilogue"]["round"],
        )

    def load(self):
        """The cycles that load the limits."""
        if not self.clamps:
            return
        g, lanes = self.geometries[Region.PARAMETERS], self.config.lanes
        for panel, columns in enumerate(self.columns):
            limits = columns.view(np.float32).tolist()
            entries = [DTYPES["bf16"].parameter.pack(*pair) for pair in limits]
            entries += [bytes(8)] * (self.row_chunks * lanes - len(entries))
            words = [b"".join(entries[n : n + lanes]) for n in range(0, len(entries), lanes)]
            for first in range(0, len(words), g.group):
                line = b"".join(words[first : first + g.group]).ljust(g.segments * g.stream, b"\0")
                for segment in range(g.segments):
                    part = line[segment * g.stream : (segment + 1) * g.stream]
                    yield {"parameters": {"valid": 1, "write": {
                        "line": (panel * g.page + first) // g.group, "segment": segment,
                        "data": int.from_bytes(part, "little"),
                    }}}
        yield {"parameters": {"valid": 0}}

    def run(self, chunks, *, idle=0.0):
        """Check that each chunk has its results after the latency."""
        script, cycles = list(self.load()), []
        for chunk, _, _ in chunks:
            while self.rng.random() < idle:
                script.append({"request": {"valid": 0}})
            cycles.append(len(script))
            script.append({"request": {"valid": 1, "chunk": chunk}})
        latency = self.dut.LATENCY
        script += [{} for _ in range(latency + 1)]
        for cycle, (_, sums, _) in zip(cycles, chunks, strict=True):
            script[cycle + self.sum_latency]["sums"] = sums
        (found,) = play(self.dut, script, "results")
        for cycle, (_, _, results) in zip(cycles, chunks, strict=True):
            assert found[cycle + latency][: len(results)] == results


@ALL
@pytest.mark.parametrize("idle", quick(1, [0.5, 0]))
def test_results_equal_numpys_after_the_latency(config, idle):
    bench = Bench(config)
    latency = {"ice40up": 7}.get(config.target, 6) if bench.clamps else 2
    assert bench.dut.LATENCY == Latencies.of(config).epilogue_latency == latency
    bench.run([bench.chunk() for _ in range(150)], idle=idle)


@pytest.mark.parametrize("rounds", [0, 1])
def test_every_edge_is_clamped_to_every_pair_of_edges(rounds):
    def number(bits):
        return np.uint32(bits).view(np.float32)

    limits = [(low, high) for low in EDGES for high in EDGES if number(low) <= number(high)]
    config = Config(**{**SMALL, "cols": 64, "lanes": 8})
    pages = memories(config)[Region.B].pages
    limits += limits[: pages * 64 - len(limits)]
    bench = Bench(config, limits)
    epilogue = {"clamp": 1, "round": rounds}
    bench.run([
        bench.chunk([bits] * 8, b_panel=panel, index=index, epilogue=epilogue)
        for bits in (*EDGES, NAN) for panel in range(pages) for index in range(8)
    ])


def test_every_upper_half_is_rounded():
    # Lower halves: ties, their neighbours, and values far from a tie.
    config = Config(**{**SMALL, "cols": 64, "lanes": 64, "activation": "none"})
    dut = Bench(config).dut
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    lower = np.array([0, 1, 0x4000, 0x7FFF, 0x8000, 0x8001, 0xC000, 0xFFFF], np.uint32)
    sums = (upper[:, None] | lower).ravel()
    sums = sums[(sums & 0x7F800000 != 0x7F800000) | (sums & 0x7FFFFF == 0)]
    sums = np.append(sums, np.full(-len(sums) % 64, NAN, np.uint32)).reshape(-1, 64)
    found = []

    async def bench(ctx):
        inputs, outputs = Value.cast(dut.sums), Value.cast(dut.results)
        ctx.set(dut.request.chunk.epilogue.round, 1)
        await ctx.tick()
        for words in (*sums, sums[0]):
            ctx.set(inputs, int.from_bytes(words.tobytes(), "little"))
            _, _, word = await ctx.tick().sample(outputs)
            found.append(word.to_bytes(256, "little"))

    simulate(dut, bench)
    got = np.frombuffer(b"".join(found[1:]), np.uint32).reshape(-1, 64)
    with np.errstate(over="ignore"):
        assert np.array_equal(got, sums.view(np.float32).astype(bfloat16).view(np.uint16))


def test_a_clamp_keeps_a_nan_and_needs_its_flag():
    config = CONFIGS["two-lanes"]
    one, two = 0x3F800000, 0x40000000
    bench = Bench(config, [(one, two)] * 4 * config.cols)
    rows = [
        ({"clamp": 1, "round": 0}, [NAN, 0], [NAN, one]),
        ({"clamp": 0, "round": 1}, [NAN, 0x80000000], [0x7FC0, 0x8000]),
        ({"clamp": 0, "round": 0}, [NAN, 0x80000000], [NAN, 0x80000000]),
        ({"clamp": 1, "round": 1}, [0x3F808001, 0x3F818000], [0x3F81, 0x3F82]),
    ]
    bench.run([
        (bench.chunk(sums, index=0, epilogue=flags)[0], sums, results)
        for flags, sums, results in rows
    ])


def test_limits_are_in_block_ram_of_the_family():
    dut = Bench(Config(lanes=2, target="ecp5", **SMALL)).dut
    text = to_verilog(dut, name="bf16_output", platform=Primitives())
    assert text.count("DP16KD ") == 4  # 2 lanes of 64 bits, 36 bits in a block
