"""The array section: sums of random tiles against numpy, each in its cycle."""

import numpy as np
import pytest
from amaranth.lib.data import StructLayout
from network_cores import small_network_core
from tiers import quick

from verif.amaranth_bench import play
from weft.hw.network_core.array_section import ArraySection
from weft.latencies import MEMORY_READ

WORDS, BUFFER_ROWS = 32, 64
STEP = StructLayout({"en": 1, "clear": 1, "capture": 1, "drain": 1, "b_addr": range(WORDS)})


CHIPS = [
    small_network_core(2, 2, 2, 2), small_network_core(3, 2, 4, multiplier="fip"),
    small_network_core(1, 4, 2, 2, hop=2),
    small_network_core(3, 4, 2, 2, target="ecp5", hop=2),
    small_network_core(2, 2, 4, 2, target="ecp5", multiplier="plain"),
]


def pair_sums(vectors):
    """``sum(v[d] * v[d+1])`` over even d."""
    return (vectors[:, ::2] * vectors[:, 1::2]).sum(axis=1)


class Tiles:
    """Tiles of random operands: a script of their steps, and their sums, row after row.

    ``a`` has the operands by cycle, ``b`` the address by cycle.
    """

    def __init__(self, config, a_latency, count, seed=1):
        self.rng = np.random.default_rng(seed)
        self.core, self.a_latency = config.array, a_latency
        self.tile_rows = config.tile_rows
        self.corrected = config.array.cell.corrected
        self.words = self.rng.integers(-128, 128, (WORDS, config.array.cols, config.array.depth))
        self.script, self.ends, self.sums, self.pairs = [], [], [], []
        self.a, self.b = {}, {}
        for _ in range(count):
            self._tile(int(self.rng.integers(1, 5)))

    def _tile(self, k):
        total, pairs = 0, 0
        for n in range(k):
            last = n == k - 1
            while self.rng.random() < 0.2 or (last and self._drains()):
                self.script.append(dict.fromkeys(("en", "clear", "capture", "drain"), 0))
            address = int(self.rng.integers(WORDS))
            a, b = self.rng.integers(-128, 128, (self.core.rows, self.core.depth)), self.words
            self.a[len(self.script) + self.a_latency] = a
            self.b[len(self.script) + self.a_latency] = address
            total += a @ b[address].T
            if self.corrected:
                pairs += pair_sums(a)
                total += pair_sums(a)[:, None] + pair_sums(b[address])
            self.script.append({
                "en": 1, "clear": n == 0, "capture": last, "drain": last, "b_addr": address,
            })
        self.ends.append(len(self.script) - 1)
        self.sums += list(total)
        self.pairs += list(np.broadcast_to(pairs, self.core.rows))

    def _drains(self):
        """Whether the array still drains the tile before."""
        return bool(self.ends) and len(self.script) < self.ends[-1] + self.tile_rows


def stimulus(tiles, cycles):
    """The ports in each cycle: steps, and operands at their latency; other operands are random."""
    core = tiles.core
    for now in range(cycles):
        noise = tiles.rng.integers(-128, 128, (core.rows + core.cols, core.depth)).tolist()
        b = tiles.words[tiles.b[now]].tolist() if now in tiles.b else noise[core.rows :]
        a = tiles.a[now].tolist() if now in tiles.a else noise[: core.rows]
        step = tiles.script[now] if now < len(tiles.script) else {"en": 0, "drain": 0}
        yield {"step": step, "a": a, "b.data": b}


@pytest.mark.parametrize("a_latency", quick(1, [5, 2]))
@pytest.mark.parametrize(
    "config", CHIPS, ids=lambda config: f"{config.array.target}{config.array.name}"
)
def test_sums_of_random_tiles(config, a_latency):
    tiles = Tiles(config, a_latency, BUFFER_ROWS // config.array.rows)
    rows, chunks = len(tiles.sums), config.row_chunks
    first = ArraySection.write_latency(config, a_latency)
    written = [end + first + p for end in tiles.ends for p in range(config.array.rows)]
    # Each row is read in the cycles after its last column was written.
    reads, now = {}, 0
    for row, cycle in enumerate(written):
        for index in range(chunks):
            now = max(now, cycle) + 1
            reads[now] = row, index
    cycles = now + ArraySection.latency(config) + 1
    script = list(stimulus(tiles, cycles))
    for now, (row, index) in reads.items():
        script[now] |= {"results.address": row, "results.index": index}
    dut = ArraySection(config, step=STEP, a_latency=a_latency, buffer_rows=BUFFER_ROWS)
    outputs = "b.address", *(f"results.{name}" for name in ("row_written", "sums", "pair_sum"))
    b_addr, row_written, sums, pair = play(dut, script, *outputs)
    assert [n for n, high in enumerate(row_written) if high] == written
    assert all(b_addr[now - MEMORY_READ] == address for now, address in tiles.b.items())
    lanes = config.array.lanes
    for now, (row, index) in reads.items():
        at = now + ArraySection.latency(config)
        assert sums[at] == tiles.sums[row][index * lanes : (index + 1) * lanes].tolist()
        assert pair[at] == tiles.pairs[row]
    assert len(reads) == rows * chunks


@pytest.mark.parametrize("config", [
    small_network_core(4, 4, 4, 4, hop=2, multiplier="fip", two_rows=True),
    small_network_core(8, 2, 4, 2, hop=4, target="ecp5", two_rows=True),
    small_network_core(2, 2, 2, 2, hop=2, two_rows=True),
], ids=lambda config: f"{config.array.target}{config.array.name}")
def test_two_rows_leave_together(config):
    """``sums`` are those of one of both rows, by the index; ``second_sums`` of the second one."""
    a_latency, core = 5, config.array
    tiles = Tiles(config, a_latency, BUFFER_ROWS // config.tile_rows)
    first = ArraySection.write_latency(config, a_latency)
    written = [end + first + p for end in tiles.ends for p in range(config.tile_rows)]
    reads, now = {}, 0
    for row, cycle in enumerate(written):
        for index in range(2):
            now = max(now, cycle) + 1
            reads[now] = row, index
    script = list(stimulus(tiles, now + ArraySection.latency(config) + 1))
    for now, (row, index) in reads.items():
        script[now] |= {"results.address": row, "results.index": index}
    dut = ArraySection(config, step=STEP, a_latency=a_latency, buffer_rows=BUFFER_ROWS)
    names = "row_written", "sums", "pair_sum", "second_sums", "second_pair_sum"
    row_written, sums, pair, second_sums, second_pair = play(
        dut, script, *(f"results.{name}" for name in names)
    )
    assert [n for n, high in enumerate(row_written) if high] == written
    for now, (row, index) in reads.items():
        at = now + ArraySection.latency(config)
        found = (sums[at], pair[at]), (second_sums[at], second_pair[at])
        both = 2 * row + index, 2 * row + 1
        assert found == tuple((tiles.sums[each].tolist(), tiles.pairs[each]) for each in both)
    assert len(tiles.sums) == len(reads) == BUFFER_ROWS // config.tile_rows * core.rows
