"""The choice of the next token from logits in integers, with the random numbers of a 32-bit LFSR.
"""

import dataclasses
import math

import numpy as np

from weft.golden.language.operations import EXP_BITS, exponential, scale

__all__ = ["GREEDY", "Sampling", "draw", "sample", "sampling", "start_state", "weigh"]

TAPS = 0x80200003  # x**32 + x**22 + x**2 + x + 1, which is primitive: the period is 2**32 - 1
SCALED_BITS = 8  # after the point of a logit over the temperature
_MASK = 0xFFFFFFFF
_P_MAX = 32767


@dataclasses.dataclass(frozen=True)
class Sampling:
    """What `sample` computes with.

    Attributes
    ----------
    multiplier : int
        0 for the largest logit (greedy); else int16.
    shift : int
        1 to 47. ``multiplier / 2**shift`` is ``2**(8 - logit_bits) / temperature``.
    least : int
        Tokens with a smaller exponential are left out (min-p); 0 leaves out none.
    """

    multiplier: int
    shift: int
    least: int


GREEDY = Sampling(0, 1, 0)


def sampling(temperature: float, min_p: float, logit_bits: int) -> Sampling:
    """Return the integers of a temperature and a min-p.

    Parameters
    ----------
    temperature : float
        0 for greedy; else 0.01 to 100. With 0 bits after the point of the logits it is above
        1/64, for ``2**8 / temperature`` must be below ``2**14``: the multiplier has 15 bits.
    min_p : float
        0 to 1: a token needs this part of the probability of the most probable one, at the
        temperature. 0 leaves out no token.
    logit_bits : int
        Bits after the binary point of the logits.

    Raises
    ------
    ValueError
        For a value outside its range, and for a min-p without a temperature.
    """
    if not (temperature == 0 or 0.01 <= temperature <= 100):
        raise ValueError(f"temperature must be 0, or in 0.01..100, not {temperature}")
    if not 0 <= min_p <= 1:
        raise ValueError(f"min-p must be in 0..1, not {min_p}")
    if temperature == 0:
        if min_p:
            raise ValueError(f"min-p must be 0 without a temperature, not {min_p}")
        return GREEDY
    factor = 2.0 ** (SCALED_BITS - logit_bits) / temperature
    shift = 14 - math.floor(math.log2(factor))
    if shift < 1:
        low = 2.0 ** (SCALED_BITS - logit_bits - 14)
        raise ValueError(
            f"temperature must be 0, or above {low} and at most 100, with logits of {logit_bits}"
            f" bits after the point, not {temperature}"
        )
    return Sampling(min(round(factor * 2**shift), 32767), shift, math.ceil(min_p * _P_MAX))


def start_state(seed: int) -> int:
    """Return the first state of the LFSR, never 0, from a seed of any size.

    The host mixes the seed (the finalizer of MurmurHash3), so that neighbouring seeds give other
    texts.
    """
    x = (seed + 0x9E3779B9) & _MASK
    for factor, down in ((0x85EBCA6B, 16), (0xC2B2AE35, 13)):
        x = ((x ^ (x >> down)) * factor) & _MASK
    return (x ^ (x >> 16)) or 1


def draw(state: int) -> tuple[int, int]:
    """Return a random number of 32 bits, and the next state.

    Bit n of the number is bit 0 of the state before step n. A step: ``state = (state >> 1) ^ (TAPS
    if state & 1 else 0)``.
    """
    number = 0
    for n in range(32):
        bit = state & 1
        number |= bit << n
        state = (state >> 1) ^ (TAPS if bit else 0)
    return number, state


def weigh(logits, how: Sampling) -> np.ndarray:
    """Return what each token weighs, int [vocab]: 0 to 32,767, and 32,767 for the largest logit.

    ::

        s[i] = scale(logits[i] - max(logits), multiplier, shift)       int16, 0 or less
        p[i] = exp(min(-s[i] * 16, 65535)), or 0 if it is below least

    ``logits`` are int16; ``how`` has a temperature.
    """
    logits = np.asarray(logits, np.int64)
    s = scale(logits - logits.max(), how.multiplier, how.shift)
    p = exponential(-s, EXP_BITS - SCALED_BITS)
    return np.where(p < how.least, 0, p)


def sample(logits, how: Sampling, state: int) -> tuple[int, int]:
    """Return the next token and the next state.

    Greedy: the first of the largest logits; the state stays. Otherwise, with the weights ``p``::

        coin, state = draw(state)
        mark = (coin * sum(p)) >> 32
        token = the first i with p[0] + ... + p[i] > mark

    The sum has 31 bits for up to 65,538 tokens.

    Parameters
    ----------
    logits : int16 [vocab]
    how : Sampling
    state : int
        Of the LFSR, 1 to 2**32 - 1.
    """
    if how.multiplier == 0:
        return int(np.argmax(logits)), state
    p = weigh(logits, how)
    coin, state = draw(state)
    mark = (coin * int(p.sum())) >> 32
    return int((p.cumsum() > mark).argmax()), state
