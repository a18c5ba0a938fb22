"""The columns of the array: sums against numpy."""

import numpy as np
import pytest
from network_cores import MICRO, MICRO_LOGIC

from verif.amaranth_bench import play
from weft.hw.network_core.micro.columns import ArrayColumns

COLS = MICRO.array.cols
ARRAYS = {"up": MICRO.array, "hx": MICRO_LOGIC.array}
LATENCY = {"up": 5, "hx": 6}  # cycles from the operands of a step to its sums


def values(rng, *shape):
    return rng.choice([-128, -127, 127, *range(-128, 128)], shape).astype(np.int8)


def random_tiles(rng, count):
    """(A [steps, 4], whether it is outside [steps], B [steps, COLS, 4])."""
    for _ in range(count):
        steps = rng.integers(1, 12)
        yield values(rng, steps, 4), rng.random(steps) < 0.3, values(rng, steps, COLS, 4)


def bytes_of(array):
    return int.from_bytes(np.ascontiguousarray(array).tobytes(), "little")


def cycles_of(tiles, outside, gap, pause):
    """The ports in each cycle; the cycle of the last step of each tile.

    ``gap`` cycles are between two tiles, and up to ``pause`` between two steps.
    """
    rng, script, ends = np.random.default_rng(9), [], []
    for a, is_outside, b in tiles:
        for step in range(len(a)):
            script += [{"valid": 0, "ends": 0, "vector": 0x33333333}] * rng.integers(pause + 1)
            script.append({
                "vector": 0x5A5A5A5A if is_outside[step] else bytes_of(a[step]),
                "is_outside": int(is_outside[step]), "outside": outside & 0xFF,
                "b": [bytes_of(b[step, n]) for n in range(COLS)],
                "valid": 1, "ends": int(step == len(a) - 1),
            })
        ends.append(len(script) - 1)
        script += [{"valid": 0, "ends": 0, "b": [0x7F7F7F7F] * COLS}] * gap
    return script, ends


def skewed(script):
    """With the upper halves of the words of B a cycle later."""
    script, before = [dict(cycle) for cycle in script], [0] * COLS
    words = [0] * COLS
    for cycle in script:
        words = cycle.get("b", words)
        cycle["b"] = [
            word & 0xFFFF | late & 0xFFFF0000 for word, late in zip(words, before, strict=True)
        ]
        before = words
    return script


@pytest.mark.parametrize("outside", [-128, 0, 77])
@pytest.mark.parametrize("gap, pause", [(1, 0), (5, 2)])
@pytest.mark.parametrize("family", ARRAYS)
def test_sums_of_tiles(outside, gap, pause, family):
    """They are taken one after the other, also while the steps of the next tile come."""
    rng, latency = np.random.default_rng(gap), LATENCY[family]
    tiles = list(random_tiles(rng, 25))
    tiles.append((np.full((4, 4), -128, np.int8), np.zeros(4, bool),
                  np.full((4, COLS, 4), -128, np.int8)))
    script, ends = cycles_of(tiles, outside, gap, pause)
    # The first sum stays until it is taken: here in the second cycle, and then in each cycle.
    tail = [{} for _ in range(latency + 8)]
    script = [{**cycle, "take": 0} for cycle in script + tail]
    for end in ends:
        for now in range(end + latency + 2, min(end + latency + 2 + COLS, len(script))):
            script[now]["take"] = 1
    script = skewed(script) if family == "up" else script
    captured, sums = play(ArrayColumns(ARRAYS[family]), script, "captured", "sums")
    assert [now for now, pulse in enumerate(captured) if pulse] == [end + latency for end in ends]
    compared = 0
    for n, ((a, is_outside, b), end) in enumerate(zip(tiles, ends, strict=True)):
        a = np.where(is_outside[:, None], outside, a).astype(int)
        expected = np.einsum("sd,snd->n", a, b.astype(int)) % (1 << 32)
        first = end + latency + 1
        stop = ends[n + 1] + latency + 1 if n + 1 < len(ends) else len(sums)
        overlaps = any(0 <= first - (other + latency + 2) < COLS + 1 for other in ends[:n])
        for column, now in enumerate([first, *range(first + 2, first + 1 + COLS)]):
            if now < stop and not overlaps:
                assert sums[now] == expected[column], (n, column)
                compared += column == COLS - 1
    assert compared > 8


def test_clear_begins_again():
    rng, latency = np.random.default_rng(5), LATENCY["up"]
    tiles = list(random_tiles(rng, 2))
    first, _ = cycles_of(tiles[:1], 0, 0, 0)
    second, (end,) = cycles_of(tiles[1:], 0, 3, 0)
    aborted = [cycle | {"ends": 0, "clear": 0} for cycle in first]
    # The last products may come after it.
    script = [*aborted, {"valid": 0, "clear": 0}, *[{"valid": 0, "clear": 1}] * latency,
              {"clear": 0}, *second]
    at = len(script) - len(second) + end
    (sums,) = play(ArrayColumns(MICRO.array), skewed(script), "sums", tail=latency)
    a, is_outside, b = tiles[1]
    a = np.where(is_outside[:, None], 0, a).astype(int)
    assert sums[at + latency + 1] == np.einsum("sd,sd->", a, b[:, 0].astype(int)) % (1 << 32)
