"""The scalers against golden: ties, edge cases, a result every cycle, and pauses."""

import functools

import numpy as np
import pytest
from tiers import quick

from verif.amaranth_bench import put, simulate
from weft import latencies
from weft.golden import scaled
from weft.hw.output.scalers import SCALERS

SEED = 20263
LOW, HIGH = -(1 << 31), (1 << 31) - 1
LIMIT = 1 << 24  # mode onnx saturates to it: any 8-bit clamp treats all values beyond alike
MODES = pytest.mark.parametrize("mode", SCALERS)


@functools.cache
def scaler(mode, cycles=1, stable=1):
    return SCALERS[mode](cycles=cycles, target="generic", extra=8, stable=stable)


def run(mode, acc, multiplier, shift, *, cycles=1, stable=1, wait=0.0):
    """``y`` for each triple; inputs are random in all cycles in which they need not be valid."""
    dut = scaler(mode, cycles, stable)
    latency = dut.latency(cycles)
    rng = np.random.default_rng(SEED)
    triples = list(zip(*(x.tolist() for x in (acc, multiplier, shift)), strict=True))
    outputs, results, now = {}, [], 0  # outputs: the index of the triple, by cycle

    async def step(ctx):
        nonlocal now
        _, _, y, extra = await ctx.tick().sample(dut.y, dut.o_extra)
        if now in outputs:
            results.append(y)
        for age in range(dut.o_stable):
            if now - age in outputs:
                assert extra == outputs[now - age] % 256
        now += 1

    async def bench(ctx):
        ports = dut.acc, dut.multiplier, dut.shift
        for n, triple in enumerate(triples):
            for port, value in zip(ports, triple, strict=True):
                put(ctx, port, value)
            ctx.set(dut.extra, n % 256)
            ctx.set(dut.start, 1)
            outputs[now + latency] = n
            await step(ctx)
            ctx.set(dut.start, 0)
            age = 1
            while age < cycles or rng.random() < wait:
                for port in (*ports, dut.extra)[: 1 if age < stable else None]:
                    ctx.set(port, int(rng.integers(1 << 7)))
                age += 1
                await step(ctx)
        for _ in range(latency):
            await step(ctx)

    simulate(dut, bench, limit=10 * cycles * len(triples) + 100)
    return np.array(results)


def check(mode, acc, multiplier, shift, **options):
    """Compare all triples with golden; in mode onnx ``multiplier`` is a float32."""
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
    """Random triples, drawn as for the tests of golden."""
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
@pytest.mark.parametrize("count", [2000, pytest.param(6000, marks=pytest.mark.long)])
def test_equals_golden_on_sums_of_all_kinds(mode, count, sums, triples):
    check(mode, *draw(mode, count, sums, triples))


@MODES
def test_results_are_correct_with_pauses(mode, sums, triples):
    check(mode, *draw(mode, 300, sums, triples), wait=0.6)


@pytest.mark.parametrize("mode", ["tflite", "single"])
def test_extreme_sums_with_every_shift(mode):
    sums = np.array([LOW, LOW + 1, -(1 << 30), -3, -2, -1, 0, 1, 2, 3, 1 << 29, 1 << 30, HIGH])
    acc, multiplier, shift = grid(sums, [0, 1 << 30, (1 << 30) + 1, HIGH], range(-31, 32))
    check(mode, acc, multiplier, shift)


