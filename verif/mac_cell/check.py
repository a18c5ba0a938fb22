"""Compares a BF16 MAC cell with golden, step by step, and reports the first wrong sum."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from ml_dtypes import bfloat16

from verif.mac_cell.harness import sums
from verif.mac_cell.vectors import EDGES, Steps
from weft.golden import matmul_bf16

__all__ = ["LONG_SUMS", "Mismatch", "check", "expected_sums"]


@dataclass(frozen=True)
class Mismatch:
    """A step whose sum differs from golden's.

    Attributes
    ----------
    run, step, slot : int
    a, b : int
        The bits of the operands; they count with ``en``.
    before : int
        The bits of the start of the step.
    en : bool
    want, got : int
        The bits of golden's sum and of the MAC cell's sum.
    """

    run: int
    step: int
    slot: int
    a: int
    b: int
    before: int
    en: bool
    want: int
    got: int

    def __str__(self):
        bubble = "" if self.en else ", without en"
        return (
            f"run {self.run}, step {self.step}, slot {self.slot}{bubble}: a 0x{self.a:04x},"
            f" b 0x{self.b:04x}, c 0x{self.before:08x}, want 0x{self.want:08x},"
            f" got 0x{self.got:08x}"
        )


def check(executable, steps, *, flush) -> Mismatch | None:
    """The first of the `Steps` whose sum differs from golden's; None if all are equal.

    ``flush`` selects golden's treatment of subnormal numbers.
    """
    for first, batch in steps.batches():
        before, want = expected_sums(batch, flush=flush)
        got = sums(
            executable, batch.a, batch.b, batch.c, en=batch.en, clear=batch.clear,
            start=batch.start,
        )
        wrong = np.argwhere(got != want)
        if len(wrong):
            run, step, slot = index = tuple(wrong[0].tolist())
            values = (batch.a, batch.b, before, batch.en, want, got)
            return Mismatch(first + run, step, slot, *(value[index].item() for value in values))
    return None


def expected_sums(steps, *, flush) -> tuple[np.ndarray, np.ndarray]:
    """The start of each of the `Steps` and its sum: two arrays of uint32, ``before, after``.

    ``before`` is ``c``, +0 or the ``after`` of the previous step. ``after`` is ``fma(a, b,
    before)``. In a step without ``en`` it is ``before``: golden's product of no pairs, which makes
    any NaN canonical.
    """
    before, after = (np.empty(steps.a.shape, np.uint32) for _ in range(2))
    acc = np.zeros_like(before[:, 0])
    for k in range(steps.a.shape[1]):
        start, clear, en = steps.start[:, k], steps.clear[:, k], steps.en[:, k]
        before[:, k] = acc = np.where(start, steps.c[:, k], np.where(clear, 0, acc))
        a, b = (x[:, k, :, None].view(bfloat16) for x in (steps.a, steps.b))
        step, bubble = (_golden(a[..., :pairs], b[..., :pairs], acc, flush) for pairs in (1, 0))
        after[:, k] = acc = np.where(en, step, bubble)
    return before, after


def _golden(a, b, c, flush):
    """``c + sum(a * b)`` over the last axis, as golden's product of 1 x K and K x 1 matrices."""
    start = c.view(np.float32)[..., None, None]
    product = matmul_bf16(a[..., None, :], b[..., None], start=start, flush_subnormals=flush)
    return product.view(np.uint32)[..., 0, 0]


SEEDS = 128  # runs of each kind, one for each seed
STEPS = 300
SLOTS = 8


def gaussian(rng, shape):
    """Normally distributed operands and starts."""
    a, b = rng.normal(size=(2, *shape)).astype(bfloat16).view(np.uint16)
    return a, b, rng.normal(size=shape).astype(np.float32).view(np.uint32)


def wide(rng, shape):
    """Operands of all magnitudes with finite products, starts of all magnitudes."""
    a, b = _signed(rng, rng.integers(64 << 7, 190 << 7, (2, *shape)), 16)
    return a, b, _signed(rng, rng.integers(0, 0x7F800000, shape), 32)


def subnormal(rng, shape):
    """Sums near the least normal number; half of the operands are below it."""
    tiny = _signed(rng, rng.integers(0, 2 << 7, shape), 16)
    other = _signed(rng, rng.integers(0x3D00, 0x3FFF, shape), 16)
    swap = rng.random(shape) < 0.5
    c = _signed(rng, rng.integers(0, 3 << 23, shape), 32)
    return np.where(swap, other, tiny), np.where(swap, tiny, other), c


def special(rng, shape):
    """Normally distributed numbers, mixed with zeros, infinities, NaNs and extremes."""
    a, b, c = gaussian(rng, shape)
    rare = rng.random((3, *shape)) < [[[0.1]], [[0.1]], [[0.5]]]
    return (
        np.where(rare[0], rng.choice(EDGES, shape), a),
        np.where(rare[1], rng.choice(EDGES, shape), b),
        np.where(rare[2], _edges(rng, shape), c),
    )


def _run(rng, kind):
    """The fields of `Steps` for one run."""
    shape = STEPS, SLOTS
    a, b, c = kind(rng, shape)
    en = rng.random(shape) < rng.choice([0.5, 0.9, 1])
    clear, start = rng.random((2, *shape)) < rng.choice([0.01, 0.2])
    clear[0] |= ~start[0]
    # Operands without ``en`` are noise.
    a, b = (np.where(en, x, rng.choice(EDGES, shape)) for x in (a, b))
    return a, b, c, en, clear, start


def _bubbles(rng):
    """Starts of all kinds, followed by steps without ``en``."""
    shape = STEPS, SLOTS
    a, b = rng.choice(EDGES, (2, *shape))
    zeros, start = np.zeros((2, *shape), bool)
    start[::10] = True
    return a, b, _edges(rng, shape), zeros, zeros, start


def _steps(run):
    fields = zip(*(run(np.random.default_rng(seed)) for seed in range(SEEDS)), strict=True)
    types = np.uint16, np.uint16, np.uint32, bool, bool, bool
    return Steps(*(np.stack(f).astype(t) for f, t in zip(fields, types, strict=True)))


# The functions that make the `Steps` of each kind; the seed of a run is its number.
LONG_SUMS = {
    f"{kind.__name__} sums": partial(_steps, partial(_run, kind=kind))
    for kind in (gaussian, wide, subnormal, special)
}
LONG_SUMS["bubbles"] = partial(_steps, _bubbles)


def _signed(rng, magnitude, width):
    """``magnitude`` with a random sign bit."""
    return magnitude | rng.integers(0, 2, magnitude.shape) << width - 1


def _edges(rng, shape):
    """EDGES as binary32, half of them with noise in the lower 16 bits."""
    noise = rng.integers(0, 1 << 16, shape) * rng.integers(0, 2, shape)
    return rng.choice(EDGES, shape).astype(np.int64) << 16 | noise
