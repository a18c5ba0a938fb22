"""The output section in the cycle model of lists: when the chunks of a job are stored."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from weft.network_core.cycles.memory import SidePortTimes
from weft.network_core.cycles.tiles import MapPlaces, StoredJob, TileTimes
from weft.network_core.latencies import (
    CHUNK_ADDRESS,
    CHUNK_START,
    SUM_PARTS,
    add_slot,
    added_chunks,
    added_take,
    array_write,
    is_spread,
    lead,
    map_read,
    rescale,
    rescale_total,
    store_sums,
    waiting_chunks,
)

__all__ = ["AddedLayer", "ChunkStore", "PartialLayer", "PlainLayer"]

FIFO = 2  # from a write of a buffered FIFO to the read
HELD = 2  # from the start of the output to the first chunk of a tile that waits for it


class ChunkStore(NamedTuple):
    """The store of a chunk: its cycle, the bank that it writes, and whether it ends the job.

    A partial job ends without a store: ``bank`` is None. A job with ``two_rows`` may store a chunk
    of the next pixel in the same cycle, to the bank ``second``.
    """

    cycle: int
    bank: int | None
    last: bool
    second: int | None = None


class _Layer:
    """A running job: its tiles, and the chunks of each.

    ``computed`` is the cycle of the last step of the latest tile.
    """

    def __init__(self, config, job, start, before):
        self._network_core, self._job = config, job
        self._tiles = TileTimes(config, job, start, before)
        self._output = MapPlaces(config, job, "output")
        self._written = array_write(config) + 1  # from the announcement to row 0, readable
        self._interval = config.array.scale_cycles
        self._lead = lead(config)
        self._map_read = map_read(config)
        self._pixels = 0  # of the panels before
        self._across = -(-job.columns // config.array.cols)
        self._total = job.out_height * job.out_width
        self._panel_ends: list[int] = []  # the last store of each panel
        self.computed = 0

    @property
    def stored_job(self) -> StoredJob | None:
        """The record of the job when it has ended; None if it stores nothing."""
        if not self._panel_ends:
            return None
        return StoredJob(
            self._network_core, self._job, self.computed, self._tiles.released, self._panel_ends
        )

    def _next_tile(self):
        """The next `TimedTile`, its first pixel, its columns, and whether it is the last one."""
        tile, array = next(self._tiles), self._network_core.array
        self.computed = tile.announced
        pixel, row_end = self._pixels, tile.number == self._across - 1
        if row_end:
            self._pixels += tile.rows
        first = tile.number * array.cols
        columns = range(first, min(first + array.cols, self._job.columns))
        return tile, pixel, columns, row_end and self._pixels == self._total


class PartialLayer(_Layer):
    """A partial job: it ends when its only tile has read A and B.

    Parameters
    ----------
    config, job, start
        As of `PlainLayer`.

    Attributes
    ----------
    read : None
        The bank of the read that it requests.
    """

    read = None

    def __init__(self, config, job, start):
        super().__init__(config, job, start, None)
        tile, *_ = self._next_tile()
        self._end = tile.announced + self._map_read

    def steps_end(self, now: int) -> bool:
        """Whether the last step has read A and B, in this cycle or before."""
        return now >= self._end

    def ending(self, now: int) -> bool:
        """Whether the next job may start in the next cycle. Call it before `stored`."""
        return now == self._end

    def stored(self, now: int) -> ChunkStore | None:
        """The end of the job, if it is in this cycle."""
        end = self._end + self._lead
        return ChunkStore(now, None, True) if now == end else None

    def step(self, now: int, accepted: bool, arrived: bool) -> None:
        """A cycle, in which nothing depends on the side port."""

    def finish(self, now: int, port: SidePortTimes, steps: bool = False) -> int:
        """Returns the cycle in which the job is `ending`."""
        return max(now, self._end)


class _TileStores(NamedTuple):
    """The stores of a tile: one chunk each ``period`` cycles, row by row, until ``end``."""

    first: int
    end: int
    period: int
    pixel: int
    columns: range
    last: bool


class PlainLayer(_Layer):
    """A job without ADD. Its stores depend on its start only.

    A row has at least one chunk, and is written one cycle after the row before. So only the first
    chunk of a tile may wait for its row, and the others follow it in equal distances.

    Parameters
    ----------
    config : NetworkCoreConfig
    job : ListJob
    start : int
        The cycle in which the job starts.
    before : StoredJob, optional
        The job before, if its results were stored after the start.
    opened : int, optional
        The cycle in which the output starts, if tiles may be computed before.

    Attributes
    ----------
    read : None
        The bank of the read that it requests.
    """

    read = None

    def __init__(self, config, job, start, before=None, opened=None):
        super().__init__(config, job, start, before)
        array = config.array
        self._at_once = 2 if job.two_rows else 1  # rows of a tile
        self._size = SUM_PARTS if job.sums else 1  # bytes of a value, and writes of a chunk at most
        self._latency = store_sums(array) if job.sums else rescale(config)
        # The latest request, or one before the first one that the start of the output allows.
        self._request = 0 if opened is None else opened + HELD + FIFO - self._size * self._interval
        self._stores: deque[_TileStores] = deque()  # the tiles from this cycle on

    def ending(self, now: int) -> bool:
        """Whether the next job may start in the next cycle. Call it before `stored`."""
        stores = self._stores
        while not stores or (stores[-1].end < now + self._lead and not stores[-1].last):
            stores.append(self._tile())
        return stores[-1].last and stores[-1].end == now + self._lead

    def steps_end(self, now: int) -> bool:
        """Whether the last step has read A and B, in this cycle or before."""
        while self._pixels < self._total and self.computed + self._map_read <= now:
            self._stores.append(self._tile())
        return self._pixels == self._total and self.computed + self._map_read <= now

    def stored(self, now: int) -> ChunkStore | None:
        """The store of this cycle."""
        stores = self._stores
        while stores[0].end < now and len(stores) > 1:
            stores.popleft()
        tile = stores[0]
        if not tile.first <= now <= tile.end:
            return None
        chunk, cycle = divmod(now - tile.first, tile.period)
        part, between = divmod(cycle, self._interval)
        if between:
            return None
        columns = tile.columns
        lanes = self._network_core.array.lanes
        row, number = divmod(chunk, -(-len(columns) // lanes))
        column = columns[number * lanes]
        writes = range(self._size * column, self._size * min(column + lanes, columns.stop), lanes)
        if part >= len(writes):
            return None
        row *= self._at_once
        bank = self._output.bank(tile.pixel + row, writes[part])
        second = None
        if self._at_once > 1:
            second = self._output.bank(tile.pixel + row + 1, writes[part])
        return ChunkStore(now, bank, tile.last and now == tile.end, second)

    def step(self, now: int, accepted: bool, arrived: bool) -> None:
        """A cycle, in which nothing depends on the side port."""

    def finish(self, now: int, port: SidePortTimes, steps: bool = False) -> int:
        """Drop all stores before the job is `ending`, or has its `steps_end` with ``steps``.

        Returns the cycle in which it is.
        """
        stores = self._stores
        while not (stores and stores[-1].last):
            stores.append(self._tile())
            if not steps and len(stores) > 1 + self._lead:
                stores.popleft()  # each tile has a store, in a cycle of its own
        return max(now, self.computed + self._map_read if steps else stores[-1].end - self._lead)

    def _tile(self):
        tile, pixel, columns, last = self._next_tile()
        lanes, period = self._network_core.array.lanes, self._size * self._interval
        across = -(-len(columns) // lanes)
        first = max(self._request + period, tile.announced + self._written)
        chunks = tile.rows // self._at_once * across
        self._request = first + (chunks - 1) * period
        self._tiles.released.append(self._request)
        width = len(columns) - (across - 1) * lanes  # of the last chunk
        end = self._request + (-(-self._size * width // lanes) - 1) * self._interval
        if tile.number == self._across - 1:
            self._panel_ends.append(end + self._latency)
        return _TileStores(
            first + self._latency, end + self._latency, period, pixel, columns, last
        )


class _Chunk(NamedTuple):
    """A chunk: its tile's announcement, its row in the tile, and where it lies in two maps."""

    announced: int
    row: int
    store_bank: int
    added_bank: int
    tile_end: bool
    panel_end: bool
    last: bool


