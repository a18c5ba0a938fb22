"""The golden BF16 product against rationals, rounded by the rules of IEEE 754-2019."""

import random
from fractions import Fraction
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from tiers import quick

from weft.golden import matmul_bf16

INF, NAN = 0x7F800000, 0x7FC00000
SIGN = 1 << 31
LARGEST = 0x7F7FFFFF
LEAST_NORMAL = 0x00800000


# The standard on bits of binary32, in Python integers. A bfloat16 is the upper half of the bits.


def value(bits):
    """3.4: ``(sign, magnitude)`` of a datum; the magnitude is a rational, "inf" or "nan"."""
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return sign, "nan" if fraction else "inf"
    if exponent == 0:
        return sign, Fraction(fraction, 2**149)
    return sign, Fraction(2**23 + fraction, 2**23) * Fraction(2) ** (exponent - 127)


def split(magnitude):
    """``(exponent, units, rest)``: whole units in the last place of binary32, and the rest."""
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, -126)
    units, rest = divmod(magnitude * Fraction(2) ** (23 - exponent), 1)
    return exponent, units, rest


def rounded(magnitude):
    """4.3.1: bits of the nearest datum, ties to even; 7.4: infinity above the largest."""
    exponent, units, rest = split(magnitude)
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and units % 2 == 1):
        units += 1
    if units == 2**24:
        exponent, units = exponent + 1, 2**23
    if exponent > 127:
        return INF
    if units < 2**23:
        return units  # subnormal or zero
    return (exponent + 127) << 23 | (units - 2**23)


def signed(sign, bits):
    return sign << 31 | bits


def flushed(bits):
    return bits & SIGN if bits >> 23 & 0xFF == 0 else bits


def exact_sum(a, b, c):
    """``a * b + c`` of finite data, as a rational with a sign."""
    (a_sign, a), (b_sign, b), (c_sign, c) = value(a), value(b), value(c)
    return (-1) ** (a_sign ^ b_sign) * a * b + (-1) ** c_sign * c


def fma(a, b, c):
    """5.4.1: fusedMultiplyAdd."""
    (a_sign, a_size), (b_sign, b_size), (c_sign, c_size) = value(a), value(b), value(c)
    sign = a_sign ^ b_sign  # 6.3: of a product
    if "nan" in (a_size, b_size, c_size):
        return NAN  # 6.2.3, whose payload is up to us
    if "inf" in (a_size, b_size):
        if 0 in (a_size, b_size):
            return NAN  # 7.2 c
        if c_size == "inf" and c_sign != sign:
            return NAN  # 7.2 d
        return signed(sign, INF)
    if c_size == "inf":
        return signed(c_sign, INF)
    total = exact_sum(a, b, c)
    if total == 0:
        return signed(sign if sign == c_sign else 0, 0)  # 6.3: of a sum that is zero
    return signed(int(total < 0), rounded(abs(total)))


def flushing_fma(a, b, c):
    return flushed(fma(flushed(a), flushed(b), flushed(c)))


# The golden models on the same bits.


def bfloat16s(bits):
    return np.asarray(bits, np.uint16).view(ml_dtypes.bfloat16)


def float32s(bits):
    return np.asarray(bits, np.uint32).view(np.float32)


def check(triples):
    """Both golden models for triples of bits ``(a, b, c)``, each a product of 1 x 1."""
    a, b, c = (np.array(column, np.uint32)[:, None, None] for column in zip(*triples, strict=True))
    a, b = bfloat16s(a >> 16), bfloat16s(b >> 16)
    for flush, by_rationals in ((False, fma), (True, flushing_fma)):
        result = matmul_bf16(a, b, start=float32s(c), flush_subnormals=flush)
        found = result.view(np.uint32).ravel().tolist()
        wrong = [
            f"fma({x:08x}, {y:08x}, {z:08x}) = {wanted:08x}, not {got:08x}, {flush=}"
            for (x, y, z), got in zip(triples, found, strict=True)
            if got != (wanted := by_rationals(x, y, z))
        ]
        assert wrong == []


def both_signs(magnitudes):
    return [bits | sign for bits in magnitudes for sign in (0, SIGN)]


