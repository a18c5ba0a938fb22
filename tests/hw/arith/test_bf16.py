"""The BF16 leaf, keeping subnormal numbers and flushing them: each sum is golden's, bit for bit."""

import numpy as np
import pytest

from weft.hw.arith.bf16 import Bf16Mac, FlushingBf16Mac
from weft.sim.amaranth_bench import play
from weft.sim.leaf import LOOPS, VECTORS, check, program, sums
from weft.sim.leaf.vectors import SEED

CASES = {**VECTORS, **LOOPS}
ZERO, ONE, INF, NAN, MINUS = 0x0000, 0x3F80, 0x7F80, 0x7FC0, 0x8000


@pytest.fixture(scope="module", params=[Bf16Mac, FlushingBf16Mac])
def mac(request):
    return request.param


@pytest.fixture(scope="module")
def leaf(mac):
    return program(mac)


@pytest.mark.parametrize("name", CASES)
def test_sums_are_goldens(mac, leaf, name):
    mismatch = check(leaf, CASES[name](), flush=mac.FLUSH)
    seed = f"vectors of seed {SEED}" if name in VECTORS else "the run is its seed"
    assert mismatch is None, f"{name}, {seed}: {mismatch}"


# a, b, c; what it is where subnormal numbers are kept, and where they are flushed
BY_HAND = [
    pytest.param(ONE, ONE, 0x33800000, 0x3F800000, 0x3F800000, id="a tie stays even"),
    pytest.param(ONE, ONE, 0x33800001, 0x3F800001, 0x3F800001, id="above a tie"),
    pytest.param(0x3380, ONE, 0x3F800001, 0x3F800002, 0x3F800002, id="a tie goes up to even"),
    pytest.param(0x3380, ONE, 0x3FFFFFFF, 0x40000000, 0x40000000, id="a carry to the exponent"),
    pytest.param(0x7300, ONE, 0x7F7FFFFF, 0x7F800000, 0x7F800000, id="a tie with infinity"),
    pytest.param(0x72FF, ONE, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, id="less than that"),
    pytest.param(0x5F80, 0x5F80, 0xFF7FFFFF, 0x73800000, 0x73800000, id="a product beyond"),
    pytest.param(INF, ONE, 0xFF800000, 0x7FC00000, 0x7FC00000, id="infinities that differ"),
    pytest.param(INF, ONE, 0x7F800000, 0x7F800000, 0x7F800000, id="infinities alike"),
    pytest.param(INF, ZERO, 0x3F800000, 0x7FC00000, 0x7FC00000, id="infinity times zero"),
    pytest.param(INF, 0x0001, 0x3F800000, 0x7F800000, 0x7FC00000, id="... times a subnormal"),
    pytest.param(0xFF81, ONE, 0x3F800000, 0x7FC00000, 0x7FC00000, id="a signalling NaN"),
    pytest.param(ONE, ONE, 0xFFFFFFFF, 0x7FC00000, 0x7FC00000, id="a negative NaN"),
    pytest.param(ONE, ONE, 0xBF800000, 0x00000000, 0x00000000, id="a difference of nothing"),
    pytest.param(MINUS, ONE, 0x80000000, 0x80000000, 0x80000000, id="-0 and -0"),
    pytest.param(MINUS, ONE, 0x00000000, 0x00000000, 0x00000000, id="-0 and +0"),
    pytest.param(0x8080, 0x0080, 0x00000000, 0x80000000, 0x80000000, id="next to nothing below +0"),
    pytest.param(0x0080, 0x3F00, 0x00000000, 0x00400000, 0x00000000, id="half the least normal"),
    pytest.param(0x007F, ONE, 0x8001FFFF, 0x007D0001, 0x00000000, id="subnormal all over"),
    pytest.param(0x8080, 0x3380, 0x80800000, 0x80800000, 0x80800000, id="a tie below the normal"),
    pytest.param(0x0080, 0x3380, 0x007FFFFF, 0x00800000, 0x00000000, id="up to the least normal"),
    pytest.param(0x807F, 0x3C00, 0x00800000, 0x007F0200, 0x00800000, id="down from it"),
    pytest.param(0x00FF, 0x3F00, 0x00000000, 0x007F8000, 0x00000000, id="a product below it"),
    pytest.param(0x80FF, 0x80FF, 0x80800000, 0x80800000, 0x80800000, id="a product below it all"),
]


@pytest.mark.parametrize("a, b, c, kept, flushed", BY_HAND)
def test_by_hand(mac, leaf, a, b, c, kept, flushed):
    want = flushed if mac.FLUSH else kept
    for pair in ((a, b), (b, a)):
        assert f"{sums(leaf, *pair, c):08x}" == f"{want:08x}"


FACTOR = {"fraction": 0, "exponent": 127, "sign": 0, "zero": 0, "special": 0, "nan": 0}  # 1.0
START = {"fraction": 0, "exponent": 128, "sign": 0, "special": 0, "nan": 0}              # 2.0


def binary32(value):
    return int(np.float32(value).view(np.uint32))


def orders(mac, script):
    """The script with a round of cleared sums before it, and what each of its cycles shows."""
    late = mac.LATENCY - mac.SLOTS
    step = {"a": [FACTOR], "b": [FACTOR], "init": START}
    clear = [{**step, "clear": t >= late} for t in range(mac.SLOTS)]
    script = [*clear, *({"clear": t < late, **step} for t, step in enumerate(script))]
    (found,) = play(mac(depth=1), script, "sum", tail=mac.LATENCY)
    return found[mac.SLOTS :]


def test_a_sum_is_seen_after_the_latency_and_comes_round_with_its_slot(mac):
    found = orders(mac, [{"en": 1}, {"en": 0}, *({} for _ in range(3 * mac.SLOTS))])
    seen = {t: value for t, value in enumerate(found) if value}
    assert list(seen) == [mac.LATENCY + n * mac.SLOTS for n in range(4)]
    assert set(seen.values()) == {binary32(1)}


@pytest.mark.parametrize("order, want", [("preload", 3), ("clear", 1)])
@pytest.mark.parametrize("late", [-1, 0, 1])
def test_orders_come_when_the_sum_comes_round(mac, order, want, late):
    """A cycle earlier, or later, they are for another sum."""
    when = mac.LATENCY  # LATENCY - SLOTS after the second step of slot 0
    script = [{"en": t % mac.SLOTS == 0} for t in range(3 * mac.SLOTS)]
    script[when + late][order] = 1
    script[when + late + 1][order] = 0
    found = orders(mac, script)
    assert found[mac.LATENCY] == binary32(1)
    assert found[mac.LATENCY + mac.SLOTS] == binary32(2 if late else want)


def test_as_many_sums_as_slots(mac):
    """Each with an operand of its own, and eight steps."""
    exponents = np.random.default_rng(SEED).permutation(range(120, 120 + mac.SLOTS)).tolist()
    script = [
        {"a": [{**FACTOR, "exponent": exponent}], "en": 1} for exponent in exponents * 8
    ]
    found = orders(mac, script)
    assert found[-mac.SLOTS :] == [binary32(8 * 2.0 ** (e - 127)) for e in exponents]
