"""When the pass after a pass may start: before the results that it does not read are there."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from weft.language_core.config import COLUMNS, DEPTH, LANES
from weft.language_core.cycles import iterations, last_step, step_period
from weft.language_core.descriptors import (
    Factor,
    Kind,
    Operand,
    OutPlace,
    Pass,
    Reduction,
    Transfer,
)
from weft.language_core.latencies import (
    DECODED,
    FOLLOW,
    GROUP_OF_PRODUCT,
    GROUP_OF_VALUE,
    LANES_OUT,
    MAXIMUM_OUT,
    PARAMETER_ISSUE,
    PORT_B,
    READ,
    SIDE_READ,
)

__all__ = ["overlapped"]

_GROUPS = DEPTH // LANES  # of a vector
_ADDRESSES = 1 << 12  # of each memory
_NEVER = -(1 << 40)
_TILE = COLUMNS // LANES  # groups of a tile


def overlapped(passes: Sequence[Pass], positions: int) -> list[Pass]:
    """The passes with the earliest `Pass.follow` that is right at each position.

    A pass reads nothing that a pass before it has not stored yet: activations, values of the side
    memory, keys and values, maxima of heads. Two users of port B of the main memory never meet:
    parameters, keys and values that are stored, and the descriptor that is read in the cycle before
    the first step of a pass. Groups enter the lanes in the order of their passes. Nothing is
    overwritten too early: a result needs longer to its memory than any read of the pass before.

    Raises ValueError for a pass that has a ``follow`` already.
    """
    if any(each.follow for each in passes):
        raise ValueError("passes must have no follow")
    found: list[Pass] = []
    running: list[_Running] = []
    for each, following in zip_longest(passes, passes[1:]):
        gap = 0
        if following is not None and _may_follow(each, following):
            running = running or [_Running(times) for times in _at_each_position(each, positions)]
            gap = _gap(each, following, positions, running)
        if not gap:
            running = []
        found.append(replace(each, follow=gap))
    return found


def _at_each_position(each, positions):
    """The `_Times` of a pass at the first one of each eight positions."""
    moves = each.blocks_0 or each.blocks_1 or each.out_place >= OutPlace.KEYS
    if not moves:
        return [_Times(each, 0)] * len(range(0, positions, COLUMNS))
    return [_Times(each, position) for position in range(0, positions, COLUMNS)]


def _gap(each, following, positions, running):
    """The ``follow`` of a pass, 0 for none; ``running`` gets the pass that follows."""
    times = _at_each_position(following, positions)
    gap = max(FOLLOW, *(
        one.earliest(new) for one, new in zip(running, times, strict=True)
    ))
    most = last_step(each)
    while gap < most and any(
        one.collides(new, gap) for one, new in zip(running, times, strict=True)
    ):
        gap += 1
    if gap >= most:
        return 0
    for one, new in zip(running, times, strict=True):
        one.append(new, gap)
    return gap


def _may_follow(each, following):
    """Whether the second pass waits for some results of the first one only, if for any.

    A product whose words come from the program memory has steps when they come. A total, a sum of
    squares and a token are read by scalar passes, or by the control. A token of the prompt may end
    before the first emitting pass. The side memory has one read port: a residual is read later
    than a factor.
    """
    return (
        all(
            one.kind != Kind.SCALAR and (one.kind == Kind.VECTOR or one.transfer == Transfer.NONE)
            for one in (each, following)
        )
        and each.reduction in (Reduction.NONE, Reduction.MAXIMUM)
        and each.emitting == following.emitting and not (each.last or each.residual)
    )


class _Times:
    """When a pass reads and stores at a position, in cycles from its first step.

    Attributes
    ----------
    last : int
        The last step.
    groups : int [groups]
        They enter the lanes.
    reads, writes : dict of tuple of int [n]
        Times and addresses for each memory. A write that is done at a time can be read then.
    issues, stores : int [n]
        Port B reads parameters, and stores keys or values.
    """

    def __init__(self, each, position):
        counts = iterations(each, position)
        product = each.kind == Kind.PRODUCT
        steps = np.arange(np.prod(counts)) * step_period(each, position)
        self.last = int(steps[-1])
        entries = steps + GROUP_OF_VALUE
        inner = counts[0]
        if product:
            tiles = steps[counts[0] - 1 :: counts[0]] + GROUP_OF_PRODUCT
            entries, inner = (tiles[:, None] + np.arange(_TILE)).reshape(-1), _TILE
        self.groups = entries
        self.product = product
        operands = _addresses(each, "operand", counts)
        self.reads = {"activations": (steps, operands)}
        if product:
            vectors = operands[:, None] // _GROUPS * _GROUPS + np.arange(_GROUPS)
            self.reads = {
                "activations": (steps.repeat(_GROUPS), vectors.reshape(-1)),
                "main": (steps, _addresses(each, "main", counts)),
            }
        heads = np.arange(len(entries)) // (len(entries) // each.heads)
        order = np.arange(len(entries)) + each.side
        if each.lane_operand in (Operand.EXP, Operand.DISTANCE):
            self.reads["maxima"] = entries + 1, heads
        if each.factor == Factor.SIDE or each.residual:
            # A residual is read later, so it is there, too.
            self.reads["side"] = entries + SIDE_READ, order
        results = entries + LANES_OUT
        out = _addresses(each, "out", [inner, counts[1], each.heads])
        self.writes, self.stores = {}, np.zeros(0, int)
        if each.out_place >= OutPlace.KEYS:
            shift = 3 if each.out_place == OutPlace.KEYS else 4
            self.writes["main"] = results + 2 + PORT_B - READ, out + (position >> shift)
            self.stores = results + 1
        else:
            self.writes["activations"] = results, out
        if each.out_place == OutPlace.BOTH:
            self.writes["side"] = results + 1, order
        if each.reduction == Reduction.MAXIMUM:
            self.writes["maxima"] = results + MAXIMUM_OUT, heads
        uses = each.factor == Factor.PARAMETER or each.lane_operand in (Operand.PAIR, Operand.BYTE)
        self.issues = entries + PARAMETER_ISSUE if uses else np.zeros(0, int)


class _Running:
    """Passes that overlap, in cycles from the first step of the first one, which has ``times``."""

    def __init__(self, times):
        self.start, self.times = 0, times  # of the latest one
        self.ready = {}  # of each memory: when its addresses have been written
        self.busy = set()  # cycles in which port B reads parameters or stores
        self.stores = set()
        self._keep(0, times)

    def append(self, times, gap):
        self.start, self.times = self.start + self.times.last + gap, times
        self._keep(self.start, times)

    def earliest(self, times):
        """The least gap with which groups are in order, and all reads find what was written."""
        last, before = self.start + self.times.last, self.times
        kept = GROUP_OF_PRODUCT + 1 if before.product else DECODED  # cycles of its descriptor
        opens = GROUP_OF_PRODUCT if times.product else GROUP_OF_VALUE
        least = [self.start + kept, self.start + int(before.groups[-1]) + 2 - opens]
        for name, (at, addresses) in times.reads.items():
            ready = self.ready.get(name)
            if ready is not None:
                least.append(int((ready[addresses] - at).max()))
        return max(least) - last

    def collides(self, times, gap):
        """Whether port B has two users in a cycle, the first step being so many cycles later."""
        first = self.start + self.times.last + gap
        return first - 1 in self.busy or not self.stores.isdisjoint((times.issues + first).tolist())

    def _keep(self, start, times):
        for name, (at, addresses) in times.writes.items():
            ready = self.ready.setdefault(name, np.full(_ADDRESSES, _NEVER))
            ready[addresses] = at + start
        stores = (times.stores + start).tolist()
        self.stores.update(stores)
        self.busy.update(stores, (times.issues + start).tolist())


def _addresses(each, name, counts):
    """The addresses of nested loops; the first one is the innermost."""
    found = np.array([getattr(each, name)])
    for n, count in reversed([*enumerate(counts)]):
        found = (found[:, None] + np.arange(count) * getattr(each, f"{name}_{n}")).reshape(-1)
    return found