# Powers of two with products at the ends and in the middle of binary32, and their neighbours.
POWERS = (
    -126, -125, -75, -74, -64, -63, -62, -24, -23, -12, -1, 0, 1, 12, 23, 63, 64, 65, 126, 127,
)
A = both_signs(bits << 16 for bits in [
    0, 1, 2, 3, 0x40, 0x55, 0x7E, 0x7F,  # zero and subnormals
    *((power + 127) << 7 for power in POWERS),
    0x81, 0xFF, 0x3F81, 0x3F82, 0x3FC0, 0x3FD5, 0x3FFF, 0x3F7E, 0x3F7F, 0x5F7F, 0x7F7E, 0x7F7F,
    0x7F80,
    0x7F81, 0x7FA0, 0x7FBF, 0x7FC0, 0x7FC1, 0x7FFF,  # NaN, signalling and quiet
])
C = both_signs([
    0, 1, 2, 3, 0x400000, 0x555555, 0x7F8000, 0x7FFFFE, 0x7FFFFF,
    *((power + 127) << 23 for power in POWERS), 0x800001, 0xFFFFFF, 0x1000001,
    0x33800001, 0x337FFFFF, 0x3EFFFFFF, 0x3F7FFFFF, 0x3F800001, 0x3F800002, 0x3FFFFFFF,
    0x4AFFFFFF, 0x4B000001, 0x4B7FFFFF, 0x4B800000, 0x4B800001,  # around 2**23 and 2**24
    0x7EFFFFFF, 0x7F7FFFFE, LARGEST, INF,
    0x7F800001, 0x7FA00000, 0x7FBFFFFF, NAN, 0x7FC00001, 0x7FFFFFFF,
])


@pytest.mark.parametrize("addends", [1, pytest.param(4, marks=pytest.mark.long)])
def test_edges(addends):
    """Every pair of edges, with some edges as addends, and addends that cancel the product."""
    assert len(set(A)) >= 80
    assert len(set(C)) >= 80
    rng = random.Random(1)
    print("seed 1")
    triples = []
    for a, b in product(A, A):
        triples += [(a, b, c) for c in rng.sample(C, addends)]
        if not {value(a)[1], value(b)[1]} & {"inf", "nan"}:
            c = nearest(-exact_sum(a, b, 0))
            triples.append((a, b, shifted(c, rng.randint(-2, 2))))
    assert len(triples) > 10_000 * addends
    check(triples)


@pytest.mark.slow
def test_all_addends():
    """All addends with every product of a few edges."""
    few = both_signs(bits << 16 for bits in (0, 1, 0x80, 0x1F80, 0x3F80, 0x3F81, 0x5F80, 0x7F80))
    check(list(product(few, few, C)))


def shifted(bits, units):
    """The number ``units`` units in the last place further from zero, below infinity."""
    return bits & SIGN | min(max((bits & ~SIGN) + units, 0), LARGEST)


def nearest(x):
    """Bits of the nearest finite number to a rational."""
    return signed(int(x < 0), min(rounded(abs(x)), LARGEST))


def factors(rng, exponents):
    """Two finite bfloat16 of any sign with a product of about the given exponent."""
    exponent = rng.randint(*rng.choice(exponents))
    first = rng.randint(max(-133, exponent - 127), min(127, exponent + 133))
    pair = []
    for power in (first, exponent - first):
        significand = rng.choice([128, 129, 255, 254, 192, rng.randint(128, 255)])
        size = Fraction(significand, 128) * Fraction(2) ** power
        pair.append(signed(rng.getrandbits(1), rounded(size) & 0xFFFF0000))
    return pair


def at_a_distance(rng, p, exponent):
    """Any significand, with an exponent up to 48 away from the product's."""
    significand = Fraction(rng.randint(2**23, 2**24 - 1), 2**23)
    return rng.choice([-1, 1]) * significand * Fraction(2) ** (exponent + rng.randint(-48, 48))