@pytest.mark.parametrize("mode", ["tflite", "single"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_ties_and_their_neighbours(mode, sign):
    # acc * 2^30 * 2^(shift - 31) is acc / 2^(1 - shift): a tie, and its neighbours.
    whole, e, off = grid([0, 1, 2, 126, 127, 1000], range(1, 20), [-1, 0, 1])
    acc = sign * ((2 * whole + 1) * (1 << e) + off)
    check(mode, acc, np.full(len(acc), 1 << 30), -e)


def test_tflite_wraps_after_a_left_shift():
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


def test_onnx_with_sums_of_every_binade():
    # 2^n and its neighbours, and halves of the 24th bit around it: ties to even, both ways.
    power, sign, off = grid(range(32), [-1, 1], [-3, -2, -1, 0, 1, 2, 3])
    near = (1 << power.astype(np.int64)) + off
    step = np.maximum(1 << np.maximum(power - 24, 0), 1)
    halves = (1 << power.astype(np.int64)) + off * step
    acc = np.clip(sign * np.concatenate([near, halves]).reshape(2, -1), LOW, HIGH).ravel()
    acc, exponent = grid(acc, [-40, -26, -9, -7, -1, 0])
    scale = np.ldexp(np.float32(1.0), exponent).astype(np.float32)
    check("onnx", acc, scale, np.zeros(len(acc), int))


def test_onnx_with_scales_of_every_binade():
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


def test_onnx_uses_the_last_bit_of_the_product():
    # 48 bits that end in 1000...0001: half of the 24th bit, plus the lowest bit.
    rng = np.random.default_rng(SEED)
    acc = 2 * rng.integers(1 << 22, 1 << 23, 2000) + 1
    inverse = np.array([pow(int(a), -1, 1 << 24) for a in acc])
    mantissa = inverse * ((1 << 23) + 1) & (1 << 24) - 1
    suitable = (mantissa >= 1 << 23) & (acc * mantissa >= 1 << 47)
    assert suitable.sum() > 300
    acc, mantissa = acc[suitable], mantissa[suitable]
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
@pytest.mark.parametrize("cycles", quick(3, [1, 4, 32, 2, 8, 16]))
def test_the_latency_equals_the_cycle_models(mode, cycles):
    dut = scaler(mode, cycles)
    one = int(np.float32(1.0).view(np.uint32)) if mode == "onnx" else 1 << 30
    outputs = []

    async def bench(ctx):
        put(ctx, dut.multiplier, one)
        ctx.set(dut.shift, 1)
        await ctx.tick().repeat(60)
        put(ctx, dut.acc, 7)
        ctx.set(dut.start, 1)
        for _ in range(60):
            outputs.append(ctx.get(dut.y))
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.acc, 0)

    simulate(dut, bench)
    assert dut.latency(cycles) == latencies.scaler(mode, cycles)
    assert outputs[dut.latency(cycles)] == 7


@MODES
@pytest.mark.parametrize("cycles, stable", quick(1, [(4, 2), (2, 1), (16, 5), (8, 8)]))
def test_a_sum_may_take_several_cycles(mode, cycles, stable, sums, triples):
    check(mode, *draw(mode, 200, sums, triples), cycles=cycles, stable=stable, wait=0.1)


def rounding_to_powers(rng, count):
    """Odd integers a and b below 2^24 whose product is rounded up to a power of two: 24 ones."""
    found = []
    while len(found) < count:
        a = rng.integers(1 << 23, 1 << 24, 1 << 16)
        for power in (47, 46):
            b = ((1 << power + 1) - 1) // a
            top = power - 24
            fits = (b < 1 << 24) & (b >= 1 << 23) & (a * b >> top == (1 << 25) - 1)
            found += [*zip(a[fits].tolist(), b[fits].tolist(), strict=True)]
    return found[:count]


def test_onnx_products_that_carry_over():
    """With the result at each place: 2^-4 to 2^26, next to ties and beyond the largest one."""
    pairs = rounding_to_powers(np.random.default_rng(SEED), 40)
    # Also sums whose rounding to 24 bits carries over.
    sums = [a for a, _ in pairs] + [(1 << 31) - 1, (1 << 31) - 64, (1 << 25) - 1, (1 << 24) - 1]
    scales = [b for _, b in pairs] + [1 << 23] * 4
    acc, scale = [], []
    for a, b in zip(sums, scales, strict=True):
        for result in range(-4, 27):
            value = np.ldexp(float(b), result - int(np.round(np.log2(float(a) * b))))
            for sign in (1, -1):
                acc.append(sign * a)
                scale.append(value)
    check("onnx", np.array(acc), np.array(scale).astype(np.float32), np.zeros(len(acc), int))
