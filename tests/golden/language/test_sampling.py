"""The choice of the next token, and its random numbers."""

import numpy as np
import pytest

from weft.golden.language import sampling as language_sampling
from weft.golden.language.operations import exp_table
from weft.golden.language.sampling import (
    GREEDY,
    TAPS,
    draw,
    sample,
    sampling,
    start_state,
    weigh,
)


def _matrix_power(columns, exponent):
    """A power of a matrix over GF(2); a column is an integer."""
    def times(matrix, vector):
        found = 0
        for bit, column in enumerate(matrix):
            if vector >> bit & 1:
                found ^= column
        return found

    result = [1 << bit for bit in range(32)]
    while exponent:
        if exponent & 1:
            result = [times(columns, column) for column in result]
        columns = [times(columns, column) for column in columns]
        exponent >>= 1
    return result


def test_the_register_has_its_whole_period():
    step = [draw(1 << bit)[1] for bit in range(32)]  # 32 steps: 2 divides no period that is odd
    unit = [1 << bit for bit in range(32)]
    period = 2**32 - 1
    assert _matrix_power(step, period) == unit
    for prime in (3, 5, 17, 257, 65537):  # the prime factors of 2**32 - 1
        assert period % prime == 0
        assert _matrix_power(step, period // prime) != unit


def test_a_number_is_what_the_steps_shift_out():
    assert draw(1 << 31) == (1 << 31, TAPS)
    # The taps are added in the first of two steps, and again in the second one, for their bit 0.
    number, state = draw(0b01 << 30)
    assert (number, state) == (1 << 30 | 1 << 31, (TAPS >> 1) ^ TAPS)
    assert draw(1)[0] & 7 == 0b011


def test_start_states_are_spread_and_never_zero():
    states = [start_state(seed) for seed in range(5000)]
    assert 0 not in states and len(set(states)) == 5000
    first = np.array([draw(state)[0] for state in states]) / 2**32
    counts = np.histogram(first, 16, (0, 1))[0]
    assert np.abs(counts - 5000 / 16).max() < 5 * np.sqrt(5000 / 16)
    assert start_state(-0x9E3779B9) == 1  # the finalizer maps 0 to 0
    assert start_state(1 << 70) == start_state(0)


def test_greedy_takes_the_first_of_the_largest():
    assert sample([3, 9, -5, 9], GREEDY, 77) == (1, 77)
    assert sampling(0, 0, 9) == GREEDY


@pytest.mark.parametrize("temperature", [0.3, 0.8, 1, 2.5])
def test_tokens_come_as_often_as_their_softmax(temperature):
    rng = np.random.default_rng(4)
    logits = np.rint(rng.normal(0, 1.5, 24) * 512).astype(int)
    p = np.exp(logits / 512 / temperature)
    p /= p.sum()
    how, state = sampling(temperature, 0, 9), start_state(1)
    counts = np.zeros(24)
    for _ in range(4000):
        token, state = sample(logits, how, state)
        counts[token] += 1
    often = p > 0.002
    error = (counts - 4000 * p)[often] / np.sqrt(4000 * p * (1 - p))[often]
    assert np.abs(error).max() < 4


def test_the_mark_selects_by_running_sums():
    """Against exact fractions of the same exponentials."""
    rng = np.random.default_rng(5)
    how = sampling(0.9, 0, 9)
    for _ in range(50):
        logits = rng.integers(-2000, 2000, 100)
        s = [(int(v - logits.max()) * how.multiplier * 2 + 2**how.shift) // 2 ** (how.shift + 1)
             for v in logits]
        p = np.floor(32768 * np.exp(np.array(s) / 256))
        state = start_state(int(rng.integers(1 << 30)))
        token, after = sample(logits, how, state)
        coin, state = draw(state)
        assert after == state
        part = coin / 2**32 * p.sum()
        assert p[:token].sum() - 600 <= part <= p[:token + 1].sum() + 600


def test_a_running_sum_must_exceed_the_mark(monkeypatch):
    """Two tokens of 32,767 each: half of the random numbers are below 2**31."""
    monkeypatch.setattr(language_sampling, "draw", lambda state: (state, state))
    how = sampling(1, 0, 9)
    assert sample([5, 5], how, (1 << 31) - 1)[0] == 0
    assert sample([5, 5], how, 1 << 31)[0] == 1
    assert sample([5, 5], how, (1 << 32) - 1)[0] == 1


def test_min_p_leaves_out_the_improbable():
    logits = np.array([0, 512 * 2, 512, -512 * 9])  # exp(-2), 1, exp(-1), exp(-11)
    state, seen = start_state(2), set()
    for _ in range(300):
        token, state = sample(logits, sampling(1, 0.2, 9), state)
        seen.add(token)
    assert seen == {1, 2}
    assert {sample(logits, sampling(1, 1, 9), state + i)[0] for i in range(50)} == {1}


@pytest.mark.parametrize("temperature, min_p, text", [
    (-1, 0, "temperature must be 0, or in 0.01..100, not -1"),
    (0.001, 0, "temperature must be 0, or in 0.01..100, not 0.001"),
    (float("nan"), 0, "temperature must be 0, or in 0.01..100, not nan"),
    (1, 1.5, "min-p must be in 0..1, not 1.5"),
    (0, 0.1, "min-p must be 0 without a temperature, not 0.1"),
    (0.01, 0, "temperature must be 0, or above 0.015625 and at most 100, with logits of 0 bits"),
    (1 / 64, 0, "temperature must be 0, or above 0.015625"),
])
def test_values_outside_their_range_are_refused(temperature, min_p, text):
    with pytest.raises(ValueError, match=text):
        sampling(temperature, min_p, 0)


@pytest.mark.parametrize("bits", [0, 1, 9, 15])
def test_all_other_temperatures_have_a_multiplier(bits):
    """With an error of at most half of the last of 15 bits."""
    for temperature in np.geomspace(0.01 if bits else 0.01563, 100, 300):
        how = sampling(float(temperature), 0, bits)
        assert 16384 <= how.multiplier <= 32767 and 1 <= how.shift <= 47
        error = how.multiplier / 2**how.shift * temperature / 2.0 ** (8 - bits) - 1
        assert abs(error) <= 1 / 32767


def test_weights_are_near_the_softmax():
    """In KL, on logits of all sizes; the largest one weighs 32,767 even if all others are equal."""
    rng = np.random.default_rng(6)
    for temperature in (0.3, 0.8, 1, 2.5, 100):
        logits = np.rint(rng.normal(0, rng.uniform(0.1, 4), 512) * 512).astype(int)
        p = np.exp((logits - logits.max()) / 512 / temperature)
        p /= p.sum()
        weights = weigh(logits, sampling(temperature, 0, 9))
        assert weights.max() == 32767 == exp_table().base[0]
        q = weights / weights.sum()
        used = q > 0
        assert 0 <= (q[used] * np.log(q[used] / p[used])).sum() < 2e-3
    assert weigh([-32768, 32767], sampling(0.01, 1, 15)).tolist() == [0, 32767]
    assert weigh([7] * 5, sampling(100, 1, 0)).tolist() == [32767] * 5
