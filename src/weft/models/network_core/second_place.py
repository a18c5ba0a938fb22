"""The second place of a program: the host writes the next input while a list computes.

The maps of the next inference, and a list for them, lie behind the program, in memory that it does
not use. So any program has a second place, if the memory is large enough. The maps are a multiple
of the banks further, and so is the list; in a program memory it is a multiple of a burst, too. So
both lists take the same cycles.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft.network_core.cycles.memory import BURST
from weft.network_core.descriptors import ListEnd, ListJob, join, split, unpack_list

if TYPE_CHECKING:
    from weft.models.network_core.program import NetworkCoreProgram

__all__ = ["SecondPlace"]


@dataclass(frozen=True)
class SecondPlace:
    """Where the maps and the list of every second inference lie.

    Attributes
    ----------
    maps : int
        Vectors from a map of the program to the one of the second place.
    list_first : int
        The first vector of the list, which loads what the program's list loads.
    list : bytes
    """

    maps: int
    list_first: int
    list: bytes

    @classmethod
    def of(cls, program: "NetworkCoreProgram", program_bytes: int) -> "SecondPlace | None":
        """Return the second place of a program; None without one.

        Only a program of one list has one, without products between lists, and without variables,
        which need the result before. ``program_bytes`` are those of the core's program memory.
        """
        if len(program.segments) != 1 or program.products or program.states:
            return None
        config, (segment,) = program.config, program.segments
        depth, banks = config.array.depth, config.banks
        maps = _multiple(-(-program.memory_used // depth), banks)
        end = maps + program.arena * program.batch
        data = _moved(segment.run, maps, banks)
        first, room = end, config.vectors
        if config.program_words:
            first, room = -(-program.program_memory_used // depth), program_bytes // depth
        # A burst of a program memory ends at a multiple of its beats.
        burst = BURST * config.read_vectors if config.program_words else 1
        first += (segment.run_first - first) % math.lcm(banks, burst)
        fits = end <= config.vectors and first + len(data) // depth <= room
        return cls(maps, first, data) if fits else None


def _multiple(number, of):
    """Return the next multiple."""
    return number + -number % of


def _moved(run, by, banks):
    """Return the list at the start of ``run``, for maps that are ``by`` vectors further."""
    def moved(address):
        return split(join(address, banks) + by, banks)

    found = []
    for entry in unpack_list(run):
        if isinstance(entry, ListJob):
            entry = replace(
                entry, input=moved(entry.input), output=moved(entry.output),
                add_input=moved(entry.add_input) if entry.add else entry.add_input,
            )
        elif isinstance(entry, ListEnd):
            entry = replace(entry, result=moved(entry.result))
        found.append(entry.pack())
    return b"".join(found)
