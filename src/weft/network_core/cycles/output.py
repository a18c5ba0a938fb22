"""The output section in the cycle model of lists: when chunks are requested and stored."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from weft.network_core.addresses import join
from weft.network_core.cycles.array import TileTimes
from weft.network_core.latencies import (
    CHUNK_ADDRESS,
    CHUNK_START,
    SUM_PARTS,
    add_slot,
    added_chunks,
    added_take,
    array_write,
    lead,
    rescale,
    store_sums,
)

__all__ = ["AddedLayer", "ChunkStore", "PlainLayer"]

FIFO = 2  # from a write of a buffered FIFO to the read


@dataclass(frozen=True)
class ChunkStore:
    """The store of a chunk: its cycle, the bank that it writes, and whether it ends the job."""

    cycle: int
    bank: int
    last: bool


@dataclass(frozen=True)
class _Chunk:
    """A chunk: its tile's announcement, its row in the tile, and where it lies in two maps.

    A chunk is stored in one write, a chunk of sums in up to `SUM_PARTS`.
    """

    announced: int
    row: int
    store_banks: tuple[int, ...]
    added_bank: int
    tile_end: bool
    last: bool


class _MapBanks:
    """The banks of the chunks of a map."""

    def __init__(self, config, job, map_):
        banks = self._banks = config.banks
        first = "add_input" if map_ == "add" else map_
        self._first = join(getattr(job, first), banks)
        self._pixel = join(getattr(job, f"{map_}_pixel_step"), banks)
        row_step = join(getattr(job, f"{map_}_row_step"), banks)
        self._row = row_step + (job.out_width - 1) * self._pixel
        self._width, self._depth = job.out_width, config.array.depth

    def at(self, pixel, byte):
        """The bank of the vector with a byte of a pixel."""
        y, x = divmod(pixel, self._width)
        number = self._first + y * self._row + x * self._pixel + byte // self._depth
        return number % self._banks


def _chunks(config, job, tile, first_pixel, last_tile) -> Iterator[_Chunk]:
    """The chunks of a `TimedTile` whose row 0 is ``first_pixel``, in their order."""
    core = config.array
    stored, added = (_MapBanks(config, job, map_) for map_ in ("output", "add"))
    first = tile.number * core.cols
    end = min(first + core.cols, job.columns)
    size = SUM_PARTS if job.sums else 1  # bytes of a value
    columns = range(first, end, core.lanes)
    for row in range(tile.rows):
        for column in columns:
            tile_end = row == tile.rows - 1 and column == columns[-1]
            pixel = first_pixel + row
            writes = range(size * column, size * min(column + core.lanes, end), core.lanes)
            yield _Chunk(
                tile.announced, row, tuple(stored.at(pixel, byte) for byte in writes),
                added.at(pixel, column), tile_end, tile_end and last_tile,
            )


class _Layer:
    """A running job: its tiles, and the chunks of each.

    ``computed`` is the cycle of the last step of the latest tile.
    """

    def __init__(self, config, job, start):
        self._network_core, self._job = config, job
        self._tiles = TileTimes(config, job, start)
        self._written = array_write(config.array) + 1  # from the announcement to row 0, readable
        self._interval = config.array.scale_cycles
        self._lead = lead(config.array)
        self._stores: deque[ChunkStore] = deque()  # the next ones
        self._pixels = 0  # of the panels before
        self._across = -(-job.columns // config.array.cols)
        self._total = job.out_height * job.out_width
        self.computed = 0

    def ending(self, now: int) -> bool:
        """Whether the next job may start in the next cycle. Call it before `stored`."""
        self._look_ahead(now)
        stores = self._stores
        return bool(stores) and stores[-1].last and stores[-1].cycle == now + self._lead

    def stored(self, now: int) -> ChunkStore | None:
        """The store of this cycle."""
        self._look_ahead(now)
        stores = self._stores
        return stores.popleft() if stores and stores[0].cycle == now else None

    def _look_ahead(self, now):
        """Find the stores of this cycle, and of the ones until a job that ends is `ending`."""

    def _next_chunks(self):
        """The chunks of the next tile."""
        tile = next(self._tiles)
        self.computed = tile.announced
        first, row_end = self._pixels, tile.number == self._across - 1
        if row_end:
            self._pixels += tile.rows
        last = row_end and self._pixels == self._total
        return _chunks(self._network_core, self._job, tile, first, last)


class PlainLayer(_Layer):
    """A job without ADD. Its stores depend on its start only.

    Parameters
    ----------
    config : NetworkCoreConfig
    job : ListJob
    start : int
        The cycle in which the job starts.

    Attributes
    ----------
    read : None
        The bank of the read that it requests.
    """

    read = None

    def __init__(self, config, job, start):
        super().__init__(config, job, start)
        self._later = self._each()

    def _look_ahead(self, now):
        stores = self._stores
        while not stores or (stores[-1].cycle < now + self._lead and not stores[-1].last):
            stores.append(next(self._later))

    def step(self, now: int, accepted: bool, arrived: bool) -> None:
        """A cycle, in which nothing depends on the side port."""

    def finish(self) -> int:
        """Drop all stores before the job is `ending`; returns the cycle in which it is."""
        stores = self._stores
        stores.extend(self._later)
        end = stores[-1].cycle - self._lead
        while stores[0].cycle < end:
            stores.popleft()
        return end

    def _each(self):
        core, slot, request = self._network_core.array, self._interval, 0
        latency, slots = (store_sums(core), SUM_PARTS) if self._job.sums else (rescale(core), 1)
        while True:
            for chunk in self._next_chunks():
                request = max(
                    request + slots * slot, chunk.announced + self._written + chunk.row
                )
                for part, bank in enumerate(chunk.store_banks):
                    last = chunk.last and part == len(chunk.store_banks) - 1
                    yield ChunkStore(request + latency + part * slot, bank, last)
            self._tiles.released.append(request)
            if chunk.last:
                return


class AddedLayer(_Layer):
    """A job with ADD, cycle by cycle: its requests wait for the added map.

    Parameters
    ----------
    chip, job, start
        As of `PlainLayer`.

    Attributes
    ----------
    read : int or None
        The bank of the read that it requests.
    """

    def __init__(self, config, job, start):
        super().__init__(config, job, start)
        core = config.array
        self.read: int | None = None
        self._space = added_chunks(core)
        self._waiting_depth = max(4, self._space)
        self._latency = rescale(core, add=True)
        self._take_delay = added_take(core)
        self._periods = add_slot(core) // 2
        self._generated: deque[_Chunk] = deque()  # of announced tiles
        self._next_tile = start  # first cycle in which the chunks of the next tile are valid
        self._waiting: deque[tuple[int, _Chunk]] = deque()  # with the cycle of their acceptance
        # The stages before ``read``.
        self._addresses: deque[int | None] = deque([None] * (CHUNK_ADDRESS - 1))
        self._level = 0  # chunks between their acceptance and the scalers
        self._arrived = 0  # and not claimed
        self._takes: deque[int] = deque()  # cycles in which the scalers take added values
        self._cycle, self._requested, self._before = 0, False, [False] * self._periods

    def step(self, now: int, accepted: bool, arrived: bool) -> None:
        """A cycle: whether the read is accepted, and whether the data of a read arrive in it."""
        enable = self.read is None or accepted
        # Registers of this cycle.
        space, level = len(self._waiting) < self._waiting_depth, self._level
        request = self._request(now)
        accept = None
        if space and enable and level < self._space:
            accept = self._generate(now)
        if enable:
            self._addresses.append(accept and accept.added_bank)
            self.read = self._addresses.popleft()
        if accept:
            self._waiting.append((now, accept))
        self._level += accept is not None
        if self._takes and self._takes[0] == now:
            self._takes.popleft()
            self._level -= 1
        self._arrived += arrived - request

    def _generate(self, now):
        """The next chunk, if it is valid."""
        while not self._generated and self._tiles.known and self._pixels < self._total:
            self._generated.extend(self._next_chunks())
            announced = self._generated[0].announced
            self._next_tile = max(self._next_tile, announced + CHUNK_START)
        if not self._generated or now < self._next_tile:
            return None
        chunk = self._generated.popleft()
        self._next_tile = now + 1
        return chunk

    def _request(self, now):
        """Request a chunk, if all that it needs is there; advance the issue slots."""
        request = False
        if self._waiting and self._cycle == 0 and self._arrived:
            accepted, chunk = self._waiting[0]
            request = now >= accepted + FIFO and (
                now >= chunk.announced + self._written + chunk.row
            )
        if request:
            self._waiting.popleft()
            self._takes.append(now + self._take_delay)
            self._stores.append(ChunkStore(now + self._latency, chunk.store_banks[0], chunk.last))
            if chunk.tile_end:
                self._tiles.released.append(now)
        period = 2 * self._interval
        end = self._cycle == period - 1
        running = request or self._cycle or self._requested or any(self._before)
        if end:
            before = [self._requested, *self._before][: self._periods]
        if running:
            self._cycle = 0 if end else self._cycle + 1
            self._requested = (self._requested or request) and not end
        if end:
            self._before = before
        return request
