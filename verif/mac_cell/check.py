"""Compares a BF16 MAC cell with golden, step by step, and reports the first wrong sum."""

from dataclasses import dataclass

import numpy as np
from ml_dtypes import bfloat16

from verif.mac_cell.harness import sums
from weft.golden import matmul_bf16

__all__ = ["Mismatch", "check", "expected_sums"]


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
