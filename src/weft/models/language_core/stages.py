"""The stages of a token: groups of passes that have a name, and their cycles."""

from typing import NamedTuple

from weft.golden.language.sampling import GREEDY, Sampling
from weft.language_core.cycles import pass_cycles
from weft.language_core.latencies import LIST_START
from weft.models.language_core.passes import ModelPasses
from weft.models.language_core.program import LanguageCoreProgram
from weft.network_core.cycles.memory import ProgramTiming

__all__ = ["Stage", "token_stages"]

# Names, and how many passes of `ModelPasses.list` belong to each.
_FIRST = (("embedding", 2),)
_LAYER = (
    ("norm", 2), ("q, k, v", 3), ("rope", 2), ("cache", 2), ("scores", 1), ("exp", 2),
    ("values", 1), ("wo", 1), ("norm", 2), ("w1, w3", 2), ("silu", 1), ("w2", 1),
)
_MOVES = {"embedding": ModelPasses.ROW, "cache": ModelPasses.MOVES}  # with a program memory, too
_LAST = ("norm", 3), ("classifier", 1)
_SAMPLER = ("sampling", ModelPasses.SAMPLER)  # with a temperature
assert sum(count for _, count in _LAYER) == ModelPasses.PER_LAYER
assert sum(count for _, count in (*_FIRST, *_LAST)) == ModelPasses.OTHERS


class Stage(NamedTuple):
    """A stage of a token: its name, and cycles since the start of the token."""

    name: str
    start: int
    end: int


def token_stages(
    program: LanguageCoreProgram, position: int, how: Sampling = GREEDY,
    memory: ProgramTiming | None = None,
) -> list[Stage]:
    """The stages of the token at a position, in their order; the cycles are predicted.

    The last one ends with its last pass, some cycles before the token does. ``how`` chooses the
    next token. ``memory`` is the timing of a program memory.
    """
    layers = len(program.caches)
    more = _MOVES if program.program else {}
    found, at, passes = [], LIST_START, iter(program.list_of(how))
    last = _LAST if how == GREEDY else (*_LAST, _SAMPLER)
    for name, count in (*_FIRST, *layers * _LAYER, *last):
        start = at
        count += more.get(name, 0)
        at += sum(pass_cycles(next(passes), position, memory) for _ in range(count))
        found.append(Stage(name, start, at))
    return found
