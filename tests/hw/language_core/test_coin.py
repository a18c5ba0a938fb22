"""The coin: golden numbers, and the part of a total that they mark."""

import pytest

from verif.amaranth_bench import play
from weft.golden.language.sampling import draw, start_state
from weft.hw.language_core.coin import Coin
from weft.language_core.descriptors import TOTAL_BITS

LARGEST = 4096 * 4 * 32767  # a total of the largest activation memory


@pytest.fixture(scope="module")
def dut():
    return Coin()


@pytest.mark.parametrize("seed", [1, 0xFFFFFFFF, 1 << 31, start_state(1), start_state(9)])
def test_coins_follow_each_other(dut, seed):
    """A seed, then coins without another one; at once after each other, and after a gap."""
    totals = [LARGEST, 1, (1 << TOTAL_BITS) - 1, 32767, 3 * 32767, 512 * 32767]
    script, ends = [{"load": 1, "seed": seed}, {"load": 0, "seed": 0}], []
    for gap, total in enumerate(totals):
        script += [{"start": 1, "total": total}, {"start": 0}]
        script += [{} for _ in range(dut.LATENCY - 1 + gap // 3)]
        ends.append(len(script) - gap // 3)
    done, mark = play(dut, script, "done", "mark", tail=1)
    state = seed
    for end, total in zip(ends, totals, strict=True):
        coin, state = draw(state)
        assert mark[end] == coin * total >> 32
        assert done[end - 1] and not any(done[end - dut.LATENCY : end - 1])
    assert sum(done) == len(totals)


def test_a_seed_starts_the_register_again(dut):
    toss = [{"start": 1, "total": LARGEST}, *({"start": 0} for _ in range(dut.LATENCY))]
    load = {"load": 1, "seed": 77}
    [mark] = play(dut, [load, {"load": 0}, *toss, *toss, load, {"load": 0}, *toss], "mark", tail=1)
    first, second, third = (mark[n] for n in (2 + len(toss), 2 + 2 * len(toss), -1))
    assert first == third == draw(77)[0] * LARGEST >> 32 != second


def test_the_largest_coin_marks_the_last_of_a_total(dut):
    """A register of ones shifts out other bits; so the mark is set by a register that has them."""
    # The only state whose next 32 bits are ones: its own bits, without the taps that come in.
    state = _before((1 << 32) - 1)
    assert draw(state)[0] == (1 << 32) - 1
    script = [{"load": 1, "seed": state}, {"load": 0, "start": 1, "total": LARGEST}, {"start": 0}]
    [mark] = play(dut, script + [{}] * dut.LATENCY, "mark", tail=1)
    assert mark[-1] == LARGEST - 1


def _before(number):
    """The state that draws a number, bit by bit: earlier bits decide what the taps change."""
    state = 0
    for bit in range(32):
        if (draw(state)[0] ^ number) >> bit & 1:
            state |= 1 << bit
    return state
