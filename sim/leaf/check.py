"""Holds a BF16 leaf against golden, step by step: the first sum that is wrong, and all about it."""

from dataclasses import dataclass

import numpy as np
from ml_dtypes import bfloat16

from weft.golden import matmul_bf16
from weft.sim.leaf.bench import sums

__all__ = ["Mismatch", "check", "wanted"]


@dataclass(frozen=True)
class Mismatch:
    """A step after which the sum is not golden's.

    Attributes
    ----------
    run, step, slot : int
    a, b : int
        The operands, as bits; they count with ``en``.
    before : int
        What the step started from.
    en : bool
    want, got : int
        Golden's sum and the leaf's.
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


def check(program, steps, *, flush) -> Mismatch | None:
    """The first of the `Steps` that a leaf's program gets wrong; None where it is right.

    ``flush`` says which golden counts.
    """
    for first, part in steps.parts():
        before, want = wanted(part, flush=flush)
        got = sums(program, part.a, part.b, part.c, en=part.en, clear=part.clear, start=part.start)
        wrong = np.argwhere(got != want)
        if len(wrong):
            run, step, slot = at = tuple(wrong[0].tolist())
            values = (part.a, part.b, before, part.en, want, got)
            return Mismatch(first + run, step, slot, *(value[at].item() for value in values))
    return None


def wanted(steps, *, flush) -> tuple[np.ndarray, np.ndarray]:
    """What each of the `Steps` starts from and what it leaves behind: two arrays of uint32.

    ``before`` is ``c``, +0 or the ``after`` of the step before; ``after = fma(a, b, before)``, or
    ``before`` itself in a step without ``en``: golden's product of no pairs, with its one NaN.
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
    """``c + sum(a * b)`` over the last axis, as golden's matrices of one row and one column."""
    start = c.view(np.float32)[..., None, None]
    found = matmul_bf16(a[..., None, :], b[..., None], start=start, flush_subnormals=flush)
    return found.view(np.uint32)[..., 0, 0]
