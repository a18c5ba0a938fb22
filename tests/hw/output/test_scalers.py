"""The scalers against golden: every tie, every edge, a result a cycle, and waits in between."""

import numpy as np
import pytest

from weft.golden import scaled
from weft.hw.output.scalers import SCALERS
from weft.sim.amaranth_bench import put, simulate
from weft.timing import scale_latency

SEED = 20263
LOW, HIGH = -(1 << 31), (1 << 31) - 1
LIMIT = 1 << 24  # of what mode onnx is exact to: any 8-bit clamp treats all beyond it alike
MODES = pytest.mark.parametrize("mode", SCALERS)


def scaler(mode, cycles=1, stays=1):
    return SCALERS[mode](cycles=cycles, target="generic", rest=8, stays=stays)


def run(mode, acc, multiplier, shift, *, cycles=1, stays=1, wait=0.0):
    """``y`` for each of the triples; garbage is on the ports where nothing needs to be."""
    dut = scaler(mode, cycles, stays)
    latency = dut.latency(cycles)
    rng = np.random.default_rng(SEED)
    given = list(zip(*(x.tolist() for x in (acc, multiplier, shift)), strict=True))
    due, results, now = {}, [], 0  # cycle -> number of the triple

    async def step(ctx):
        nonlocal now
        _, _, y, late = await ctx.tick().sample(dut.y, dut.late)
        if now in due:
            results.append(y)
        for ago in range(dut.lasts):
            if now - ago in due:
                assert late == due[now - ago] % 256
        now += 1

    async def bench(ctx):
        ports = dut.acc, dut.multiplier, dut.shift
        for n, triple in enumerate(given):
            for port, value in zip(ports, triple, strict=True):
                put(ctx, port, value)
            ctx.set(dut.rest, n % 256)
            ctx.set(dut.start, 1)
            due[now + latency] = n
            await step(ctx)
            ctx.set(dut.start, 0)
            there = 1
            while there < cycles or rng.random() < wait:
                for port in (*ports, dut.rest)[: 1 if there < stays else None]:
                    ctx.set(port, int(rng.integers(1 << 7)))
                there += 1
                await step(ctx)
        for _ in range(latency):
            await step(ctx)

    simulate(dut, bench, limit=10 * cycles * len(given) + 100)
    return np.array(results)


def check(mode, acc, multiplier, shift, **options):
    """A triple a step; ``multiplier`` is that of the mode, a float32 in mode onnx."""
    if mode == "onnx":
        golden = scaled(acc, scale=multiplier, mode=mode)
        golden, multiplier = np.clip(golden, -LIMIT, LIMIT), multiplier.view(np.uint32)
    else:
        golden = scaled(acc, multiplier, shift, mode=mode)
    found = run(mode, acc, multiplier, shift, **options)
    wrong = np.flatnonzero(found != golden)
    assert not len(wrong), [
        tuple(int(x[n]) for x in (acc, multiplier, shift, found, golden)) for n in wrong[:5]
    ]


def draw(mode, count, sums, triples):
    """Triples of every kind that golden itself is held against."""
    rng = np.random.default_rng(SEED)
    acc, multiplier, shift = triples(rng, count)
    if mode != "onnx":
        return acc, multiplier, shift
    whole = rng.integers(1 << 23, 1 << 24, count)
    mantissa = np.where(rng.random(count) < 0.2, 1 << 23, whole)
    scale = np.ldexp(mantissa, rng.integers(-56, -22, count)).astype(np.float32)
    return sums(rng, scale.astype(float)), scale, shift


def grid(*axes):
    return [x.ravel() for x in np.meshgrid(*axes, indexing="ij")]


@MODES
def test_equals_golden_on_every_kind_of_sum(mode, sums, triples):
    check(mode, *draw(mode, 6000, sums, triples))


@MODES
def test_waits_where_it_is(mode, sums, triples):
    check(mode, *draw(mode, 300, sums, triples), wait=0.6)


@pytest.mark.parametrize("mode", ["tflite", "single"])
def test_extremes_meet_every_shift(mode):
    sums = np.array([LOW, LOW + 1, -(1 << 30), -3, -2, -1, 0, 1, 2, 3, 1 << 29, 1 << 30, HIGH])
    acc, multiplier, shift = grid(sums, [0, 1 << 30, (1 << 30) + 1, HIGH], range(-31, 32))
    check(mode, acc, multiplier, shift)


