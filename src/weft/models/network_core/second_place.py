"""The second place of a program: the host writes the next input while a list computes.

The maps of the next inference, a list for them and its log lie behind the program, in memory that
it does not use. So any program has a second place, if the memory is large enough. Maps, list and
log are a multiple of the banks further; in a program memory, list and log are a multiple of a burst
further, too. So both lists take the same cycles.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft.network_core.cycles.memory import BURST
from weft.network_core.descriptors import ListEnd, ListJob, ListLoad, join, split, unpack_list

if TYPE_CHECKING:
    from weft.models.network_core.program import NetworkCoreProgram

__all__ = ["ListPlace", "second_place"]


@dataclass(frozen=True)
class ListPlace:
    """Where a list, its maps and its log lie.

    Attributes
    ----------
    maps : int
        Vectors from a map of the program to the map of this place.
    first, log : int
        The first vectors of the list and of the log.
    on_chip : bool
        List and log lie in the memory on the chip, of a core with two.
    """

    maps: int
    first: int
    log: int
    on_chip: bool = False


def second_place(
    program: "NetworkCoreProgram", program_bytes: int
) -> tuple[ListPlace, bytes] | None:
    """Return the second place of a program, and its list; None without one.

    Only a program of one list has one, without products between lists, and without variables, which
    need the result before. The list loads what the program's list loads, but words in maps from its
    own maps. ``program_bytes`` are those of the core's program memory.
    """
    if len(program.segments) != 1 or program.products or program.states:
        return None
    config, (segment,) = program.config, program.segments
    depth, banks = config.array.depth, config.banks
    maps = -(-program.memory_used // depth)
    maps += -maps % banks
    end = maps + program.arena * program.batch
    data = _moved(segment.run, maps, program)
    first, room, step = end, config.vectors, banks
    if not program.lists_on_chip:
        first, room = -(-program.program_memory_used // depth), program_bytes // depth
        # A burst of a program memory ends at a multiple of its beats.
        step = math.lcm(banks, BURST * config.read_vectors)
    first += (segment.run_first - first) % step
    log = first + len(data) // depth
    log += (program.log - log) % step
    if end > config.vectors or log + program.areas["log"] // depth > room:
        return None
    on_chip = program.lists_on_chip and config.program_words > 0
    return ListPlace(maps, first, log, on_chip), data


def _moved(run, by, program):
    """Return the list at the start of ``run``, for maps that are ``by`` vectors further."""
    config, banks = program.config, program.config.banks

    def moved(address):
        return split(join(address, banks) + by, banks)

    found = []
    for entry in unpack_list(run):
        if isinstance(entry, ListJob):
            entry = replace(
                entry, input=moved(entry.input), output=moved(entry.output),
                add_input=moved(entry.add_input) if entry.add else entry.add_input,
            )
        elif isinstance(entry, ListLoad):
            on_chip = entry.on_chip or not config.program_words
            in_maps = join(entry.source, banks) < program.arena
            if on_chip and in_maps and not entry.fill:  # its words are computed
                entry = replace(entry, source=moved(entry.source))
        elif isinstance(entry, ListEnd):
            entry = replace(entry, result=moved(entry.result))
        found.append(entry.pack())
    return b"".join(found)