def of_a_tie(rng, p, exponent):
    """An addend for which the product's last bit is half a unit."""
    last = (p.numerator & -p.numerator) / Fraction(p.denominator)
    return rng.choice([-1, 1]) * (rng.getrandbits(24) >> rng.choice([0, 0, 1, 12])) * 2 * last


def near_a_tie(rng, p, exponent):
    """An addend for which the product is about half a unit."""
    half = Fraction(2) ** (exponent + rng.choice([0, 0, 1]))
    return rng.choice([-1, 1]) * rng.randint(2**23, 2**24 - 1) * 2 * half


def half_a_unit(rng, p, exponent):
    """About half a unit of the product: the other end of its significand."""
    near = 1 + Fraction(rng.choice([-1, 0, 0, 1]), 2**23)
    return rng.choice([-1, 1]) * near * Fraction(2) ** (exponent - 24 + rng.choice([-1, 0, 0, 1]))


def of_cancellation(rng, p, exponent):
    return -p


def of_overflow(rng, p, exponent):
    """An addend for a sum close to the overflow threshold."""
    return rng.choice([-1, 1]) * (Fraction(2) ** 128 - Fraction(2) ** 103) - p


def of_underflow(rng, p, exponent):
    """An addend for a sum close to the smallest normal number, or half the smallest number."""
    least, half = Fraction(2) ** -126, Fraction(2) ** -150
    return rng.choice([-1, 1]) * rng.choice([least, least - half, half]) - p


# With the exponents of the products: mostly at the ends of binary32.
TINY, HUGE, ALL = (-160, -118), (100, 129), (-250, 250)
AIMS = {
    at_a_distance: [TINY, HUGE, (-30, 30), (-160, 129), ALL],
    of_a_tie: [TINY, HUGE, (-30, 30), (-160, 129)],
    near_a_tie: [TINY, HUGE, (-30, 30), (-160, 129)],
    half_a_unit: [TINY, HUGE, (-30, 30), (-160, 129)],
    of_cancellation: [TINY, HUGE, (-160, 129)],
    of_overflow: [HUGE],
    of_underflow: [TINY],
}


def aimed(rng, aim, count):
    """Triples with an addend that ``aim`` chooses for the product."""
    triples = []
    while len(triples) < count:
        a, b = factors(rng, AIMS[aim])
        p = exact_sum(a, b, 0)
        if p:
            exponent = split(abs(p) * Fraction(2) ** 400)[0] - 400  # as if nothing were subnormal
            c = nearest(aim(rng, p, exponent))
            triples.append((a, b, shifted(c, rng.choice([0, 0, 0, 0, -2, -1, 1, 2]))))
    return triples


@pytest.mark.parametrize("seed, count", [
    (2, 800), pytest.param(3, 5000, marks=pytest.mark.long),
])
@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.__name__)
def test_adversarial(aim, seed, count):
    print(f"seed {seed}")
    check(aimed(random.Random(seed), aim, count))


def test_the_sample_reaches_its_aims():
    met = dict.fromkeys(
        ["ties down", "ties up", "zeros", "subnormals", "infinities", "least normals", "flushed"],
        0,
    )
    print("seed 2")
    for aim in AIMS:
        for a, b, c in aimed(random.Random(2), aim, 500):
            total = abs(exact_sum(a, b, c))
            _, units, rest = split(total) if total else (0, 0, 0)
            bits = fma(a, b, c) & ~SIGN
            met["ties down"] += rest == Fraction(1, 2) and units % 2 == 0
            met["ties up"] += rest == Fraction(1, 2) and units % 2 == 1
            met["zeros"] += total == 0
            met["subnormals"] += 0 < bits < LEAST_NORMAL
            met["infinities"] += bits == INF
            met["least normals"] += bits == LEAST_NORMAL and total < Fraction(2) ** -126
            met["flushed"] += flushing_fma(a, b, c) != fma(a, b, c)
    assert min(met.values()) >= 20, met


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("seed", quick(2, [1, 2, 0, *range(3, 8)]))
def test_chains(seed, flush):
    """Products of matrices: each result is a chain of many fma."""
    rng = random.Random(seed)
    rows, cols, depth = rng.randint(1, 6), rng.randint(1, 6), rng.randint(20, 60)
    # Around 1, the smallest normal number and the largest number, and over the whole range.
    low, high = [(0x3C00, 0x4180), (0x1C00, 0x2080), (0x5D00, 0x5FFF), (0, 0x7F7F)][seed % 4]
    a, b = (
        [[rng.randint(low, high) | rng.choice([0, 0x8000]) for _ in range(n)] for _ in range(m)]
        for m, n in ((rows, depth), (depth, cols))
    )
    start = [[rng.choice(C[: C.index(INF)]) for _ in range(cols)] for _ in range(rows)]
    wanted = [row[:] for row in start]
    step = flushing_fma if flush else fma
    for i, j, k in product(range(rows), range(cols), range(depth)):
        wanted[i][j] = step(a[i][k] << 16, b[k][j] << 16, wanted[i][j])
    result = matmul_bf16(bfloat16s(a), bfloat16s(b), start=float32s(start), flush_subnormals=flush)
    assert result.view(np.uint32).tolist() == wanted


