"""The BF16 MAC cell, with and without flushing: each sum equals golden's, bit for bit."""

import numpy as np
import pytest

from verif.amaranth_bench import play
from verif.mac_cell import LONG_SUMS, VECTORS, check, executable, sums
from verif.mac_cell.vectors import SEED
from weft.boards.toolchain import to_rtlil
from weft.hw.arith.bf16 import (
    Bf16Mac,
    Ecp5Bf16Mac,
    Ecp5FlushingBf16Mac,
    FlushingBf16Mac,
)

CASES = {**VECTORS, **LONG_SUMS}
ZERO, ONE, INF, NAN, MINUS = 0x0000, 0x3F80, 0x7F80, 0x7FC0, 0x8000


@pytest.fixture(scope="module", params=[Bf16Mac, FlushingBf16Mac])
def mac(request):
    return request.param


@pytest.fixture(scope="module")
def cell(mac):
    return executable(mac)


# Both cells have the same multiplier and rounding.
SECOND = "multiplier", "ties", "random"


@pytest.mark.parametrize("mac, name", [
    pytest.param(
        mac, name, id=f"{mac.__name__}-{name}",
        marks=pytest.mark.slow if mac.FLUSH or name in SECOND else (),
    )
    for mac in (Bf16Mac, FlushingBf16Mac) for name in CASES
], indirect=["mac"])
def test_sums_equal_goldens(mac, cell, name):
    mismatch = check(cell, CASES[name](), flush=mac.FLUSH)
    seed = f"vectors of seed {SEED}" if name in VECTORS else "the run is its seed"
    assert mismatch is None, f"{name}, {seed}: {mismatch}"


# a, b, c; the sum if subnormal numbers are kept, and if they are flushed
BY_HAND = [
    pytest.param(ONE, ONE, 0x33800000, 0x3F800000, 0x3F800000, id="a tie stays even"),
    pytest.param(ONE, ONE, 0x33800001, 0x3F800001, 0x3F800001, id="above a tie"),
    pytest.param(0x3380, ONE, 0x3F800001, 0x3F800002, 0x3F800002, id="a tie goes up to even"),
    pytest.param(0x3380, ONE, 0x3FFFFFFF, 0x40000000, 0x40000000, id="a carry into the exponent"),
    pytest.param(0x7300, ONE, 0x7F7FFFFF, 0x7F800000, 0x7F800000, id="a tie with infinity"),
    pytest.param(0x72FF, ONE, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, id="just below that tie"),
    pytest.param(0x5F80, 0x5F80, 0xFF7FFFFF, 0x73800000, 0x73800000, id="a product beyond"),
    pytest.param(INF, ONE, 0xFF800000, 0x7FC00000, 0x7FC00000, id="opposite infinities"),
    pytest.param(INF, ONE, 0x7F800000, 0x7F800000, 0x7F800000, id="equal infinities"),
    pytest.param(INF, ZERO, 0x3F800000, 0x7FC00000, 0x7FC00000, id="infinity times zero"),
    pytest.param(INF, 0x0001, 0x3F800000, 0x7F800000, 0x7FC00000, id="infinity by a subnormal"),
    pytest.param(0xFF81, ONE, 0x3F800000, 0x7FC00000, 0x7FC00000, id="a signalling NaN"),
    pytest.param(ONE, ONE, 0xFFFFFFFF, 0x7FC00000, 0x7FC00000, id="a negative NaN"),
    pytest.param(ONE, ONE, 0xBF800000, 0x00000000, 0x00000000, id="equal numbers cancel"),
    pytest.param(MINUS, ONE, 0x80000000, 0x80000000, 0x80000000, id="-0 and -0"),
    pytest.param(MINUS, ONE, 0x00000000, 0x00000000, 0x00000000, id="-0 and +0"),
    pytest.param(0x8080, 0x0080, 0x00000000, 0x80000000, 0x80000000, id="a tiny product and +0"),
    pytest.param(0x0080, 0x3F00, 0x00000000, 0x00400000, 0x00000000, id="half the least normal"),
    pytest.param(0x007F, ONE, 0x8001FFFF, 0x007D0001, 0x00000000, id="all subnormal"),
    pytest.param(0x8080, 0x3380, 0x80800000, 0x80800000, 0x80800000, id="a tie below the normal"),
    pytest.param(0x0080, 0x3380, 0x007FFFFF, 0x00800000, 0x00000000, id="up to the least normal"),
    pytest.param(0x807F, 0x3C00, 0x00800000, 0x007F0200, 0x00800000, id="below the least normal"),
    pytest.param(0x00FF, 0x3F00, 0x00000000, 0x007F8000, 0x00000000, id="a subnormal product"),
    pytest.param(0x80FF, 0x80FF, 0x80800000, 0x80800000, 0x80800000, id="a product underflows"),
]


