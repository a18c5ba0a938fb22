"""The rescaler: the results of one chunk against golden, after the latency, for each edge."""

from dataclasses import replace

import numpy as np
import pytest
from network_core_layers import scaling
from network_core_output import network_core_of
from wrapping import wrap32

from verif.amaranth_bench import plain, put, simulate
from weft.golden import requantize, scaled
from weft.hw.network_core.output.rescaler import Rescaler
from weft.latencies import MEMORY_READ
from weft.network_core import latencies

EDGES = [-(1 << 31), -(1 << 30), -70000, -1, 0, 1, 70000, (1 << 31) - 1]
LINES = {  # of both lanes: bias, multiplier, shift
    3: [(-5, 1 << 30, -9), (1 << 30, (1 << 31) - 1, -24)],
    10: [(0, 3 << 29, -20)] * 2,
    11: [(0, 3 << 29, -7)] * 2,  # of a product
}
SCALES = [((1 << 30) + 98765, 0), ((1 << 31) - 54321, -1)]  # of the added map and of the results
ADD_ZERO = 3
JOB = {
    "zero": -7, "low": -100, "high": 120, "sum_zero": 100,
    "sum_low": -128, "sum_high": 127,
}


def expected(config, sums, added, multiply):
    mode = config.array.requantize
    rows = np.array(LINES[3])
    wrapped = (np.array(sums) + rows[:, 0]).astype(np.int32)
    y = requantize(wrapped, **scaling(mode, *rows[:, 1:].T), zero_point=-7, low=-100, high=120)
    if added is None:
        return y.tolist()
    if multiply:
        total = (np.array(added) - ADD_ZERO) * (y.astype(int) + 7)
        return requantize(
            total.astype(np.int32), **scaling(mode, *LINES[11][0][1:]), zero_point=100
        ).tolist()
    total = np.zeros(2, np.int64)
    for scale, values in zip(SCALES, (np.array(added) - ADD_ZERO, y.astype(int) + 7), strict=True):
        total += scaled(values * 2**20, **scaling(mode, *scale))
    return requantize(
        total.astype(np.int32), **scaling(mode, *LINES[10][0][1:]), zero_point=100
    ).tolist()


def column(core, bias, multiplier, shift):
    """The parameters of a column; in mode onnx a multiplier has the bits of a scale."""
    if core.requantize == "onnx":
        scale = scaling("onnx", multiplier, shift)["scale"]
        multiplier, shift = int(scale.view(np.uint32)), 0
    return {"bias": bias, "multiplier": multiplier, "shift": shift}


def table(config, multiply):
    """The ADD table; the upper halves of factors have no meaning."""
    values = np.arange(256).astype(np.int8).astype(np.int64)
    if multiply:
        return [int(v) % (1 << 16) | 0x3C3C << 16 for zero in (ADD_ZERO, -7) for v in values - zero]
    return [
        int(t) for scale, zero in zip(SCALES, (ADD_ZERO, -7), strict=True)
        for t in scaled((values - zero) * 2**20, **scaling(config.array.requantize, *scale))
    ]


CONFIGS = {
    "plain": network_core_of(2, 2, 2, 2),
    "fip": network_core_of(2, 2, 2, 2, multiplier="fip", requantize="single"),
    "ecp5": network_core_of(2, 2, 2, 2, target="ecp5", scale_cycles=2),
    "onnx": network_core_of(2, 2, 2, 2, multiplier="fip", requantize="onnx"),
    "onnx-ecp5": network_core_of(2, 2, 2, 2, target="ecp5", requantize="onnx", scale_cycles=4),
    "serial": network_core_of(2, 2, 2, 2, target="ice40up", scale_cycles=8),
    "two-rows": network_core_of(2, 2, 2, 2, multiplier="fip", hop=2, two_rows=True),
    "serial-fip": network_core_of(2, 2, 2, 2, target="ice40hx", multiplier="fip", scale_cycles=16),
}
SECOND = "fip", "onnx-ecp5", "serial-fip"  # other Configs with the same rounding or slots
OPTION = {name: replace(config, multiply_maps=True) for name, config in CONFIGS.items()}


