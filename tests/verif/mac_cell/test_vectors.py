"""The directed vectors cover the cases that they claim, by the exact value of each sum."""

import numpy as np
import pytest

from verif.mac_cell import VECTORS
from verif.mac_cell.vectors import EDGES

INFINITE, NAN, MINUS = 0x7F800000, 0x7FC00000, 1 << 31


def fields(name):
    steps = VECTORS[name]()
    return steps.a.reshape(-1), steps.b.reshape(-1), steps.c.reshape(-1)


def binary64(bits):
    wide = bits.astype(np.uint32) << 16 if bits.dtype == np.uint16 else bits
    return wide.view(np.float32).astype(np.float64)


class Sums:
    """Sums of finite numbers: ``product + start = total + error``, exactly; ``rounded`` to 24 bits.

    ``places`` is the total in units of the last place of the rounded number.
    """

    def __init__(self, *names):
        a, b, c = (np.concatenate(each) for each in zip(*map(fields, names), strict=True))
        finite = (a & 0x7F80 != 0x7F80) & (b & 0x7F80 != 0x7F80) & (c & INFINITE != INFINITE)
        self.a, self.b, self.c = a[finite], b[finite], c[finite]
        self.product, self.start = binary64(self.a) * binary64(self.b), binary64(self.c)
        self.total = self.product + self.start
        # D. Knuth, The Art of Computer Programming 2, 4.2.2: the rounding error of a sum.
        part = self.total - self.product
        self.error = (self.product - (self.total - part)) + (self.start - part)
        with np.errstate(over="ignore"):
            self.rounded = self.total.astype(np.float32)
        self.exponent = np.frexp(self.total)[1]
        self.places = np.ldexp(self.total, -np.maximum(self.exponent - 24, -149))

    def ties(self):
        return (self.error == 0) & (np.abs(self.places) % 1 == 0.5)


@pytest.fixture(scope="module")
def sums():
    """All directed vectors except the multiplier's."""
    return Sums(*(name for name in VECTORS if name not in ("multiplier", "random")))


def test_millions_of_vectors(sums):
    assert len(sums.a) > 5_000_000


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_are_reproducible(name):
    assert all(map(np.array_equal, fields(name), fields(name)))


def test_every_operand_meets_every_edge_in_both_places():
    a, b, c = fields("multiplier")
    assert len(EDGES) == len(set(EDGES)) == 64
    column = np.full(1 << 16, -1)
    column[EDGES] = range(64)
    for every, edge in ((a, b), (b, a)):
        met = np.zeros((1 << 16, 64 + 1), bool)  # the last column is for all other values
        met[every, column[edge]] = True
        assert met[:, :64].all()
    assert not c.any()


@pytest.mark.parametrize("opposite", [False, True])
def test_every_difference_of_exponents(opposite):
    sums = Sums("alignment")
    difference = np.frexp(sums.start)[1] - np.frexp(sums.product)[1]
    valid = (sums.start != 0) & ((sums.start < 0) != (sums.product < 0) if opposite else True)
    counts = np.unique(difference[valid], return_counts=True)
    common = dict(zip(*(x.tolist() for x in counts), strict=True))
    assert min(common.get(d, 0) for d in range(-48, 49)) > 1000
    assert min(common) < -250 and max(common) > 350


def test_every_length_of_a_cancellation(sums):
    length = np.maximum(*(np.frexp(x)[1] for x in (sums.product, sums.start))) - sums.exponent
    normal = (sums.total != 0) & (sums.exponent > -126)
    counts = np.bincount(np.maximum(length[normal], 0), minlength=24)
    assert counts[:24].min() > 200
    for sign in (-1, 1):
        exact = (sums.total == 0) & (np.sign(sums.product) == sign)
        assert np.count_nonzero(exact) > 10_000