FLUSHES = [
    # a, b, c, kept, flushed
    (0x00010000, 0x3F800000, 0x00000000, 0x00010000, 0x00000000),  # a subnormal
    (0x80010000, 0x3F800000, 0x80000000, 0x80010000, 0x80000000),
    (0x3F800000, 0x807F0000, 0x80000000, 0x807F0000, 0x80000000),  # b subnormal
    (0x00000000, 0x00000000, 0x007FFFFF, 0x007FFFFF, 0x00000000),  # c subnormal
    (0x80000000, 0x00000000, 0x807FFFFF, 0x807FFFFF, 0x80000000),
    (0x80000000, 0x3F800000, 0x00000001, 0x00000001, 0x00000000),  # (-0) + (+0) is +0
    (0x7F800000, 0x00010000, 0x00000000, 0x7F800000, 0x7FC00000),  # infinity * 0
    (0x00800000, 0x3F000000, 0x00000000, 0x00400000, 0x00000000),  # the result alone is subnormal
    (0x80800000, 0x3F000000, 0x00000000, 0x80400000, 0x80000000),
    (0x00800000, 0x3F800000, 0x80800001, 0x80000001, 0x80000000),  # by cancellation
    (0x20010000, 0x20010000, 0x00000000, 0x00820200, 0x00820200),  # 2**-126 * (1 + 2**-7)**2
    # 2**-126 * (1 - 2**-7) * (1 + 2**-7) is a subnormal, 2**-149 * (2**23 - 2**9).
    (0x1FFE0000, 0x20010000, 0x00000000, 0x007FFE00, 0x00000000),
    # 2**-126 - 2**-150 is a tie between the largest subnormal and the smallest normal number.
    (0x9A000000, 0x1A000000, 0x00800000, 0x00800000, 0x00800000),
    (0x1A000000, 0x1A000000, 0x80800000, 0x80800000, 0x80800000),
    (0x9A000000, 0x1A010000, 0x00800000, 0x007FFFFF, 0x00000000),  # beyond it
    (0x1A000000, 0x1A010000, 0x80800000, 0x807FFFFF, 0x80000000),
]


@pytest.mark.parametrize("a, b, c, kept, zeroed", FLUSHES, ids=range(len(FLUSHES)))
def test_flushes_by_hand(a, b, c, kept, zeroed):
    check([(a, b, c)])
    assert (fma(a, b, c), flushing_fma(a, b, c)) == (kept, zeroed)


def test_flushes_between_steps():
    """A subnormal sum is zero in the next step, even if later sums would be normal."""
    a = bfloat16s([[0x3F00, 0x3F80]])          # 1/2, 1
    b = bfloat16s([[0x0080], [0x0080]])        # 2**-126, twice
    assert matmul_bf16(a, b).view(np.uint32).tolist() == [[0x00C00000]]
    assert matmul_bf16(a, b, flush_subnormals=True).view(np.uint32).tolist() == [[0x00800000]]
    no_terms = matmul_bf16(a[:, :0], b[:0], start=float32s([[0x807FFFFF]]), flush_subnormals=True)
    assert no_terms.view(np.uint32).tolist() == [[SIGN]]
