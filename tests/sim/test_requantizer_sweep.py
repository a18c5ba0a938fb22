"""The requantizer alone, swept through the core: with A = 0 a sum is the bias of its column."""

from collections import namedtuple

import numpy as np
import pytest
from tiers import tiers

from weft.commands import JobFlag
from weft.config import Config
from weft.geometry import operands
from weft.golden import scaled
from weft.sim.scenario import A, B, Scenario

SEED = 20264
TRIPLES = 51_200
LOW, HIGH = -(1 << 31), (1 << 31) - 1
Case = namedtuple("Case", "acc multiplier shift scale")


def config(mode):
    return Config(
        rows=1, cols=8, depth=1, lanes=2, requantize=mode, activation="none", a_words=32,
        b_words=4096,
    )


def columns(config):
    """As many as B's pages hold."""
    b = operands(config)[1]
    return b.pages * b.edge


def finish(random, count):
    """Zero points and clamps, most of them wide enough to show the result itself."""
    zero = random.choice([0, 0, 0, -128, 127, 255, 3], count)
    low, high = np.where(random.random(count) < 0.5, [[-128], [127]], [[0], [255]])
    narrow = random.random(count) < 0.1  # fused ReLU
    return zero, np.where(narrow, np.clip(zero, low, high), low), high


def ties():
    """Sums, and ``e``, where ``sum * 2**-(e + 1)`` is a tie of an 8-bit result, or next to one."""
    whole, e, sign, off = (x.ravel() for x in np.meshgrid(
        range(0, 256, 2), range(23), [-1, 1], [-1, 0, 1]
    ))
    return sign * ((2 * whole + 1) << e) + off, e


def integers(random, count, triples):
    acc, multiplier, shift = (x.astype(np.int64) for x in triples(random, count))
    # Rare in random numbers: all extremes together, and ties of 8-bit results with all shifts.
    extremes = [x.ravel() for x in np.meshgrid(
        [LOW, LOW + 1, -1, 0, 1, HIGH - 1, HIGH], [0, 1 << 30, HIGH], [-31, -30, -1, 0, 1, 30, 31],
    )]
    tied, e = ties()
    halves = tied, np.full(len(e), 1 << 30), -e
    for place, some in ((0, extremes), (len(extremes[0]), halves)):
        for mine, one in zip((acc, multiplier, shift), some, strict=True):
            mine[place : place + len(one)] = one
    return Case(acc, multiplier, shift, np.zeros(count, np.float32))


def floats(random, count, sums):
    mantissa = random.integers(1 << 23, 1 << 24, count)
    mantissa = np.where(random.random(count) < 0.3, 1 << 23, mantissa)
    scale = np.ldexp(mantissa.astype(float), random.integers(-56, -22, count)).astype(np.float32)
    acc = sums(random, scale.astype(float)).astype(np.int64)
    edges, off = (x.ravel() for x in np.meshgrid(1 << np.arange(32), range(-2, 3)))
    edges = np.clip(np.concatenate([edges + off, -edges - off]), LOW, HIGH)
    scales = np.ldexp(1.0, np.arange(-126, 128))
    for n, one in enumerate(np.resize(edges, 20 * len(edges))):
        acc[n] = one
        scale[n] = np.ldexp(mantissa[n] / (1 << 23), 7 - int(abs(one)).bit_length())
    tied, e = ties()
    place = 20 * len(edges)
    acc[place : place + len(e)], scale[place : place + len(e)] = tied, np.ldexp(1.0, -1 - e)
    acc[-len(scales) :], scale[-len(scales) :] = random.choice([-1, 1, HIGH], len(scales)), scales
    bits = scale.view(np.uint32).astype(np.int64)
    return Case(acc, bits, np.zeros(count, np.int64), scale)


def golden(mode, case):
    acc = case.acc.astype(np.int32)
    if mode == "onnx":
        return scaled(acc, scale=case.scale, mode=mode).astype(np.int64)
    return scaled(acc, case.multiplier, case.shift, mode=mode).astype(np.int64)


def is_tie(mode, case):
    """Where the product of the two lies half way between integers."""
    if mode == "onnx":
        product = case.acc * case.scale.astype(float)
        return np.abs(product - np.trunc(product)) == 0.5
    product, total = case.acc * case.multiplier, 31 - np.minimum(case.shift, 30)
    return product & ((1 << total) - 1) == 1 << total - 1


def sweep(transport, config, entries):
    """The byte of each column that a job makes of its parameters."""
    scenario = Scenario(config)
    count = len(entries)
    a, b = (
        scenario.place(side, np.zeros((lines, 1), np.int8), page=0, gap=0)
        for side, lines in ((A, 1), (B, count))
    )
    scenario.load(a)  # B may have any values
    scenario.load_parameters(b, [tuple(entry) for entry in entries])
    scenario.job(a, b, flags=JobFlag.REQUANTIZE, tag=7)
    transport.send_words(scenario.data)
    data = b""
    while True:
        packet = transport.receive(60)
        data += packet.data
        if packet.last:
            assert (packet.tag, packet.status) == (7, 0)
            return np.frombuffer(data, np.uint8)[:count]


@pytest.mark.parametrize("mode", tiers(
    {mode: mode for mode in ("tflite", "single", "onnx")}, long={"tflite", "onnx"}
))
def test_equals_golden_on_every_kind_of_sum(mode, transports, sums, triples):
    random = np.random.default_rng(SEED)
    core = config(mode)
    case = (floats if mode == "onnx" else integers)(
        random, TRIPLES, sums if mode == "onnx" else triples
    )
    y = golden(mode, case)
    zero, low, high = finish(random, TRIPLES)
    entries = np.stack([*case[:3], 0 * zero, zero, low, high], axis=1).tolist()
    step = columns(core)
    found = np.concatenate([
        sweep(transports(core), core, entries[n : n + step]) for n in range(0, TRIPLES, step)
    ])
    due = np.clip(y + zero, low, high) & 255
    wrong = np.flatnonzero(found != due)
    assert not len(wrong), [(*entries[n], found[n], due[n]) for n in wrong[:5]]

    # The sample has the intended cases, and the clamp does not hide them.
    shows = (y + zero > low) & (y + zero < high)
    tie = is_tie(mode, case)
    for sign in (-1, 1):
        assert (tie & shows & (case.acc * sign > 0)).sum() > 1000
    assert (shows & ~tie).sum() > 5000
    assert mode == "tflite" or (y == LOW).any() and (y == HIGH).any()
