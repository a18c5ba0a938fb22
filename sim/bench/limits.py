"""BF16 results held between limits, column by column, and rounded to bfloat16; or not."""

import cocotb
import numpy as np

from weft.commands import JobFlag
from weft.golden import clamp, to_bfloat16
from weft.sim.bench.core_testbench import A, B, CoreTestbench, is_slow, the_config

__all__ = ["FINISHES", "ends", "finishing", "one_by_one", "other_limits"]

_CLAMPS = the_config().activation == "clamp"
FINISHES = [JobFlag(0), JobFlag.ROUND]
if _CLAMPS:
    FINISHES += [JobFlag.CLAMP, JobFlag.CLAMP | JobFlag.ROUND]
_ENDS = np.array([0x0, 0x3F800000, 0x7F800000, 0x7F7FFFFF, 0x800000, 0x12345, 0x1], np.uint32)
_ENDS = np.concatenate([_ENDS, _ENDS | 1 << 31]).view(np.float32)
_LIMITS = [("low", "<f4"), ("high", "<f4")]


def draw(s, sums) -> np.ndarray:
    """Limits of columns: such as their ``sums`` [M, N] meet, midway between bfloat16, or any."""
    n, zero = sums.shape[1], np.float32(0)
    found = sums[s.rng.integers(len(sums), size=(n, 2)), np.arange(n)[:, None]]
    middle = found.view(np.uint32) & 0xFFFF0000 | 0x8000
    kinds = [
        found,
        middle.view(np.float32),
        np.nextafter(found, zero),  # a sum that is just beyond, and the one at the other side
        np.repeat(found[:, :1], 2, axis=1),
        s.rng.choice(_ENDS, (n, 2)),
        s.numbers.starts(s.rng, n, 2),
    ]
    limits = np.choose(s.rng.integers(len(kinds), size=(n, 1)), kinds)
    limits = np.sort(np.where(np.isnan(limits), np.copysign(np.float32(np.inf), limits), limits))
    return np.array([tuple(line) for line in limits], _LIMITS)


def finishing(s, flags, limits) -> dict:
    """What `Session.job` is to be told, for results as the ``flags`` say."""

    def finish(sums):
        if JobFlag.CLAMP in flags:
            sums = clamp(sums, limits["low"].copy(), limits["high"].copy())
        if JobFlag.ROUND in flags:
            sums = to_bfloat16(sums)
        return sums

    return {"flags": flags, "finish": finish}


def send_finished(s, a, b, c=None, flags=None):
    """A product whose results are finished somehow, or as the ``flags`` say."""
    if flags is None:
        flags = FINISHES[s.rng.integers(len(FINISHES))]
    limits = draw(s, s.numbers.product(a, b, c))
    parameters = limits if JobFlag.CLAMP in flags else None
    s.multiply(a, b, c, parameters=parameters, **finishing(s, flags, limits))


_FLOW = ((0, 0), (60, 60)) if is_slow() else [(i, o) for i in (0, 50, 90) for o in (0, 50, 90)]


@cocotb.test(skip=the_config().dtype != "bf16")
@cocotb.parametrize((("idle", "stall"), _FLOW))
async def ends(dut, idle, stall):
    """Every way to finish, behind every other; whole tiles and ragged ones."""
    s = await CoreTestbench.start(dut, idle=idle, stall=stall)
    rows, cols = s.config.rows, s.config.cols
    for m, n, k in ((rows + 1, cols + 1, 2), (1, 1, 1), (rows, 3 * cols, 3)):
        for flags in s.rng.permutation(FINISHES):
            send_finished(s, *s.operands(m, n, k), flags=JobFlag(int(flags)))
    await s.finish()


@cocotb.test(skip=the_config().dtype != "bf16")
async def one_by_one(dut):
    """One tile of one product each, all in place: nothing but the array's pace between the jobs."""
    s = await CoreTestbench.start(dut, stall=20)
    shapes = (1, 1), (s.config.rows, s.config.cols)
    for m, n in shapes[:1] if is_slow() else shapes:
        a, b = s.operands(m, n, 1)
        limits = draw(s, s.numbers.product(a, b))
        a, b = s.place(A, a), s.place(B, b)
        s.load(a)
        s.load(b)
        if _CLAMPS:
            s.load_parameters(b, limits)
        for first in FINISHES:
            for flags in (first, *FINISHES):
                s.job(a, b, **finishing(s, flags, limits))
    await s.finish()


@cocotb.test(skip=not _CLAMPS)
async def other_limits(dut):
    """Limits for the next job wait for the job that uses those pages, and only for it."""
    s = await CoreTestbench.start(dut, stall=50)
    m, n, k = s.fit(2 * s.config.rows, 2 * s.config.cols, 3)
    a, b = s.operands(m, n, k)
    sums, a = s.numbers.product(a, b), s.place(A, a)
    s.load(a)
    places = [s.place(B, b, page=0, gap=0)]
    span = places[0].pages
    if 2 * span <= s.geometry[B].pages:
        places.append(s.place(B, b, page=span, gap=0))
    for place in places:
        s.load(place)
    for turn in range(6):
        place, limits = places[turn // 2 % len(places)], draw(s, sums)
        s.load_parameters(place, limits)
        for _ in range(int(s.rng.integers(1, 3))):
            s.job(a, place, **finishing(s, FINISHES[2 + turn % 2], limits))
    await s.finish()
