"""Jobs of a network and the loads before them: what is resident, and what waits for which job."""

import functools
import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.models.network_core.demands import BufferSchedule, LayerDemand, Part
from weft.models.network_core.pieces import Piece, job_limits, needed, pieces_of
from weft.models.network_core.residence import CHIP_PACE, LoadPace
from weft.models.network_core.weights import LINES_OF_ADD, BufferPlaces
from weft.models.progress import Progress
from weft.network_core.config import ADD_TABLE_WORDS, NetworkCoreConfig, has_single_port

__all__ = ["schedule_buffers"]

_JOB_LATENCY = 58  # cycles from the last store of a job to the one of the next, less its steps
_SHARES = (1, 2, 3, 4, 6, 8)  # parts of B that one job may use
_RING = 8  # a part of the parameter lines is for layers whose lines are not resident: one of these
_SEARCH = 1 / 3  # of the time of a compilation, about; the cycle model takes the rest


def schedule_buffers(
    demands: Sequence[LayerDemand], config: NetworkCoreConfig, *, fewest: bool = False,
    alone: bool = True, progress: Progress | None = None, pace: LoadPace = CHIP_PACE,
    kept: Sequence[float] = (),
) -> BufferSchedule:
    """Divide layers into jobs, and place their weights and parameters in the buffers.

    If all words of B fit, they are resident, but for those that a layer computes; parameters
    likewise. They are not if the lists are not ``alone``: then others use the buffers between them.
    If parameters come from a program memory, and not all fit, those of some layers are resident:
    of layers with few words of B in a tile, whose jobs have the most lines.
    The first job of a layer with ADD loads the ADD table, if the layer needs another one. Otherwise
    a job uses at most a share of B, so that weights load while jobs before it compute. The shares
    of `_SHARES` are tried for all layers together, and then for each layer alone; jobs of equal
    sizes are tried, too. A layer of which not even one tile fits a buffer has jobs of one tile, or
    of pieces of a tile.

    With ``fewest``, each job uses as much of the buffers as it can: so the list has the fewest
    descriptors, but most weights load while no job computes. A core with a microprogram has them
    always: it executes loads and jobs one at a time, so no load is hidden. ``progress`` is told of
    each layer whose shares have been tried: the search takes long. ``pace`` is that of the loads;
    ``kept`` is the part of the words of B of each layer that loads at CHIP_PACE.

    Raises
    ------
    ValueError
        If the smallest job of a layer does not fit a buffer, or not all of it a core with
        ``resident``.
    """
    words = sum(demand.sizes.words(demand.sizes.tiles) for demand in demands)
    if config.resident:
        _check_resident(demands, words, config)
    resident = alone and words <= config.b_words
    if fewest or has_single_port(config.array):
        search = _Search(demands, config, False, resident, alone, pace)
        return search.schedule([1] * len(demands))
    steps = itertools.count(1)

    def advance():
        if progress:
            progress(next(steps))

    if progress:
        progress.begin(2 * len(demands), _SEARCH)
    return min(
        (
            _best_shares(
                _Search(demands, config, equal, resident, alone, pace, kept), len(demands), advance
            )
            for equal in (False, True)
        ),
        key=lambda found: found.cycles,
    )


def _check_resident(demands, words, config):
    """Raise ValueError if a core without loads has too few words of B, or parameter lines."""
    lines = sum(_lines(demand, demand.sizes.tiles) for demand in demands)
    for what, name, least in (
        ("words of B", "b_words", words), ("parameter lines", "lines", lines),
    ):
        size = getattr(config, name)
        if least > size:
            raise ValueError(
                f"its layers need {least:,} {what}, and a core with resident has no loads, and"
                f" {size:,}: {needed(name, least)}"
            )


def _best_shares(search, layers, advance):
    """Return the best schedule of a search."""
    best = min(
        (search.tried([share] * layers) for share in _SHARES),
        key=lambda found: (found.cycles, found.shares),
    )
    for layer in range(layers):
        # Shares with other numbers of tiles; the first one of each.
        tiles = {search.tiles(layer, share, None): share for share in reversed(_SHARES)}
        for share in tiles.values() if len(tiles) > 1 else ():
            other = [*best.shares[:layer], share, *best.shares[layer + 1 :]]
            best = search.better(best, other, layer) or best
        advance()
    return search.schedule(best.shares)