class AddedLayer(_Layer):
    """A job with ADD, cycle by cycle: its requests wait for the added map.

    Parameters
    ----------
    config, job, start, before, opened
        As of `PlainLayer`.

    Attributes
    ----------
    read : int or None
        The bank of the read that it requests.
    """

    def __init__(self, config, job, start, before=None, opened=None):
        super().__init__(config, job, start, before)
        self.read: int | None = None
        self._drained = config.drained_rows
        self._space = added_chunks(config)
        self._waiting_depth = waiting_chunks(config)
        self._latency = rescale_total(config)
        self._take_delay = added_take(config)
        self._periods = add_slot(config) // 2
        self._added = MapPlaces(config, job, "add")
        self._ahead: deque[tuple] = deque()  # tiles whose times are known
        self._generated: deque[_Chunk] = deque()  # of announced tiles
        self._stores: deque[ChunkStore] = deque()  # the next ones
        # The first cycle in which the chunks of the next tile are valid.
        self._valid = start if opened is None else opened + HELD
        self._waiting: deque[tuple[int, _Chunk]] = deque()  # with the cycle of their acceptance
        # A register stage before the addresses, of two chunks; whether it takes one.
        self._registered, self._skid, self._ready = is_spread(config), deque(), True
        # The stages before ``read``.
        self._addresses: deque[int | None] = deque([None] * (CHUNK_ADDRESS - 1))
        self._level = 0  # chunks between their acceptance and the scalers
        self._arrived = 0  # and not claimed
        self._takes: deque[int] = deque()  # cycles in which the scalers take added values
        self._cycle, self._requested, self._before = 0, False, [False] * self._periods

    def ending(self, now: int) -> bool:
        """Whether the next job may start in the next cycle. Call it before `stored`."""
        stores = self._stores
        return bool(stores) and stores[-1].last and stores[-1].cycle == now + self._lead

    def steps_end(self, now: int) -> bool:
        """Whether the last step has read A and B, in this cycle or before."""
        self._look_ahead()
        return self._pixels == self._total and self.computed + self._map_read <= now

    def _look_ahead(self):
        """Take all tiles whose times are known."""
        while self._pixels < self._total and self._tiles.known:
            self._ahead.append(self._next_tile())

    def stored(self, now: int) -> ChunkStore | None:
        """The store of this cycle."""
        stores = self._stores
        return stores.popleft() if stores and stores[0].cycle == now else None

    def finish(self, now: int, port: SidePortTimes, steps: bool = False) -> int:
        """Follow the job alone until it is `ending`, or has its `steps_end` with ``steps``.

        Returns the cycle in which it is.
        """
        stores = self._stores
        while not (stores and stores[-1].last and stores[-1].cycle <= now + self._lead):
            if steps and self.steps_end(now):
                break
            store = self.stored(now)
            arrived = port.arrival(now)
            accepted = port.step(now, (self.read,), store and store.bank)
            self.step(now, accepted is not None, arrived is not None)
            now += 1
        return now

    def step(self, now: int, accepted: bool, arrived: bool) -> None:
        """A cycle: whether the read is accepted, and whether the data of a read arrive in it."""
        enable = self.read is None or accepted
        # Registers of this cycle.
        space, level = len(self._waiting) < self._waiting_depth, self._level
        request = self._request(now)
        takes = enable and level < self._space
        chunk = None
        if space and (self._ready if self._registered else takes):
            chunk = self._generate(now)
        if chunk:
            self._waiting.append((now, chunk))
        accept = self._registered_chunk(chunk, takes) if self._registered else chunk
        if enable:
            self._addresses.append(accept and accept.added_bank)
            self.read = self._addresses.popleft()
        self._level += accept is not None
        if self._takes and self._takes[0] == now:
            self._takes.popleft()
            self._level -= 1
        self._arrived += arrived - request

    def _registered_chunk(self, chunk, takes):
        """Pass a chunk, or None, to the register stage; the chunk that leaves it, if any."""
        skid = self._skid
        leaves = skid.popleft() if takes and skid else None
        if chunk:
            skid.append(chunk)
        self._ready = len(skid) < 2
        return leaves

    def _generate(self, now):
        """The next chunk, if it is valid."""
        if not self._generated:
            self._look_ahead()
            if self._ahead:
                self._generated.extend(self._chunks(*self._ahead.popleft()))
                announced = self._generated[0].announced
                self._valid = max(self._valid, announced + CHUNK_START)
        if not self._generated or now < self._valid:
            return None
        chunk = self._generated.popleft()
        self._valid = now + 1
        return chunk

    def _chunks(self, tile, pixel, columns, last) -> Iterator[_Chunk]:
        """The chunks of a tile, in their order."""
        columns = columns[:: self._network_core.array.lanes]
        for row in range(tile.rows):
            for column in columns:
                tile_end = row == tile.rows - 1 and column == columns[-1]
                yield _Chunk(
                    tile.announced, row, self._output.bank(pixel + row, column),
                    self._added.bank(pixel + row, column), tile_end,
                    tile_end and tile.number == self._across - 1, tile_end and last,
                )

    def _request(self, now):
        """Request a chunk, if all that it needs is there; advance the issue slots."""
        request = False
        if self._waiting and self._cycle == 0 and self._arrived:
            accepted, chunk = self._waiting[0]
            request = now >= accepted + FIFO and (
                now >= chunk.announced + self._written + chunk.row // self._drained
            )
        if request:
            self._waiting.popleft()
            self._takes.append(now + self._take_delay)
            self._stores.append(ChunkStore(now + self._latency, chunk.store_bank, chunk.last))
            if chunk.panel_end:
                self._panel_ends.append(now + self._latency)
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