@pytest.mark.parametrize("mode", ["tflite", "single"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_ties_are_met_exactly(mode, sign):
    # acc * 2^30 * 2^(shift - 31) is acc / 2^(1 - shift): a tie, and its neighbours.
    whole, e, off = grid([0, 1, 2, 126, 127, 1000], range(1, 20), [-1, 0, 1])
    acc = sign * ((2 * whole + 1) * (1 << e) + off)
    check(mode, acc, np.full(len(acc), 1 << 30), -e)


def test_tflite_wraps_what_a_left_shift_moves_out():
    acc = np.array([1 << 29, 1 << 30, 3 << 28, -(1 << 29), -(3 << 28), LOW, HIGH, 12345678])
    acc, shift = grid(acc, [1, 2, 3, 5, 31])
    found = run("tflite", acc, np.full(len(acc), 1 << 30), shift)
    assert found[3] == 0  # 2^29 scaled by 2^4
    check("tflite", acc, np.full(len(acc), HIGH), shift)


def test_single_saturates():
    [found] = run("single", *(np.array([x]) for x in (LOW, HIGH, 5)))
    assert found == LOW
    [found] = run("single", *(np.array([x]) for x in (HIGH, HIGH, 1)))
    assert found == HIGH


def test_onnx_meets_every_binade_of_sums():
    # 2^n and its neighbours, and halves of the 24th bit around it, to even and away from it.
    power, sign, off = grid(range(32), [-1, 1], [-3, -2, -1, 0, 1, 2, 3])
    near = (1 << power.astype(np.int64)) + off
    step = np.maximum(1 << np.maximum(power - 24, 0), 1)
    halves = (1 << power.astype(np.int64)) + off * step
    acc = np.clip(sign * np.concatenate([near, halves]).reshape(2, -1), LOW, HIGH).ravel()
    acc, exponent = grid(acc, [-40, -26, -9, -7, -1, 0])
    scale = np.ldexp(np.float32(1.0), exponent).astype(np.float32)
    check("onnx", acc, scale, np.zeros(len(acc), int))


def test_onnx_meets_every_binade_of_scales():
    exponent, acc, odd = grid(range(-126, 128), [LOW, -77, 0, 1, 3, HIGH], [0, 1, 2])
    mantissa = np.array([1 << 23, (1 << 23) + 1, (1 << 24) - 1])[odd]
    scale = np.ldexp(mantissa.astype(np.float64), exponent - 23).astype(np.float32)
    check("onnx", acc, scale, np.zeros(len(acc), int))


def test_onnx_rounds_the_product_to_even():
    # 13 bits by 12 bits, both odd: the product has a bit more than a float32 holds.
    rng = np.random.default_rng(SEED)
    count = 3000
    acc = (2 * rng.integers(1 << 11, 1 << 12, count) + 1) * rng.choice([-1, 1], count)
    mantissa = 2 * rng.integers(1 << 10, 1 << 11, count) + 1
    scale = np.ldexp(mantissa.astype(np.float64), -rng.integers(0, 5, count)).astype(np.float32)
    check("onnx", acc, scale, np.zeros(count, int))


def test_onnx_sees_the_last_bit_of_the_product():
    # 48 bits that end in 1000...0001: what lies behind the 24th is half and the least bit more.
    rng = np.random.default_rng(SEED)
    acc = 2 * rng.integers(1 << 22, 1 << 23, 2000) + 1
    inverse = np.array([pow(int(a), -1, 1 << 24) for a in acc])
    mantissa = inverse * ((1 << 23) + 1) & (1 << 24) - 1
    there = (mantissa >= 1 << 23) & (acc * mantissa >= 1 << 47)
    assert there.sum() > 300
    acc, mantissa = acc[there], mantissa[there]
    check("onnx", acc, np.ldexp(mantissa / 1.0, -24).astype(np.float32), 0 * acc)


def test_onnx_rounds_a_product_up_to_a_power_of_two():
    acc, power = grid(np.arange(3, 2000, 2), range(-1, 9))
    scale = (np.ldexp(1.0, power) / acc).astype(np.float32)
    below = acc * scale.astype(float) < np.ldexp(1.0, power)
    below &= acc.astype(np.float32) * scale == np.ldexp(np.float32(1.0), power)
    assert below.sum() > 500
    check("onnx", acc[below], scale[below], 0 * acc[below])


def test_onnx_rounds_halves_to_even():
    whole, sign = grid([0, 1, 2, 3, 126, 127, 254, 255, 100_001], [-1, 1])
    acc = sign * (2 * whole + 1)
    found = run("onnx", acc, np.full(len(acc), 0.5, np.float32).view(np.uint32), acc * 0)
    assert (found == sign * (whole + whole % 2)).all()


@MODES
@pytest.mark.parametrize("cycles", [1, 2, 4, 8, 16, 32])
def test_the_latency_is_the_models(mode, cycles):
    dut = scaler(mode, cycles)
    one = int(np.float32(1.0).view(np.uint32)) if mode == "onnx" else 1 << 30
    seen = []

    async def bench(ctx):
        put(ctx, dut.multiplier, one)
        ctx.set(dut.shift, 1)
        await ctx.tick().repeat(60)
        put(ctx, dut.acc, 7)
        ctx.set(dut.start, 1)
        for _ in range(60):
            seen.append(ctx.get(dut.y))
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.acc, 0)

    simulate(dut, bench)
    assert dut.latency(cycles) == scale_latency(mode, cycles)
    assert seen[dut.latency(cycles)] == 7


@MODES
@pytest.mark.parametrize("cycles, stays", [(2, 1), (4, 2), (8, 8), (16, 5)])
def test_a_sum_may_take_some_cycles(mode, cycles, stays, sums, triples):
    check(mode, *draw(mode, 200, sums, triples), cycles=cycles, stays=stays, wait=0.1)