@pytest.fixture(scope="module")
def tied(sums):
    """The product, the start, the total and the places of each tie."""
    ties = sums.ties()
    return tuple(each[ties] for each in (sums.product, sums.start, sums.total, sums.places))


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("opposite", [False, True])
@pytest.mark.parametrize("below", [False, True], ids=["normal", "subnormal"])
def test_ties(tied, sign, last, opposite, below):
    product, start, total, places = tied
    found = (np.sign(total) == sign) & (np.abs(places) // 1 % 2 == last)
    found &= (np.sign(product) != np.sign(start)) == opposite
    found &= (np.abs(total) < 2.0**-126) == below
    assert np.count_nonzero(found) > 500


def test_nearly_ties(sums):
    off = np.abs(sums.places) % 1 - 0.5
    for near in (off < 0, off > 0):
        assert np.count_nonzero(near & (np.abs(off) < 2.0**-12)) > 100


def test_carries_to_every_power_of_two(sums):
    """From a fraction of ones that is rounded up, for both signs."""
    up = np.abs(sums.rounded) > np.abs(sums.total)
    mantissa, exponent = np.frexp(sums.rounded.astype(np.float64))
    for sign in (-0.5, 0.5):
        reached = np.unique(exponent[up & (mantissa == sign) & (sums.error == 0)]) - 1
        assert set(range(-149, 128)) <= set(reached.tolist())


def test_sums_on_both_sides_of_overflow(sums):
    most, limit = 2.0**128 - 2.0**104, 2.0**128 - 2.0**103
    size, infinite = np.abs(sums.total), np.isinf(sums.rounded)
    for sign in (-1, 1):
        of = np.sign(sums.total) == sign
        assert np.count_nonzero(of & (size == limit) & (sums.error == 0)) > 100  # becomes infinity
        assert np.count_nonzero(of & infinite & (size > limit) & (size < 2.0**128)) > 100
        assert np.count_nonzero(of & ~infinite & (size > most) & (size < limit)) > 100
        assert np.count_nonzero(of & (np.abs(sums.product) >= 2.0**128) & ~infinite) > 100


def test_below_the_least_normal_number(sums):
    least = 2.0**-126
    size = np.abs(sums.total)
    tiny = [(np.abs(binary64(x)) < least) & (binary64(x) != 0) for x in (sums.a, sums.b, sums.c)]
    for n, place in enumerate(tiny):
        assert np.count_nonzero(place) > 50_000, n
    assert np.count_nonzero(tiny[0] & tiny[1] & tiny[2]) > 5000
    assert np.count_nonzero((size > 0) & (size < least)) > 100_000
    assert np.count_nonzero((size < least) & (np.abs(sums.rounded) == least)) > 100


def test_zeros_of_each_sign_in_each_place(sums):
    zero = [(x & 0x7FFF) == 0 for x in (sums.a, sums.b)] + [(sums.c & 0x7FFFFFFF) == 0]
    minus = [x & 0x8000 != 0 for x in (sums.a, sums.b)] + [sums.c & MINUS != 0]
    for place in range(3):
        others = [n for n in range(3) if n != place]
        for signs in np.ndindex(2, 2, 2):
            match = np.logical_and.reduce([minus[n] == signs[n] for n in range(3)])
            assert np.count_nonzero(match & zero[place] & ~zero[others[0]] & ~zero[others[1]]) > 10
    too_small = (sums.product != 0) & (np.abs(sums.product) < 2.0**-150)
    for c in (0, MINUS):
        for sign in (-1, 1):
            vectors = too_small & (sums.c == c) & (np.sign(sums.product) == sign)
            assert np.count_nonzero(vectors) > 100


def test_infinity_and_nan_in_each_place():
    a, b, c = fields("special")
    wide = a.astype(np.uint32) << 16, b.astype(np.uint32) << 16, c
    kinds = {
        "finite": lambda x: x & INFINITE != INFINITE,
        "zero": lambda x: x & ~np.uint32(MINUS) == 0,
        "infinite": lambda x: x & ~np.uint32(MINUS) == INFINITE,
        "quiet": lambda x: x & NAN == NAN,
        "signalling": lambda x: (x & NAN == INFINITE) & (x & 0x3FFFFF != 0),
    }
    masks = [[kind(x) & (x & MINUS == m) for kind in kinds.values() for m in (0, MINUS)]
             for x in wide]
    for x in masks[0]:
        for y in masks[1]:
            both = x & y
            assert all(np.any(both & z) for z in masks[2])
