"""The step unit: the taps of a pixel in the order of the loops of a job."""

import random
from dataclasses import dataclass

import pytest

from verif.amaranth_bench import put, simulate
from weft.hw.network_core.micro.columns import StepUnit

B_WORDS = 64
BITS = (1 << 16) - 1


@dataclass(frozen=True)
class Tile:
    """The fields of a job, and the first tap of a pixel."""

    fields: dict
    x: int
    y: int
    origin: int
    b_word: int

    def steps(self):
        """(vector, whether it is outside, word of B) of each step; plain loops."""
        f, word = self.fields, self.b_word
        number = self.origin
        for ky in range(f["kernel_height"]):
            for kx in range(f["kernel_width"]):
                x, y = self.x + kx * f["dilation_x"], self.y + ky * f["dilation_y"]
                outside = not (0 <= x < f["in_width"] and 0 <= y < f["in_height"])
                for c in range(f["tap_vectors"]):
                    yield number & BITS, outside, word % B_WORDS
                    word += 1
                    number += c < f["tap_vectors"] - 1
                # The steps lead from the last vector of a tap to the first one of the next tap.
                number += f["tap_x_step" if kx < f["kernel_width"] - 1 else "tap_y_step"]


def random_tile(rng):
    fields = {
        "kernel_height": rng.randint(1, 3), "kernel_width": rng.randint(1, 3),
        "tap_vectors": rng.randint(1, 3),
        "in_height": rng.randint(2, 6), "in_width": rng.randint(2, 6),
        "dilation_y": rng.randint(1, 3), "dilation_x": rng.randint(1, 3),
        "tap_x_step": rng.randint(-40, 40), "tap_y_step": rng.randint(-400, 400),
    }
    return Tile(
        fields, x=rng.randint(-2, 3), y=rng.randint(-2, 3), origin=rng.randint(500, 60000),
        b_word=rng.randrange(B_WORDS),
    )


async def run_tile(ctx, dut, tile, *, rng, idle=0.0, base=0, limit=BITS):
    """Compare a tile with its loops; returns its cycles and its errors, by the number of a step."""
    put(ctx, dut.fields, {name: value & 0xFFFF for name, value in tile.fields.items()})
    for name in ("x", "y", "origin"):
        ctx.set(getattr(dut, name), getattr(tile, name) & BITS)
    ctx.set(dut.b_word, tile.b_word)
    ctx.set(dut.window.base, base)
    ctx.set(dut.window.limit, limit)
    ctx.set(dut.start, 1)
    trace = []
    while True:
        ctx.set(dut.may_end, rng.random() >= idle)
        ctx.set(dut.free, rng.random() >= idle / 2)
        names = ("may_end", "free", "read", "address", "b_address", "valid", "outside", "ends",
                 "address_error", "idle")
        values = (await ctx.tick().sample(*(getattr(dut, name) for name in names)))[2:]
        ctx.set(dut.start, 0)
        trace.append(dict(zip(names, values, strict=True)))
        if trace[-1]["ends"]:
            break
    starts = [now for now, cycle in enumerate(trace) if cycle["read"]]
    found = [
        (trace[now]["address"], trace[now + 1]["outside"], trace[now]["b_address"])
        for now in starts
    ]
    expected = list(tile.steps())
    assert found == expected
    errors = []
    for step, (now, (vector, outside, _)) in enumerate(zip(starts, expected, strict=True)):
        assert trace[now]["free"]
        wrong = not outside and not base <= vector < limit
        assert trace[now + 1]["address_error"] == wrong
        errors += [step] * wrong
        assert trace[now + 1]["ends"] == (step == len(starts) - 1)
    assert [now + 1 for now in starts] == [n for n, cycle in enumerate(trace) if cycle["valid"]]
    assert trace[starts[-1]]["may_end"]
    assert sum(cycle["address_error"] for cycle in trace) == len(errors)
    assert trace[starts[-1] + 1]["idle"]
    assert not any(c["idle"] for c in trace[1 : starts[-1] + 1])
    return len(trace), errors


@pytest.mark.parametrize("idle", [0, 0.8])
def test_tiles_follow_the_loops_of_a_job(idle):
    rng, dut = random.Random(7), StepUnit(b_words=B_WORDS)

    async def bench(ctx):
        inside = outside = 0
        for _ in range(40):
            tile = random_tile(rng)
            cycles, _ = await run_tile(ctx, dut, tile, rng=rng, idle=idle)
            places = [step[1] for step in tile.steps()]
            inside, outside = inside + places.count(False), outside + places.count(True)
            # The first step follows the start, and the operands follow the last one.
            assert idle or cycles == len(places) + 2
        assert min(inside, outside) > 40

    simulate(dut, bench, limit=20000)


def test_only_the_last_step_waits_for_the_columns_and_each_one_for_the_memory():
    dut, reads = StepUnit(b_words=B_WORDS), []

    async def bench(ctx):
        put(ctx, dut.fields, dict(
            kernel_height=1, kernel_width=2, tap_vectors=2, in_height=9, in_width=9,
            tap_x_step=5, tap_y_step=7,
        ))
        ctx.set(dut.origin, 10)
        ctx.set(dut.window.limit, 100)
        ctx.set(dut.start, 1)
        for now in range(40):
            ctx.set(dut.may_end, now >= 30)
            ctx.set(dut.free, now not in (2, 3, 30))
            (read,) = (await ctx.tick().sample(dut.read))[2:]
            ctx.set(dut.start, 0)
            if read:
                reads.append(now)

    simulate(dut, bench)
    assert reads == [1, 4, 5, 31]


def test_vectors_beyond_the_limits_are_errors_inside_the_map_only():
    rng, dut = random.Random(3), StepUnit(b_words=B_WORDS)
    counts = []

    async def bench(ctx):
        for _ in range(40):
            tile = random_tile(rng)
            vectors = [vector for vector, *_ in tile.steps()]
            limits = dict(zip(("base", "limit"), sorted(rng.choices(vectors, k=2)), strict=True))
            counts.append(len((await run_tile(ctx, dut, tile, rng=rng, **limits))[1]))

    simulate(dut, bench, limit=20000)
    assert 0 in counts and sum(counts) > 20
