"""The serial scaler against golden: ties, edge cases, results at full rate, and pauses."""

import numpy as np
import pytest
from tiers import quick

from verif.amaranth_bench import put, simulate
from weft.golden import scaled
from weft.hw.output.serial_scaler import SerialScaler

LOW, HIGH = -(1 << 31), (1 << 31) - 1
MOST = 1023  # of an exact result


def run(cycles, triples, *, wait=0.0, holds_multiplier=True):
    """``y`` of each triple; inputs are random in all cycles in which they need not be valid."""
    dut = SerialScaler(cycles=cycles, holds_multiplier=holds_multiplier)
    rng = np.random.default_rng(1)
    due, found, now = {}, [], 0
    multipliers = [multiplier for _, multiplier, _ in triples]  # that were not read

    async def step(ctx):
        nonlocal now
        _, _, y, *reads = await ctx.tick().sample(
            dut.y, *([] if holds_multiplier else [dut.reads_multiplier])
        )
        if reads == [1]:
            put(ctx, dut.multiplier, multipliers.pop(0))
        if now in due:
            found.append(y)
        now += 1

    async def bench(ctx):
        for acc, multiplier, shift in triples:
            ctx.set(dut.start, 1)
            due[now + dut.LATENCY] = True
            age = 0
            while age < cycles or rng.random() < wait:
                held = multiplier, shift
                if age >= dut.HELD:
                    held = int(rng.integers(1 << 31)), int(rng.integers(-31, 31))
                if holds_multiplier:
                    put(ctx, dut.multiplier, held[0])
                put(ctx, dut.shift, held[1])
                await step(ctx)
                put(ctx, dut.acc, acc)
                ctx.set(dut.start, 0)
                age += 1
        for _ in range(dut.LATENCY):
            await step(ctx)

    simulate(dut, bench, limit=20 * cycles * len(triples) + 200)
    return found


def check(cycles, triples, **options):
    """Equal to golden up to 10 bits; returns which results are."""
    found = np.array(run(cycles, triples, **options))
    acc, multiplier, shift = (np.array(x, np.int64) for x in zip(*triples, strict=True))
    golden = scaled(acc.astype(np.int32), multiplier, shift, mode="tflite").astype(np.int64)
    small = np.abs(golden) <= MOST
    assert (found[small] == golden[small]).all()
    assert (np.sign(found[~small]) == np.sign(golden[~small])).all()
    assert (np.abs(found[~small]) > MOST).all()
    return small


@pytest.mark.parametrize("wait", [0, 0.6])
@pytest.mark.parametrize("cycles", quick(2, [4, 16, 8, 32]))
def test_random_sums(cycles, wait):
    rng = np.random.default_rng(cycles)
    triples = []
    for _ in range(120 if cycles < 32 else 60):
        acc = int(rng.integers(LOW, HIGH, endpoint=True)) >> int(rng.integers(0, 28))
        multiplier = int(rng.choice([0, 1 << 30, HIGH, rng.integers(1 << 30, 1 << 31)]))
        triples.append((acc, multiplier, int(rng.integers(-31, 8))))
    small = check(cycles, triples, wait=wait)
    assert small.sum() > len(triples) // 3 and (~small).any()


@pytest.mark.parametrize("cycles", [4, 8, 32])
def test_ties_and_edges(cycles):
    triples = [
        (sign * odd << more, 1 << 30, -right)
        for sign in (-1, 1) for odd in (1, 3, 255) for right in (1, 4, 9) for more in (right, 1)
    ]
    triples += [(acc, m, s) for acc in (LOW, HIGH, -1, 0) for m, s in (
        (1 << 30, -31), (HIGH, 0), (HIGH, -24), (1 << 30, 31),
    )]
    check(cycles, triples)


@pytest.mark.parametrize("wait", [0, 0.6])
@pytest.mark.parametrize("cycles", [4, 8])
def test_a_multiplier_that_a_memory_holds(cycles, wait):
    """It changes in the cycle after ``reads_multiplier``, and in no other one."""
    rng = np.random.default_rng(cycles)
    triples = [
        (int(rng.integers(-(1 << 20), 1 << 20)), int(rng.integers(1 << 30, 1 << 31)), -12)
        for _ in range(40)
    ]
    assert check(cycles, triples, wait=wait, holds_multiplier=False).any()
