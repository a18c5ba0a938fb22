"""The command stream of products of one shape, built once: only tags and A change from run to run.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weft.commands import TABLE_ENTRIES, Job, JobFlag, Load, Region, result
from weft.config import Config
from weft.geometry import memories
from weft.host.packing import (
    PanelPacker,
    pack_entries,
    pack_table,
    panel_slice,
    result_bytes,
    unpack_jobs,
)
from weft.host.planner import Planner
from weft.host.transport import Command, Commands

__all__ = ["MAX_JOBS", "Packed", "ProductStream", "Setup", "resident_loads", "table_load"]

# Maximum jobs sent at once: far fewer than there are tags, so a tag tells old results from new.
MAX_JOBS = 1 << 14
_TAG = 2  # offset of the tag in a header


@dataclass(frozen=True)
class Packed:
    """Operands of several products as the command stream carries them, one after another.

    Attributes
    ----------
    b : bytes
        Packed panels of B, as from `weft.host.packing.pack`; empty if B is computed, or loaded by
        others.
    parameters : bytes
        Packed parameters, as from `weft.host.packing.pack_entries`; empty if the flags need none,
        or they are computed.
    start : bytes
        Packed C; empty without a C.
    products : int
        Number of products. If a stream has more, it begins again.
    """

    b: bytes = b""
    parameters: bytes = b""
    start: bytes = b""
    products: int = 1

    def part(self, region: Region, index: int) -> memoryview:
        """Return the bytes of product ``index``."""
        data = {Region.B: self.b, Region.PARAMETERS: self.parameters, Region.C: self.start}[region]
        size = len(data) // self.products
        index %= self.products
        return memoryview(data)[index * size : (index + 1) * size]


class Setup:
    """Loads that streams depend on, such as resident weights.

    Parameters
    ----------
    loads : sequence of (Load, bytes)

    Attributes
    ----------
    loads : sequence of (Load, bytes)
    epoch : int
        `weft.host.core_session.CoreSession.epoch` when they were sent; -1 before.
    """

    def __init__(self, loads: Sequence[tuple[Load, bytes]]):
        self.loads = loads
        self.epoch = -1


class ProductStream:
    """The commands of ``count`` products A[m, k] x B[k, n], and the layout of their results.

    `fill` gives the bytes to send, and `read` converts the result words. A stream needs no core:
    the cycle model takes its `commands`.

    Parameters
    ----------
    config : Config
    shape : (int, int, int, int)
        count, m, k and n.
    flags : JobFlag
        Flags of jobs with results.
    packed : Packed
    dtype : numpy.dtype
        Type of the results.
    b_pages : sequence of int, optional
        First page of the B of each product, if B is in the buffer already.
    has_parameters : bool
        Whether the parameters of this B are in the core already, too.
    free : pair of (first page, pages), optional
        Pages of the buffers of A and of B that the stream may use; by default all.
    one_row : bool
        Whether C is one row for all rows of the sums.
    before, after : sequence of (Load, bytes)
        Other loads, before and after the products.
    computed_b : bool
        Whether B and its parameters change from run to run, too, like A.

    Attributes
    ----------
    commands : list of Job and Load
        The headers, in the order of the stream.
    jobs : int
    bytes_in, bytes_out : int
        Bytes on the command stream and on the result stream.
    nbytes : int
        Bytes of memory that the stream takes.
    ends_with_loads : bool
        Whether loads follow the last job.
    rows : array [count, m, k] of unsigned integers
        Bits of A: write them before `fill`.
    columns : array [count, n, k] of unsigned integers, or None
        Bits of a computed B, likewise. `write_parameters` takes its parameters.
    """

    def __init__(
        self, config: Config, shape: tuple[int, int, int, int], flags: JobFlag, packed: Packed,
        dtype, *, b_pages: Sequence[int] | None = None, has_parameters: bool = False, free=None,
        one_row: bool = True, before: Sequence[tuple[Load, bytes]] = (),
        after: Sequence[tuple[Load, bytes]] = (), computed_b: bool = False,
    ):
        self._config = config
        self._shape = shape
        self._packed = packed
        self._one_row = one_row
        self._memories = memories(config)
        self.ends_with_loads = bool(after)
        self.dtype = np.dtype(dtype)
        count, m, k, n = shape
        self._packers = {Region.A: PanelPacker(self._memories[Region.A], count, m, k)}
        self._computed = {Region.A}
        self.columns = None
        if computed_b:
            self._packers[Region.B] = PanelPacker(self._memories[Region.B], count, n, k)
            self._computed |= {Region.B} if packed.parameters else {Region.B, Region.PARAMETERS}
            self.columns = self._packers[Region.B].rows
        self.rows = self._packers[Region.A].rows
        self._parameters: np.ndarray | None = None
        planner = Planner(config, free)
        pages = [None] * count if b_pages is None else b_pages
        self._steps = [
            (index, step)
            for index, page in enumerate(pages)
            for step in planner.plan(m, n, k, b_page=page, flags=flags)
        ]
        self.commands: list[Job | Load] = []
        self._blocks = [_CommandBlock(config) for _ in range(-(-len(self._steps) // MAX_JOBS))]
        for load, data in before:
            self._add(0, load, data)
        for position, (index, step) in enumerate(self._steps):
            number = position // MAX_JOBS
            for feed in step.before:
                if feed.load.operand != Region.PARAMETERS or not has_parameters:
                    self._add_feed(number, feed, index)
            self._add(number, step.job)
            for feed in step.feeds:
                self._add_feed(number, feed, index)
        for load, data in after:
            self._add(-1, load, data)
        for part in self._blocks:
            part.finish(self._packers)
        self.jobs = len(self._steps)
        self.bytes_in = sum(len(part.data) for part in self._blocks)
        self._sizes = [self._result_size(step) for _, step in self._steps]
        self.bytes_out = sum(self._sizes)
        self._groups = self._equal_jobs()
        self.nbytes = self.bytes_in + sum(packer.nbytes for packer in self._packers.values())

    def fill(self, tags: Iterator[int]) -> Iterator[tuple[Commands, list[tuple[int, int]]]]:
        """Yield commands to send, and the tag and the result bytes of each job with results.

        A stream of many jobs is cut into several parts: send one after the results of the other.
        The next part, and the next call, overwrite the commands.
        """
        start = 0
        for block in self._blocks:
            numbers = list(itertools.islice(tags, len(block.tags)))
            block.patch(numbers, self._parameters)
            sizes = self._sizes[start : start + len(numbers)]
            start += len(numbers)
            yield block, [pair for pair in zip(numbers, sizes, strict=True) if pair[1]]

    def write_parameters(self, entries: np.ndarray) -> None:
        """Write the parameters of a computed B: `weft.host.packing.ENTRY` [count, n]."""
        operand = self._memories[Region.PARAMETERS]
        data = [pack_entries(columns, operand, self._config.cols) for columns in entries]
        self._parameters = np.frombuffer(b"".join(data), np.uint8).reshape(len(data), -1)

    def read(self, results: Sequence[bytes]) -> np.ndarray:
        """Return the results [count, m, n] from the result words of each job with results."""
        count, m, _, n = self._shape
        raw = np.empty((count, m, n), self.dtype)
        for (rows, cols), places, piece in self._groups:
            data = b"".join([results[place] for place, *_ in places])
            out = None if piece is None else raw[piece].reshape(len(places), rows, cols)
            tiles = unpack_jobs(data, len(places), rows, cols, self._config, self.dtype, out)
            if piece is None:
                for tile, (_, index, down, across) in zip(tiles, places, strict=True):
                    raw[index, down, across] = tile
        return raw

    def _equal_jobs(self):
        """Return the jobs with results by shape, and the piece of the results that they fill.

        A job is its place among them, product, rows and columns. There is a piece if one job has
        the rows below those of the job before it.
        """
        groups: dict = {}
        place = 0
        for index, step in self._steps:
            if step.has_results:
                shape = step.job.m, step.job.n
                groups.setdefault(shape, []).append((place, index, step.rows, step.cols))
                place += 1
        return [(shape, places, _piece(places)) for shape, places in groups.items()]

    def _result_size(self, step):
        if not step.has_results:
            return 0
        job = step.job
        number = result(self._config, job.flags)
        return result_bytes(job.m, job.n, self._config, number.bytes)

    def _add(self, number, command, data=b""):
        """Append a header and the bytes after it."""
        self.commands.append(command)
        self._blocks[number].add(command, data)

    def _add_feed(self, number, feed, index):
        """Append a load and its payload, or a place for it that `fill` writes to."""
        load, operand, k = feed.load, self._memories[feed.load.operand], self._shape[2]
        if load.operand == Region.PARAMETERS:
            k = operand.depth * -(-self._config.cols // operand.edge)
        elif load.operand == Region.C:
            k = 1 if self._one_row else self._shape[1]
        block = self._blocks[number]
        self.commands.append(load)
        block.add(load)
        whole = load.words == operand.panel_words(k)
        parts = [(feed.panel, load.panels)] if whole else [
            (panel, 1) for panel in range(feed.panel, feed.panel + load.panels)
        ]
        for panel, panels in parts:
            part = panel_slice(operand, k, panel, panels, feed.word, load.words)
            start = len(block.data)
            if load.operand in self._computed:
                block.data += bytes(part.stop - part.start)
                place = slice(start, len(block.data))
                block.holes.append((Region(load.operand), index, place, part))
            else:
                block.data += self._packed.part(load.operand, index)[part]
        block.end_payload()


class _CommandBlock(Commands):
    """Commands that are sent at once, as the words of a wire from the start.

    Attributes
    ----------
    data : bytearray
        Words, with places for tags and for A.
    tags : list of int
        Offsets of the tags.
    holes : list of (Region, int, slice, slice)
        Operand, product, place in ``data``, and place in the packed operand of the product.
    """

    def __init__(self, config):
        super().__init__(config, ())
        self.data = bytearray()
        self.tags: list[int] = []
        self.holes: list[tuple[Region, int, slice, slice]] = []
        self._places: list[tuple[Job | Load, slice]] = []  # headers, and payloads in ``data``
        self._numbers: Sequence[int] = ()

    def __iter__(self) -> Iterator[Command]:
        view, numbers = memoryview(self.data), iter(self._numbers)
        for header, place in self._places:
            if isinstance(header, Job):
                yield header.tagged(next(numbers)), b""
            else:
                yield header, view[place]

    def encode(self) -> bytes:
        return bytes(self.data)

    def add(self, header, data=b""):
        """Append a header and its payload."""
        if isinstance(header, Job):
            self.tags.append(len(self.data) + _TAG)
        self.data += header.pack().ljust(self._config.bytes_in, b"\0")
        self._places.append((header, slice(len(self.data), len(self.data) + len(data))))
        self.data += data

    def end_payload(self):
        """Take everything after the last header as its payload."""
        header, place = self._places[-1]
        self._places[-1] = header, slice(place.start, len(self.data))

    def finish(self, packers):
        """Prepare `patch` with the packers of operands; nothing is added any more."""
        self._bytes = np.frombuffer(self.data, np.uint8)
        self._tag_places = np.array(self.tags, np.intp)
        self._parts, first = [], {}
        for region, index, place, part in self.holes:
            if region not in packers:
                continue
            # A part that several jobs read is packed once.
            packed = first.setdefault((region, index, part.start, part.stop), place)
            self._parts.append(
                packers[region].part(index, part, self._bytes[place]) if packed is place
                else (self._bytes[place], self._bytes[packed])
            )
        self._parameters = [
            (self._bytes[place], index, part)
            for region, index, place, part in self.holes if region not in packers
        ]

    def patch(self, tags, parameters):
        """Write the tags of the jobs, the operands of the packers, and parameters [count, bytes].
        """
        self._numbers = tags
        numbers = np.array(tags, np.uint16)
        self._bytes[self._tag_places] = numbers & 0xFF
        self._bytes[self._tag_places + 1] = numbers >> 8
        for target, source in self._parts:
            target[...] = source
        for target, index, part in self._parameters:
            target[...] = parameters[index, part]


def _piece(places):
    """The part of the results [count, m, n] that jobs fill from top to bottom, or None."""
    _, index, rows, cols = places[0]
    below = rows.start
    for _, product, down, across in places:
        if (product, down.start, across) != (index, below, cols):
            return None
        below = down.stop
    return index, slice(rows.start, below), cols


def table_load(table: np.ndarray, config: Config) -> tuple[Load, bytes]:
    """Return the load of an activation table, 256 entries of 8 bits, and its payload."""
    payload = pack_table(table, memories(config)[Region.TABLE])
    return Load(Region.TABLE, 0, 1, 1, TABLE_ENTRIES), payload


def resident_loads(
    config: Config, shape: tuple[int, int, int, int], packed: Packed, b_pages: Sequence[int],
) -> list[tuple[Load, bytes]]:
    """Return the loads of B, and of parameters if there are any, of products of one shape.

    ``b_pages`` is the first page of each product's B.
    """
    geometry = memories(config)
    operand = geometry[Region.B]
    _, _, k, n = shape
    panels, pitch = operand.panels(n), operand.panel_pages(k)
    words = {Region.B: operand.panel_words(k), Region.PARAMETERS: -(-config.cols // config.lanes)}
    loads = []
    for index, page in enumerate(b_pages):
        for region in (Region.B, Region.PARAMETERS):
            payload = packed.part(region, index)
            if payload:
                # The pitch of one panel of parameters is unused; that of B could exceed the buffer.
                step = 1 if region == Region.PARAMETERS and panels == 1 else pitch
                loads.append((Load(region, page, step, panels, words[region]), bytes(payload)))
    return loads
