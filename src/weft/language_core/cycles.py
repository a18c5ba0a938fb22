"""The cycles of a token on a language core, exactly: they depend on its position alone."""

from collections.abc import Sequence

from weft.language_core.descriptors import LEVELS, Blocks, Kind, OutPlace, Pass, Reduction, Source
from weft.language_core.latencies import (
    COIN_BITS,
    CONTROL,
    EVERY_OTHER,
    GROUP_OF_PRODUCT,
    GROUP_OF_VALUE,
    LANES_OUT,
    LIST_END,
    LIST_START,
    REDUCED,
    SCALAR_OUT,
    SKIPPED,
)

__all__ = ["pass_cycles", "steps", "token_cycles"]


def steps(each: Pass, position: int) -> int:
    """The steps of a pass: the product of the iterations of its loops."""
    blocks = {Blocks.EIGHTHS: position // 8 + 1, Blocks.SIXTEENTHS: position // 16 + 1}
    counts = [getattr(each, f"count_{n}") for n in range(LEVELS)]
    counts[0] = blocks.get(Blocks(each.blocks_0), counts[0])
    counts[1] = blocks.get(Blocks(each.blocks_1), counts[1])
    total = 1
    for count in counts:
        total *= count
    return total


def pass_cycles(each: Pass, position: int) -> int:
    """Cycles of a pass, from its first step to the first step of the pass that follows.

    With n steps, one every p cycles::

        (n - 1) * p + 1 + latency + CONTROL

    A product has the latency ``GROUP_OF_PRODUCT + 1 + LANES_OUT``: its last tile has two groups.
    Values have ``GROUP_OF_VALUE + LANES_OUT``. REDUCED follows if the pass reduces its results, or
    stores keys or values. A scalar pass has a step for each head, and the latency SCALAR_OUT; a
    coin takes COIN_BITS.
    """
    if each.kind == Kind.SCALAR:
        coin = each.source == Source.COIN
        return (COIN_BITS if coin else each.heads + SCALAR_OUT) + CONTROL
    cached = each.out_place >= OutPlace.KEYS
    count, latency, period = steps(each, position), LANES_OUT, 1
    if each.kind == Kind.PRODUCT:
        latency += GROUP_OF_PRODUCT + 1
        inner = position // 16 + 1 if each.blocks_0 == Blocks.SIXTEENTHS else each.count_0
        period = EVERY_OTHER if inner == 1 else 1
    else:
        latency += GROUP_OF_VALUE
        period = EVERY_OTHER if cached else 1
    latency += REDUCED if each.reduction != Reduction.NONE or cached else 0
    return (count - 1) * period + 1 + latency + CONTROL


def token_cycles(passes: Sequence[Pass], position: int, *, emits: bool = True) -> int:
    """Cycles of the token at a position, from the read of the list to the end of its last pass.

    Without the waits for the prompt and for the host. ``emits`` is false for a token of the prompt
    that another one follows: its list ends before the first emitting pass.
    """
    taken = [each for each in passes if emits or not each.emitting]
    total = LIST_START + sum(pass_cycles(each, position) for each in taken)
    return total + (LIST_END if len(taken) == len(passes) else SKIPPED)