@pytest.mark.parametrize("config, kind", [
    *((config, kind) for name, config in CONFIGS.items() if name not in SECOND
      for kind in ("plain", "add")),
    *((config, "multiply") for config in OPTION.values()),
    *(
        pytest.param(config, kind, marks=pytest.mark.slow)
        for config in (*(CONFIGS[name] for name in SECOND), *OPTION.values())
        for kind in ("plain", "add")
    ),
], ids=lambda value: value if isinstance(value, str) else "")
def test_results_follow_the_request(config, kind):
    dut, core = Rescaler(config), config.array
    add, multiply = kind != "plain", kind == "multiply"
    latency = latencies.rescale_total(config) if add else latencies.rescale(config)
    words = table(config, multiply)
    sums_at = latencies.join(core) - core.cell.corrected
    second = config.two_rows and not add  # the results of the next pixel

    async def chunk(ctx, sums, added):
        pair = 1234567 * core.cell.corrected
        lines, addresses, found = [0] * MEMORY_READ, [[0, 0]] * MEMORY_READ, None
        for now in range(latency + 1):
            put(ctx, dut.request.valid, now == 0)
            put(ctx, dut.request.chunk.line, 3 if now == 0 else 0)
            values = sums if now == sums_at else [77, 77]
            put(ctx, dut.sums, [(v + pair + (1 << 31)) % (1 << 32) - (1 << 31) for v in values])
            put(ctx, dut.pair_sum, pair)
            if config.two_rows:
                other = [wrap32(v - pair) for v in reversed(values)]
                put(ctx, dut.second_sums, other)
                put(ctx, dut.second_pair_sum, -pair)
            parameters = LINES.get(lines.pop(0), [(9, 9, 9)] * 2)
            put(ctx, dut.lines.data, [column(core, *values) for values in parameters])
            put(ctx, dut.table.data, [words[n] for n in addresses.pop(0)])
            ports = dut.results, dut.results_next, dut.lines.address, dut.table.address
            others = (dut.second_results,) if second else ()
            _, _, results, following, line, addressed, *of_second = (
                await ctx.tick().sample(*ports, *others)
            )
            lines.append(line)
            addresses.append(plain(addressed))
            assert following == (now == latency - Rescaler.NEXT)
            found = plain(results)
        for other in of_second:
            assert plain(other) == expected(config, sums[::-1], None, multiply)
        assert found == expected(config, sums, added if add else None, multiply)

    async def bench(ctx):
        fields = {"add": add, "add_line": 11 if multiply else 10}
        if config.multiply_maps:
            fields["multiply"] = multiply
        put(ctx, dut.job.fields, {**plain(ctx.get(dut.job.fields)), **JOB, **fields})
        for number, value in enumerate(EDGES):
            put(ctx, dut.job.start, 1)
            await ctx.tick()
            put(ctx, dut.job.start, 0)
            added = [-128, 127] if number % 2 else [number, -number]
            put(ctx, dut.added.payload, added)
            put(ctx, dut.added.valid, 1)
            await chunk(ctx, [value, EDGES[-1 - number]], added)

    simulate(dut, bench)


DIGITS = network_core_of(2, 4, 4, 4, int16=True)
MULTIPLIER, SHIFT = (1 << 30) + 12345, -2  # of the last digit of a sum


def value_of(total):
    """A sum modulo 2^32, scaled."""
    wrapped = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    return int(scaled(np.int32([wrapped]), MULTIPLIER, SHIFT)[0])


@pytest.mark.parametrize("kind, size", [
    ("pairs", 2), ("quads", 4), ("quad_pairs", 4), ("words", 4), ("", 1),
])
@pytest.mark.parametrize("cycles, low, high", [
    (1, -(1 << 15), (1 << 15) - 1), (1, -300, 21000),
    pytest.param(2, 0, 0, marks=pytest.mark.slow),
    pytest.param(1, -(1 << 15), -129, marks=pytest.mark.slow),
])
def test_lanes_with_the_digits_of_a_sum(kind, size, cycles, low, high):
    """Values of all magnitudes, beyond limits, and sums modulo 2^32; chunks at full rate."""
    config = replace(DIGITS, array=replace(DIGITS.array, scale_cycles=cycles))
    dut, rng, count = Rescaler(config), np.random.default_rng(1), 40
    sums = rng.integers(-(1 << 31), 1 << 31, (count, 4)) >> rng.integers(0, 32, (count, 4))
    sums[::3, ::2] >>= 24
    sums[0], sums[1], sums[2] = [0, 1 << 19, 0, -1], [0, -(1 << 23), 0, 0], [1 << 24, 0, 0, 9]
    bias = np.array([3, -70000, 5, 1 << 30])
    expected = []
    for chunk in (sums + bias).tolist():
        values = [value_of(t) for t in chunk]
        if kind == "quad_pairs":
            values[1] = value_of((chunk[0] << 8) + chunk[1])
        for last in range(size - 1, 4, size):
            digits = chunk[last - size + 1 : last + 1]
            values[last] = value_of(sum(t << 8 * (size - 1 - n) for n, t in enumerate(digits)))
        if kind == "words":
            y = values[3]
            expected.append([y >> 24, *((y >> shift & 255) - 128 for shift in (16, 8, 0))])
        elif kind.endswith("pairs"):
            limited = [min(max(value, low), high) for value in values[1::2]]
            expected.append([part for y in limited for part in (y >> 8, (y & 255) - 128)])
        else:
            expected.append([min(max(value, -128), 127) for value in values])

    async def bench(ctx):
        fields = {"zero": 0, "low": -128, "high": 127, kind or "quads": kind != "",
                  "pair_low": low, "pair_high": high}
        put(ctx, dut.job.fields, {**plain(ctx.get(dut.job.fields)), **fields})
        columns = [column(config.array, int(b), MULTIPLIER, SHIFT) for b in bias]
        put(ctx, dut.lines.data, columns)
        sums_at, latency = latencies.join(config.array), latencies.rescale(config)
        found, sent = [], 0
        for now in range(count * cycles + latency + 1):
            request = now % cycles == 0 and sent < count
            sent += request
            put(ctx, dut.request.valid, request)
            # The sums of a chunk are there for a cycle.
            chunk, early = divmod(now - sums_at, cycles)
            is_there = 0 <= chunk < count and not early
            put(ctx, dut.sums, sums[chunk].tolist() if is_there else [7] * 4)
            _, _, results = await ctx.tick().sample(dut.results)
            place, early = divmod(now - latency, cycles)
            if 0 <= place < count and not early:
                found.append(plain(results))
        assert sent == count
        assert found == expected

    simulate(dut, bench)