def _first_tiles(sizes, most, equal):
    """Return the first tile of each job of a layer; all jobs but the last have ``most`` tiles.

    Or they are as ``equal`` as possible, and smaller ones are between larger ones: a job and the
    next one are in the buffers at once.
    """
    if not equal:
        return list(range(0, sizes.tiles, most))
    granules, jobs = -(-sizes.tiles // sizes.granule), -(-sizes.tiles // most)
    return [(2 * n * granules + jobs) // (2 * jobs) * sizes.granule for n in range(jobs)]


class _JobSize(NamedTuple):
    """The size of the jobs of a layer: whole tiles; or one tile each, in pieces of ``words``."""

    tiles: int
    words: int | None = None


@dataclass(frozen=True)
class _Job:
    """A job of a layer, wherever its words and lines are.

    ``b_uses`` and ``line_uses`` are the jobs that use the words and the lines that it loads, with
    this one. ``cycles`` are those of the job, ``b_load`` and ``line_load`` those of its loads; 0
    without one.
    """

    first: int
    tiles: int
    piece: Piece
    words: int
    b_uses: int
    lines: int
    line_uses: int
    cycles: int
    b_load: int
    line_load: int


@dataclass
class _State:
    """The buffers and the time after some jobs.

    Attributes
    ----------
    b, lines : BufferPlaces
    ends : list of int
        When each job ends; the first one is the start.
    loaded : int
        When the last load ends.
    line_starts : list of int
        The first parameter line of each layer whose lines are resident; 0 for others.
    fixed : int
        Resident parameter lines.
    table_jobs : int
        Jobs until the last one with ADD.
    """

    b: BufferPlaces
    lines: BufferPlaces
    ends: list[int] = field(default_factory=lambda: [0])
    loaded: int = 0
    line_starts: list[int] = field(default_factory=list)
    fixed: int = 0
    table_jobs: int = 0

    def copied(self) -> "_State":
        """Return a state that goes on from this one."""
        return _State(
            self.b.copied(), self.lines.copied(), self.ends.copy(), self.loaded,
            self.line_starts.copy(), self.fixed, self.table_jobs,
        )

    def follows(self, other: "_State") -> bool:
        """Whether all that later jobs wait for is where it is in ``other``, and ends no earlier.

        So equal jobs end no earlier from here on than they do after ``other``.
        """
        return (
            self.loaded >= other.loaded and self.ends[-1] >= other.ends[-1]
            and self.ends[self.table_jobs] >= other.ends[other.table_jobs]
            and self.b.follow(other.b, self.ends, other.ends)
            and self.lines.follow(other.lines, self.ends, other.ends)
        )


@dataclass(frozen=True)
class _Tried:
    """Shares, the states before each layer, and the cycles of all jobs, with their waits.

    ``rest`` has for each layer the cycles until the end, at least: from the end of the last job
    before the layer, and from the end of the last load before it.
    """

    shares: list[int]
    resident: frozenset[int]
    states: tuple[_State, ...]
    rest: tuple[tuple[int, int], ...]
    cycles: int


class _Waits:
    """The loads into a buffer, from the last one to the first one, and the jobs they wait for.

    A load waits for a job if the words of both, and of all jobs between them, are more than the
    buffer has. Where the words lie can only make it wait for a later job.
    """

    def __init__(self, size: int):
        self._size, self._sum = size, 0
        self._words: deque[int] = deque()
        self._cycles: deque[int] = deque()

    def after(self, words: int) -> int:
        """Return the cycles from the end of the job before, at least; 0 if no load waits for it.

        The job uses ``words``.
        """
        self._sum += words
        self._words.append(words)
        most = 0
        while self._sum > self._size:
            self._sum -= self._words.popleft()
            most = max(most, self._cycles.popleft())
        return most

    def load(self, cycles: int) -> None:
        """Put the load of this job before the others: the cycles from its start, at least."""
        self._cycles.append(cycles)


class _Search:
    """Schedules of a network with different shares of the buffers.

    Schedules that differ from a layer on share the states before it.
    """

    def __init__(self, demands, config, equal, b_resident, alone, pace=CHIP_PACE, kept=()):
        self._demands, self._network_core, self._alone = demands, config, alone
        self._pace, self._load_cycles = pace, pace.cycles  # of a number of reads
        self._kept = kept or [0] * len(demands)
        self._ring = config.lines // _RING
        self._by_words = sorted(range(len(demands)), key=lambda n: demands[n].sizes.tile_words)
        self._equal, self._b_resident = equal, b_resident
        self.tiles = functools.cache(self._tiles)
        self._jobs = functools.cache(self._jobs_of)
        word = max(1, config.add_table_vectors // config.read_vectors)
        self._table_load = self._load_cycles(ADD_TABLE_WORDS * word)

    def schedule(self, shares) -> BufferSchedule:
        """Return the schedule in which each layer's jobs use at most a share of each buffer."""
        resident = self._resident(shares)
        state, parts = self._start(resident), []
        for layer, share in enumerate(shares):
            tiles = self.tiles(layer, share, self._line_room(layer, resident))
            self._advance(state, layer, tiles, resident, parts)
        return BufferSchedule(tuple(parts), self._b_resident, resident, state.ends[-1])

    def tried(self, shares) -> _Tried:
        """Return the cycles of some shares."""
        found = self._from(0, [], shares, self._resident(shares), None)
        assert found is not None  # nothing to be better than
        return found

    def better(self, best: _Tried, shares, layer) -> _Tried | None:
        """Return the cycles of shares that differ at one layer; None if they are not fewer."""
        resident = self._resident(shares)
        if resident != best.resident:
            return self._from(0, [], shares, resident, best)
        return self._from(layer, list(best.states[:layer]), shares, resident, best)

    def _from(self, first, states, shares, resident, best):
        """The cycles from a layer on, after ``states``; None as soon as ``best`` is not worse."""
        layers = range(len(self._demands))
        tiles = [
            self.tiles(layer, shares[layer], self._line_room(layer, resident)) for layer in layers
        ]
        state = best.states[first].copied() if first else self._start(resident)
        for layer in layers[first:]:
            if best and resident == best.resident and layer > first and (
                self._least(state, best.rest[layer]) >= best.cycles
                or state.follows(best.states[layer])
            ):
                return None
            states.append(state.copied())
            self._advance(state, layer, tiles[layer], resident)
        cycles = state.ends[-1]
        if best and cycles >= best.cycles:
            return None
        return _Tried(shares, resident, tuple(states), self._rest(tiles, resident), cycles)

    def _rest(self, tiles, resident):
        """Return `_Tried.rest`."""
        end = load = 0
        b, lines = _Waits(self._network_core.b_words), _Waits(self._ring_lines(resident))
        rest = []
        for layer in reversed(range(len(self._demands))):
            jobs = self._jobs(layer, tiles[layer], layer in resident)
            for number, job in reversed(list(enumerate(jobs))):
                own = 0 if layer in resident else job.lines
                end = job.cycles + max(end, b.after(job.words), lines.after(own))
                load = max(load, end)
                if self._demands[layer].loads_table and not number:
                    load += self._table_load
                load += job.line_load
                lines.load(load if job.line_load else 0)
                load += job.b_load
                b.load(load if job.b_load else 0)
            rest.append((end, load))
        return tuple(reversed(rest))

    def _start(self, resident):
        return _State(
            BufferPlaces(self._network_core.b_words), BufferPlaces(self._ring_lines(resident))
        )

    def _ring_lines(self, resident):
        """Return the parameter lines of layers that are not resident, if there are any."""
        return self._ring if resident else self._network_core.lines

    def _line_room(self, layer, resident):
        """Return the parameter lines that the jobs of a layer share; None for a resident layer."""
        return None if layer in resident else self._ring_lines(resident)

    def _resident(self, shares):
        """Return the layers whose parameter lines are resident: all, if they fit."""
        counts = []
        for layer, (demand, share) in enumerate(zip(self._demands, shares, strict=True)):
            jobs = -(-demand.sizes.tiles // self.tiles(layer, share, None).tiles)
            lines = demand.sizes.tiles * demand.sizes.row_lines
            lines += demand.adds * LINES_OF_ADD * jobs
            counts.append(lines if demand.lines_of is None else 0)
        if not self._alone:
            return frozenset()
        if sum(counts) <= self._network_core.lines:
            return frozenset(range(len(counts)))
        return self._some_resident(counts)

    def _some_resident(self, counts):
        """Return the layers whose lines are resident if not all fit; ``counts`` are the lines."""
        if self._pace is CHIP_PACE:
            return frozenset()
        found, room = set(), self._network_core.lines - self._ring
        for layer in self._by_words:
            source = self._demands[layer].lines_of
            if counts[layer] <= room and (source is None or source in found):
                found.add(layer)
                room -= counts[layer]
            elif _least_lines(self._demands[layer]) > self._ring:
                return frozenset()
        return frozenset(found)

    def _tiles(self, layer, share, line_room):
        demand = self._demands[layer]
        return _tiles_of(demand, self._network_core, share, self._b_resident, line_room)

    def _jobs_of(self, layer, size, lines_resident):
        """Return the jobs of a layer, each of a `_JobSize`."""
        demand, config = self._demands[layer], self._network_core
        sizes, found = demand.sizes, []
        if size.words is None:
            firsts = _first_tiles(sizes, size.tiles, self._equal)
            pieces = (demand.shape.whole(sizes),)
        else:
            firsts = range(sizes.tiles)
            pieces = pieces_of(demand.shape, sizes, demand.panels, size.words)
        most = max(piece.taps.words for piece in pieces)
        for first, end in itertools.pairwise([*firsts, sizes.tiles]):
            count, lines = end - first, _lines(demand, end - first)
            for number, piece in enumerate(pieces):
                words, b_uses = 0 if demand.unit else count * piece.taps.words, 1
                if sizes.filled and not demand.unit:  # all jobs of the layer share these words
                    words, b_uses = 0 if found else most, len(firsts) * len(pieces)
                b_load = line_load = 0
                if demand.computed or not (self._b_resident or sizes.filled):
                    vectors = sizes.vectors(words, config)
                    reads, kept = vectors / config.read_vectors, self._kept[layer]
                    b_load = self._load_cycles(reads)
                    if kept:
                        b_load += int(kept * (CHIP_PACE.cycles(reads) - b_load))
                own = 0 if number else lines
                if own and not lines_resident:
                    line_load = self._load_cycles(own * config.line_vectors / config.read_vectors)
                cycles = _JOB_LATENCY + (
                    demand.cycles(count, config) if len(pieces) == 1
                    else demand.piece_cycles(piece, config)
                )
                found.append(_Job(
                    first, count, piece, words, b_uses, own, len(pieces), cycles, b_load, line_load
                ))
        return tuple(found)

    def _least(self, state, rest):
        """Return cycles that all jobs take at least, from a state and `_Tried.rest`."""
        return max(state.ends[-1] + rest[0], state.loaded + rest[1])

    def _advance(self, state, layer, tiles, resident, parts=None):
        """Append the jobs of a layer to a state, and to ``parts``."""
        demand, ends = self._demands[layer], state.ends
        lines_resident = layer in resident
        state.line_starts.append(state.fixed)
        first_line = self._network_core.lines - self._ring_lines(resident)
        jobs = self._jobs(layer, tiles, lines_resident)
        b_word = line = 0  # a job of a unit has none
        before = len(ends) - 1
        for number, job in enumerate(jobs):
            done, b_jobs, line_jobs, loaded_lines = len(ends) - 1, 0, 0, job.lines
            if job.words:
                b_word, b_jobs = state.b.take(job.words, done + job.b_uses - 1)
                if demand.computed:
                    b_jobs = max(b_jobs, before)
            if job.lines and lines_resident:
                line, loaded_lines = self._resident_line(state, demand, job)
            elif job.lines:
                line, line_jobs = state.lines.take(job.lines, done + job.line_uses - 1)
                line += first_line
            table_jobs = state.table_jobs if demand.loads_table and not number else None
            if job.b_load:
                state.loaded = max(state.loaded, ends[b_jobs]) + job.b_load
            if job.line_load:
                state.loaded = max(state.loaded, ends[line_jobs]) + job.line_load
            if table_jobs is not None:
                state.loaded = max(state.loaded, ends[table_jobs]) + self._table_load
            ends.append(max(ends[-1], state.loaded) + job.cycles)
            if parts is not None:
                parts.append(Part(
                    layer, job.first, job.tiles, job.piece, b_word, line, job.words, loaded_lines,
                    b_jobs, line_jobs, table_jobs, job.cycles,
                ))
        if demand.adds or demand.unit:
            state.table_jobs = len(ends) - 1

    def _resident_line(self, state, demand, job):
        """Return the first of a job's parameter lines that are resident, and those to load."""
        if demand.lines_of is not None:
            return state.line_starts[demand.lines_of] + job.first * demand.sizes.row_lines, 0
        state.fixed += job.lines
        return state.fixed - job.lines, job.lines


def _lines(demand, tiles):
    return tiles * demand.sizes.row_lines + demand.adds * LINES_OF_ADD


def _least_lines(demand):
    """Return the parameter lines of the smallest job of whole tiles."""
    return _lines(demand, min(demand.sizes.granule, demand.sizes.tiles))


def _tiles_of(demand, config, share, b_resident, line_room):
    """Return the `_JobSize` of a layer; ``line_room`` is None if its parameters are resident."""
    sizes, adds = demand.sizes, demand.adds * LINES_OF_ADD
    least, limits = min(sizes.granule, sizes.tiles), [sizes.tiles]
    in_pieces = False
    for (name, of_config, size, smallest), each, extra, resident in zip(
        job_limits(sizes, config, demand.adds), (sizes.tile_words, sizes.row_lines), (0, adds),
        (b_resident, line_room is None), strict=True,
    ):
        if resident:
            continue
        if of_config == "lines":
            size = line_room
        if smallest > size:
            raise ValueError(
                f"a job of {demand.name} needs {smallest:,} {name}, and the buffer has {size:,}:"
                f" {needed(of_config, smallest)}"
            )
        shared = name == "words of B" and sizes.filled
        whole = each if shared else each * least + extra
        in_pieces |= whole > size
        if each and not shared:
            room = max(whole, size // share) - extra
            limits.append(room // each // sizes.granule * sizes.granule)
    if in_pieces:
        words = sizes.tile_words if b_resident else max(sizes.least_words, config.b_words // share)
        return _JobSize(1, words)
    return _JobSize(max(min(limits), least))
