"""The choice of the next token from logits in integers, with the random numbers of a 32-bit LFSR.
"""

import dataclasses
import math

import numpy as np

from weft.golden.language.operations import EXP_BITS, MAX_SHIFT, exponential, scale

__all__ = ["GREEDY", "Sampling", "advance", "sample", "sampling", "start_state"]

TAPS = 0x80200003  # x**32 + x**22 + x**2 + x + 1, which is primitive: the period is 2**32 - 1
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
        ``multiplier / 2**shift`` is ``2**(12 - logit_bits) / temperature``.
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
        0 for greedy; else 0.01 to 100.
    min_p : float
        0 to 1: a token needs this part of the probability of the most probable one, at the
        temperature. 0 leaves out no token.
    logit_bits : int
        Bits after the binary point of the logits.

    Raises
    ------
    ValueError
        For a value outside its range.
    """
    if not (temperature == 0 or 0.01 <= temperature <= 100):
        raise ValueError(f"temperature must be 0, or in 0.01..100, not {temperature}")
    if not 0 <= min_p <= 1:
        raise ValueError(f"min-p must be in 0..1, not {min_p}")
    if temperature == 0:
        return GREEDY
    factor = 2.0 ** (EXP_BITS - logit_bits) / temperature
    shift = 14 - math.floor(math.log2(factor))
    if not 1 <= shift <= MAX_SHIFT:
        raise ValueError(
            f"temperature must suit logits with {logit_bits} bits after the point, not"
            f" {temperature}"
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


def advance(state: int, steps: int = 32) -> int:
    """Return the state after ``steps`` steps; 32 of them make a new random number.

    A step: ``state = (state >> 1) ^ (TAPS if state & 1 else 0)``.
    """
    for _ in range(steps):
        state = (state >> 1) ^ (TAPS if state & 1 else 0)
    return state


def sample(logits, how: Sampling, state: int) -> tuple[int, int]:
    """Return the next token and the next state.

    Greedy: the first of the largest logits; the state stays. Otherwise, with ``top`` the largest
    logit::

        u[i] = (top - logits[i]) * multiplier / 2**shift     rounded as in scale, at most 65,535
        p[i] = exponential(u[i]), or 0 if it is below least
        state = advance(state)
        mark = (state * sum(p)) >> 32
        token = the first i with p[0] + ... + p[i] > mark

    ``u`` is limited before the exponential. The sum has 31 bits for up to 65,538 tokens.

    Parameters
    ----------
    logits : int16 [vocab]
    how : Sampling
    state : int
        Of the LFSR, 1 to 2**32 - 1.
    """
    logits = np.asarray(logits, np.int64)
    if how.multiplier == 0:
        return int(logits.argmax()), state
    p = exponential(scale(logits.max() - logits, how.multiplier, how.shift, bits=48))
    p = np.where(p < how.least, 0, p)
    state = advance(state)
    mark = (state * int(p.sum())) >> 32
    return int((p.cumsum() > mark).argmax()), state