@pytest.mark.parametrize("a, b, c, kept, flushed", BY_HAND)
def test_by_hand(mac, cell, a, b, c, kept, flushed):
    want = flushed if mac.FLUSH else kept
    for pair in ((a, b), (b, a)):
        assert f"{sums(cell, *pair, c):08x}" == f"{want:08x}"


OPERAND = {"fraction": 0, "exponent": 127, "sign": 0, "zero": 0, "special": 0, "nan": 0}  # 1.0
START = {"fraction": 0, "exponent": 128, "sign": 0, "special": 0, "nan": 0}              # 2.0


def binary32(value):
    return int(np.float32(value).view(np.uint32))


def trace(mac, script):
    """The sum in each cycle of the script, after all sums have been cleared."""
    delay = mac.LATENCY - mac.SLOTS
    step = {"a": [OPERAND], "b": [OPERAND], "init": START}
    clear = [{**step, "clear": t >= delay} for t in range(mac.SLOTS)]
    script = [*clear, *({"clear": t < delay, **step} for t, step in enumerate(script))]
    (found,) = play(mac(depth=1), script, "sum", tail=mac.LATENCY)
    return found[mac.SLOTS :]


def test_a_sum_appears_after_the_latency_and_rotates_with_its_slot(mac):
    found = trace(mac, [{"en": 1}, {"en": 0}, *({} for _ in range(3 * mac.SLOTS))])
    sums = {t: value for t, value in enumerate(found) if value}
    assert list(sums) == [mac.LATENCY + n * mac.SLOTS for n in range(4)]
    assert set(sums.values()) == {binary32(1)}


@pytest.mark.parametrize("control, expected", [("preload", 3), ("clear", 1)])
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_controls_apply_to_the_sum_that_returns(mac, control, expected, offset):
    """One cycle earlier or later, they apply to another sum."""
    cycle = mac.LATENCY  # LATENCY - SLOTS after the second step of slot 0
    script = [{"en": t % mac.SLOTS == 0} for t in range(3 * mac.SLOTS)]
    script[cycle + offset][control] = 1
    script[cycle + offset + 1][control] = 0
    found = trace(mac, script)
    assert found[mac.LATENCY] == binary32(1)
    assert found[mac.LATENCY + mac.SLOTS] == binary32(2 if offset else expected)


def test_each_slot_has_its_own_sum(mac):
    """Each slot has its own operand, and eight steps."""
    exponents = np.random.default_rng(SEED).permutation(range(120, 120 + mac.SLOTS)).tolist()
    script = [
        {"a": [{**OPERAND, "exponent": exponent}], "en": 1} for exponent in exponents * 8
    ]
    found = trace(mac, script)
    assert found[-mac.SLOTS :] == [binary32(8 * 2.0 ** (e - 127)) for e in exponents]


@pytest.mark.parametrize(("mac", "blocks"), [
    (Bf16Mac, 0), (FlushingBf16Mac, 0), (Ecp5Bf16Mac, 1), (Ecp5FlushingBf16Mac, 1),
])
def test_only_the_cells_of_the_ecp5_have_a_dsp_block(mac, blocks):
    """With registers at its operands and its product, and none between them."""
    text = to_rtlil(mac(depth=1))
    assert text.count("cell \\MULT18X18D") == blocks
    assert text.count("parameter \\REG_PIPELINE_CLK \"NONE\"") == blocks
    assert text.count("parameter \\REG_OUTPUT_CLK \"CLK0\"") == blocks
