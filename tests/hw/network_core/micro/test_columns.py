"""The columns of the array: sums against numpy, and the twin of a DSP block against its model."""

import numpy as np
import pytest

from verif.amaranth_bench import play
from verif.primitives import cosimulate
from weft.hw.network_core.micro.columns import ArrayColumns, BlockAccumulator
from weft.sim.primitives import ICE40_MODELS

COLS = 4


def test_an_accumulator_adds_products_of_the_cycle_before():
    script = [
        {"a": -128, "b": -128, "add": 0}, {"a": 127, "b": -128, "add": 1}, {"a": 5, "add": 1},
        {"a": 3, "b": 3, "add": 0}, {"add": 1, "clear": 1}, {"clear": 0}, {"add": 0}, {},
    ]
    (totals,) = play(BlockAccumulator(), script, "total")
    first = 128 * 128
    second = (first - 127 * 128) % (1 << 32)
    # The sum of a cycle is there in the next one; clear comes before add.
    assert totals == [0, 0, first, second, second, 0, 9, 9]


def test_an_accumulator_equals_the_block():
    models = ICE40_MODELS.read_text(encoding="utf-8")
    assert cosimulate(BlockAccumulator(), cycles=3000, models=models) == "PASS"


@pytest.mark.parametrize("line, broken", [
    ("{{16{A_SIGNED & a[15]}}, a}", "{16'b0, a}"),
    ("ORSTTOP, OLOADTOP, OHOLDTOP", "ORSTTOP, 1'b0, 1'b0"),
])
def test_wrong_models_of_the_block_are_detected(line, broken):
    models = ICE40_MODELS.read_text(encoding="utf-8")
    assert models.count(line) == 1
    outcome = cosimulate(BlockAccumulator(), cycles=3000, models=models.replace(line, broken))
    assert outcome.startswith("FAIL")


def values(rng, *shape):
    return rng.choice([-128, -127, 127, *range(-128, 128)], shape).astype(np.int8)


def random_tiles(rng, count):
    """(A [steps, 4], whether it is outside [steps], B [steps, COLS, 4])."""
    for _ in range(count):
        steps = rng.integers(1, 6)
        yield values(rng, steps, 4), rng.random(steps) < 0.3, values(rng, steps, COLS, 4)


def bytes_of(array):
    return int.from_bytes(np.ascontiguousarray(array).tobytes(), "little")


def cycles_of(tiles, outside, gap):
    """The ports in each cycle; the cycle in which each tile has ended."""
    script, ends = [], []
    for a, is_outside, b in tiles:
        for step in range(len(a)):
            last = step == len(a) - 1
            script.append({
                "vector": 0x5A5A5A5A if is_outside[step] else bytes_of(a[step]),
                "is_outside": int(is_outside[step]), "outside": outside & 0xFF,
                "b": [bytes_of(b[step, n, :2]) for n in range(COLS)],
                "first_half": 1, "second_half": 0, "ends": int(last),
            })
            script.append({
                "vector": 0x33333333, "is_outside": 0, "ends": 0, "first_half": 0,
                "second_half": 1, "b": [bytes_of(b[step, n, 2:]) for n in range(COLS)],
            })
        ends.append(len(script) - 2)
        script += [{"second_half": 0, "b": [0x7F7F] * COLS}] * gap
    return script, ends


@pytest.mark.parametrize("outside", [-128, 0, 77])
@pytest.mark.parametrize("gap", [1, 5])
@pytest.mark.parametrize("in_blocks", [True, False])
def test_sums_of_tiles(outside, gap, in_blocks):
    rng = np.random.default_rng(gap)
    tiles = list(random_tiles(rng, 25))
    tiles.append((np.full((2, 4), -128, np.int8), np.zeros(2, bool),
                  np.full((2, COLS, 4), -128, np.int8)))
    script, ends = cycles_of(tiles, outside, gap)
    script = [cycle | {"select": now % COLS} for now, cycle in enumerate(script)]
    tail = [{"select": n % COLS, "second_half": 0} for n in range(len(script), len(script) + 8)]
    columns = ArrayColumns(cols=COLS, in_blocks=in_blocks)
    captured, sums = play(columns, script + tail, "captured", "sums")
    assert [now for now, pulse in enumerate(captured) if pulse] == [end + 3 for end in ends]
    for (a, is_outside, b), end in zip(tiles, ends, strict=True):
        a = np.where(is_outside[:, None], outside, a).astype(int)
        expected = np.einsum("sd,snd->n", a, b.astype(int)) % (1 << 32)
        # They stay until the sums of the next tile, which takes 3 cycles at least.
        for now in range(end + 4, end + 4 + (3 if gap == 1 else 6)):
            assert sums[now] == expected[now % COLS] or now >= len(sums)


def test_clear_begins_again():
    rng = np.random.default_rng(5)
    tiles = list(random_tiles(rng, 2))
    first, _ = cycles_of(tiles[:1], 0, 0)
    second, (end,) = cycles_of(tiles[1:], 0, 3)
    aborted = [cycle | {"ends": 0, "clear": 0} for cycle in first]
    script = [*aborted, *[{"first_half": 0, "second_half": 0, "clear": 1}] * 2, {"clear": 0},
              *second]
    at = len(script) - len(second) + end
    (sums,) = play(ArrayColumns(cols=COLS, in_blocks=True), script, "sums", tail=2)
    a, is_outside, b = tiles[1]
    a = np.where(is_outside[:, None], 0, a).astype(int)
    assert sums[at + 4] == np.einsum("sd,sd->", a, b[:, 0].astype(int)) % (1 << 32)
