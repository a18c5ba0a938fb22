"""The cycles of a token on a language core: exactly, but for those of a program memory."""

import math
from collections.abc import Sequence

from weft.language_core.config import BEAT_BYTES, WORD_BEATS
from weft.language_core.descriptors import (
    LEVELS,
    Blocks,
    Kind,
    OutPlace,
    Pass,
    Reduction,
    Source,
    Transfer,
)
from weft.language_core.latencies import (
    ARRIVED,
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
    STORE_WORD,
    TRANSFER_START,
    UNPACKED,
)
from weft.network_core.cycles.memory import PERIOD, ProgramTiming

__all__ = [
    "as_predicted", "iterations", "last_step", "pass_cycles", "step_period", "steps", "token_bytes",
    "token_cycles",
]

_TOLERANCE = 100  # a program memory may differ by a part of so many: its refreshes and its rows


def iterations(each: Pass, position: int) -> list[int]:
    """The iterations of the loops of a pass, the innermost one first."""
    blocks = {Blocks.EIGHTHS: position // 8 + 1, Blocks.SIXTEENTHS: position // 16 + 1}
    counts = [getattr(each, f"count_{n}") for n in range(LEVELS)]
    counts[0] = blocks.get(Blocks(each.blocks_0), counts[0])
    counts[1] = blocks.get(Blocks(each.blocks_1), counts[1])
    return counts


def steps(each: Pass, position: int) -> int:
    """The steps of a pass: the product of the iterations of its loops."""
    return math.prod(iterations(each, position))


def step_period(each: Pass, position: int) -> int:
    """Cycles from a step of a pass to the next one."""
    if each.kind == Kind.PRODUCT:
        slow = iterations(each, position)[0] == 1
    else:
        slow = each.out_place >= OutPlace.KEYS
    return EVERY_OTHER if slow else 1


def pass_cycles(each: Pass, position: int, memory: ProgramTiming | None = None) -> int:
    """Cycles of a pass, from its first step to the first step of the pass that follows.

    With n steps, one every p cycles::

        (n - 1) * p + 1 + latency + CONTROL

    If the next pass does not wait for the last result, ``follow`` replaces ``1 + latency +
    CONTROL``. A product has the latency ``GROUP_OF_PRODUCT + 1 + LANES_OUT``: its last tile has two
    groups. Values have ``GROUP_OF_VALUE + LANES_OUT``. REDUCED follows if the pass reduces its
    results, or stores keys or values. A scalar pass has a step for each head, and the latency
    SCALAR_OUT; a coin takes COIN_BITS.

    A transfer of n words starts its first burst TRANSFER_START cycles after its pass, and its last
    beat comes `ProgramTiming.latency` cycles and 8 n - 1 periods of a beat later. Then the step of
    a product takes the last word, and a load ends. Words of int4 have the beats of
    `weft.language_core.descriptors.packed_beats`, and the last one of them is UNPACKED cycles later
    in the main memory. A store takes STORE_WORD cycles beside the beats
    of each word, and at its end: an SDRAM answers before it has stored. Raises ValueError for a
    transfer without the timing of its ``memory``.
    """
    if each.kind != Kind.VECTOR and each.transfer != Transfer.NONE:
        return _transfer_cycles(each, position, memory)
    if each.kind == Kind.SCALAR:
        coin = each.source == Source.COIN
        return (COIN_BITS if coin else each.heads + SCALAR_OUT) + CONTROL
    return (steps(each, position) - 1) * step_period(each, position) + (
        each.follow or last_step(each)
    )


def last_step(each: Pass) -> int:
    """Cycles from the last step of a pass to the first step of a pass that waits for its results.
    """
    cached, latency = each.out_place >= OutPlace.KEYS, LANES_OUT
    latency += GROUP_OF_PRODUCT + 1 if each.kind == Kind.PRODUCT else GROUP_OF_VALUE
    latency += REDUCED if each.reduction != Reduction.NONE or cached else 0
    return 1 + latency + CONTROL


def _beats(each, position):
    """The beats that a transfer moves."""
    words = steps(each, position)
    return words // each.count_0 * (each.packed + 1) if each.packed else WORD_BEATS * words


def _transfer_cycles(each, position, memory):
    if memory is None:
        raise ValueError("the cycles of a transfer must have the timing of its memory")
    beats = _beats(each, position)
    if each.transfer == Transfer.STORE:
        moved = beats * memory.period // PERIOD + STORE_WORD * (beats // WORD_BEATS + 1)
        return TRANSFER_START + moved + 1 + CONTROL
    last = TRANSFER_START + memory.latency + (beats - 1) * memory.period // PERIOD + 2 + ARRIVED
    last += UNPACKED if each.packed else 0
    return last + (last_step(each) if each.kind == Kind.PRODUCT else 1 + CONTROL)


def token_cycles(
    passes: Sequence[Pass], position: int, *, emits: bool = True,
    memory: ProgramTiming | None = None,
) -> int:
    """Cycles of the token at a position, from the read of the list to the end of its last pass.

    Without the waits for the prompt and for the host. ``emits`` is false for a token of the prompt
    that another one follows: its list ends before the first emitting pass. With a program memory
    of the timing ``memory`` the cycles are exact but for its refreshes and its rows.
    """
    taken = [each for each in passes if emits or not each.emitting]
    total = LIST_START + sum(pass_cycles(each, position, memory) for each in taken)
    return total + (LIST_END if len(taken) == len(passes) else SKIPPED)


def token_bytes(passes: Sequence[Pass], position: int) -> int:
    """Bytes that a token moves between the program memory and the core."""
    moves = (each for each in passes if each.kind != Kind.VECTOR and each.transfer)
    return BEAT_BYTES * sum(_beats(each, position) for each in moves)


def as_predicted(cycles: int, predicted: int, memory: ProgramTiming | None) -> bool:
    """Whether cycles are those of `token_cycles`; with a program memory, to within 1 %."""
    return _TOLERANCE * abs(cycles - predicted) <= (0 if memory is None else predicted)
