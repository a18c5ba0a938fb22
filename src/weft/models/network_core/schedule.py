"""Jobs of a network and the loads before them: what is resident, and what waits for which job."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from weft.models.network_core.weights import LINES_OF_ADD, LayerWords
from weft.network_core.config import ADD_TABLE_WORDS, ChipConfig

__all__ = ["BufferSchedule", "LayerDemand", "Part", "schedule_buffers", "tile_limits"]

_JOB_LATENCY = 58  # cycles from the last store of a job to the one of the next, less its steps
_LOAD_FACTOR = 1.6  # stores of the job that runs delay reads
_LOAD_LATENCY = 40  # cycles of a load without its reads, about
_SHARES = (1, 2, 3, 4, 6, 8)  # parts of B that one job may use


@dataclass(frozen=True)
class LayerDemand:
    """What the schedule must know of a layer.

    Attributes
    ----------
    name : str
        For messages.
    sizes : LayerWords
    panels, panel_rows : int
    adds : bool
        Whether the layer has ADD.
    """

    name: str
    sizes: LayerWords
    panels: int
    panel_rows: int
    adds: bool

    def cycles(self, tiles: int, chip: ChipConfig) -> int:
        """Return the cycles of a job of some tiles, without its latency."""
        chunk = chip.core.scale_cycles * (2 if self.adds else 1)
        output = self.panel_rows * self.sizes.row_lines * chunk
        return self.panels * tiles * max(self.sizes.tile_words, output)


@dataclass(frozen=True)
class Part:
    """A job: some tiles of a layer, with their place in the buffers.

    Attributes
    ----------
    layer : int
    first, tiles : int
        Tiles of the layer.
    b_word, line : int
        First word of B, and first parameter line.
    words, lines : int
        To load; ``words`` is 0 if the part before has loaded them.
    b_jobs, line_jobs : int
        Jobs that must have ended before the load; of resident weights or parameters 0.
    table_jobs : int or None
        The same for the ADD table; None if the part loads none.
    """

    layer: int
    first: int
    tiles: int
    b_word: int
    line: int
    words: int
    lines: int
    b_jobs: int = 0
    line_jobs: int = 0
    table_jobs: int | None = None


@dataclass(frozen=True)
class BufferSchedule:
    """All jobs of a network in their order.

    Attributes
    ----------
    parts : tuple of Part
    b_resident, lines_resident : bool
        Weights, or parameters, stay in their buffer: one list loads them, before all inferences.
    cycles : int
        Approximate cycles of an inference.
    """

    parts: tuple[Part, ...]
    b_resident: bool
    lines_resident: bool
    cycles: int


def schedule_buffers(
    demands: Sequence[LayerDemand], chip: ChipConfig, *, fewest: bool = False, alone: bool = True,
) -> BufferSchedule:
    """Divide layers into jobs, and place their weights and parameters in the buffers.

    If all words of B fit, they are resident; parameters likewise. They are not if the lists are not
    ``alone``: then others use the buffers between them. The first job of each layer with
    ADD loads the ADD table. Otherwise a job uses at most a share of B, so that weights load while
    jobs before it compute. The shares of `_SHARES` are tried for all layers together, and then for
    each layer alone; jobs of equal sizes are tried, too.

    With ``fewest``, each job uses as much of the buffers as it can: so the list has the fewest
    descriptors, but most weights load while no job computes.

    Raises
    ------
    ValueError
        If a tile has more words than B, or a layer more lines than the parameter buffer.
    """
    words = sum(demand.sizes.words(demand.sizes.tiles) for demand in demands)
    resident = alone and words <= chip.b_words
    if fewest:
        return _schedule(demands, chip, [1] * len(demands), False, resident, alone)
    return min(
        (_best_shares(demands, chip, equal, resident, alone) for equal in (False, True)),
        key=lambda found: found.cycles,
    )


def _best_shares(demands, chip, equal, b_resident, alone):
    """Return the best schedule whose jobs of a layer are full, or ``equal``."""
    def tried(shares):
        return _schedule(demands, chip, shares, equal, b_resident, alone)

    cycles, shares = min(
        (tried(shares).cycles, shares) for shares in ([share] * len(demands) for share in _SHARES)
    )
    for layer, demand in enumerate(demands):
        # Shares with other numbers of tiles; the first one of each.
        tiles = {
            _tiles_of(demand, chip, share, b_resident, True): share for share in reversed(_SHARES)
        }
        for share in tiles.values() if len(tiles) > 1 else ():
            other = [*shares[:layer], share, *shares[layer + 1 :]]
            found = tried(other).cycles
            if found < cycles:
                cycles, shares = found, other
    return tried(shares)


def _first_tiles(sizes, most, equal):
    """Return the first tile of each job of a layer; all jobs but the last have ``most`` tiles.

    Or they are as ``equal`` as possible, and smaller ones are between larger ones: a job and the
    next one are in the buffers at once.
    """
    if not equal:
        return list(range(0, sizes.tiles, most))
    granules, jobs = -(-sizes.tiles // sizes.granule), -(-sizes.tiles // most)
    return [(2 * n * granules + jobs) // (2 * jobs) * sizes.granule for n in range(jobs)]


def _lines(demand, tiles):
    return tiles * demand.sizes.row_lines + demand.adds * LINES_OF_ADD


def _schedule(demands, chip, shares, equal, b_resident, alone):
    """Return the schedule in which each layer's jobs use at most a share of each buffer."""
    each = [
        _tiles_of(demand, chip, share, b_resident, True)
        for demand, share in zip(demands, shares, strict=True)
    ]
    total = sum(
        demand.sizes.tiles * demand.sizes.row_lines
        + demand.adds * LINES_OF_ADD * -(-demand.sizes.tiles // tiles)
        for demand, tiles in zip(demands, each, strict=True)
    )
    lines_resident = alone and total <= chip.lines
    b, lines = _Places(chip.b_words), _Places(chip.lines)
    parts: list[Part] = []
    table_jobs = 0  # until the last one with ADD
    for layer, (demand, share) in enumerate(zip(demands, shares, strict=True)):
        tiles = _tiles_of(demand, chip, share, b_resident, lines_resident)
        firsts = _first_tiles(demand.sizes, tiles, equal)
        for first, end in itertools.pairwise([*firsts, demand.sizes.tiles]):
            count = end - first
            words, line_count = demand.sizes.words(count), _lines(demand, count)
            if not demand.sizes.filled:
                b_word, b_jobs = b.take(words, len(parts))
            elif not first:  # all jobs of the layer share these words
                b_word, b_jobs = b.take(words, len(parts) + len(firsts) - 1)
            else:
                words = 0
            line, line_jobs = lines.take(line_count, len(parts))
            parts.append(Part(
                layer, first, count, b_word, line, words, line_count, b_jobs, line_jobs,
                table_jobs if demand.adds and not first else None,
            ))
        if demand.adds:
            table_jobs = len(parts)
    cycles = _cycles(parts, demands, chip, b_resident, lines_resident)
    return BufferSchedule(tuple(parts), b_resident, lines_resident, cycles)


def tile_limits(
    sizes: LayerWords, chip: ChipConfig, adds: bool = False
) -> tuple[tuple[str, int, int, int], ...]:
    """Return for both buffers: what they have, how much, how much a tile needs, and a least job."""
    least, each = min(sizes.granule, sizes.tiles), 0 if sizes.filled else sizes.tile_words
    words = sizes.tile_words if sizes.filled else each * least
    return (
        ("words of B", chip.b_words, each, words),
        ("parameter lines", chip.lines, sizes.row_lines,
         sizes.row_lines * least + adds * LINES_OF_ADD),
    )


def _tiles_of(demand, chip, share, b_resident, lines_resident):
    """Return the tiles of each job of a layer."""
    sizes, limits = demand.sizes, [demand.sizes.tiles]
    for (name, size, each, least), resident in zip(
        tile_limits(sizes, chip, demand.adds), (b_resident, lines_resident), strict=True
    ):
        if resident:
            continue
        if least > size:
            raise ValueError(
                f"{demand.name} must have at most {size} {name} in"
                f" {'a tile' if sizes.granule == 1 else f'{sizes.granule} tiles'}, not {least}"
            )
        if each:
            room = max(least, size // share) - (least - each * min(sizes.granule, sizes.tiles))
            limits.append(room // each // sizes.granule * sizes.granule)
    return max(min(limits), min(sizes.granule, sizes.tiles))


class _Places:
    """Places parts in a buffer, where the fewest jobs must end before."""

    def __init__(self, size):
        self._size = size
        self._next = 0
        self._used: list[tuple[int, int, int]] = []  # start, end, job

    def take(self, size, job):
        """Return the first word of a part, and the jobs that must have ended before its load."""
        ends = [self._next, 0, *(end for _, end, _ in self._used)]
        starts = [*ends, *(start - size for start, _, _ in self._used), self._size - size]
        waits, _, start = min(
            (self._waits(start, start + size), number, start)
            for number, start in enumerate(starts) if 0 <= start <= self._size - size
        )
        end = start + size
        self._used = [entry for entry in self._used if not _overlap(entry, start, end)]
        self._used.append((start, end, job))
        self._next = end
        return start, waits

    def _waits(self, start, end):
        return max((job + 1 for *_, job in self._overlapped(start, end)), default=0)

    def _overlapped(self, start, end):
        return [entry for entry in self._used if _overlap(entry, start, end)]


def _overlap(entry, start, end):
    return entry[0] < end and start < entry[1]


def _cycles(parts, demands, chip, b_resident, lines_resident):
    """Return the approximate cycles of all jobs, with their waits for loads."""
    loaded, ends = 0, [0]
    for part in parts:
        demand = demands[part.layer]
        loads = []
        if not (b_resident or demand.sizes.filled):
            vectors = part.words * (1 if demand.sizes.diagonal else chip.core.cols)
            loads.append((part.b_jobs, vectors / chip.read_vectors))
        if not lines_resident:
            loads.append((part.line_jobs, part.lines * chip.line_vectors / chip.read_vectors))
        if part.table_jobs is not None:
            word = max(1, chip.add_table_vectors // chip.read_vectors)
            loads.append((part.table_jobs, ADD_TABLE_WORDS * word))
        for jobs, reads in loads:
            loaded = max(loaded, ends[jobs]) + int(_LOAD_FACTOR * reads) + _LOAD_LATENCY
        start = max(ends[-1], loaded)
        ends.append(start + _JOB_LATENCY + demand.cycles(part.tiles, chip))
    return ends[-1]
