"""Blocks of a product on a network core, and what it needs besides A, made once: B and lists."""

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from weft.host.packing import COLUMN, dense_words, parameter_lines
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListEnd,
    ListJob,
    ListLoad,
    LoadTarget,
    split,
)

__all__ = [
    "LOG_BYTES", "BlockSizes", "ListPart", "ListPlan", "Loaded", "ProductSpace", "block_sizes",
    "map_pitch", "whole_space",
]

LOG_BYTES = 8  # of an entry of the log
DESCRIPTORS = 4  # of a list: two loads, a job, the end
_MAX_ROWS = (1 << 16) - 1  # pixels of a row of a map


@dataclass(frozen=True)
class ProductSpace:
    """The parts of the memories of a network core that products use, in vectors.

    Attributes
    ----------
    first, vectors : int
        First vector in the memory on the chip, and vectors. A and the results lie there; without a
        program memory all the rest, too.
    program_first, program_vectors : int
        Of the program memory: for lists, their log, and what they load. 0 without one.
    """

    first: int
    vectors: int
    program_first: int = 0
    program_vectors: int = 0

    @classmethod
    def whole(cls, config: NetworkCoreConfig, program_bytes: int | None = None) -> "ProductSpace":
        """Return all of both memories; a program memory may have fewer bytes than the core allows.
        """
        size = config.program_bytes if program_bytes is None else program_bytes
        return cls(0, config.vectors, 0, size // config.array.depth)

    def list_first(self, config: NetworkCoreConfig) -> int:
        """Return the first vector of the part with the lists."""
        return self.program_first if config.program_words else self.first


@dataclass(frozen=True)
class BlockSizes:
    """The largest block of a product, and its places in the `ProductSpace`, in vectors.

    Attributes
    ----------
    rows : int
        Rows of A.
    words : int
        Vectors of K.
    tiles : int
        Tiles of N.
    log, a, source, output : int
        First vectors of the log, of the rows of A, of what the loads read, and of the results. The
        list is at vector 0. List, log and source lie in the program memory, if there is one.
    """

    rows: int
    words: int
    tiles: int
    log: int
    a: int
    source: int
    output: int


def map_pitch(config: NetworkCoreConfig, vectors: int) -> int:
    """Return the vectors from row to row of A: neighbours lie in different banks."""
    pitch = vectors
    while config.array.rows > 1 and math.gcd(pitch, config.banks) > 1:
        pitch += 1
    return pitch


def whole_space(
    config: NetworkCoreConfig, m: int, k: int, n: int, size: int
) -> tuple[int, int]:
    """Return the vectors with which the memories do not limit the blocks of a product.

    They are ``vectors`` and ``program_vectors`` of a `ProductSpace`. Arguments are as for
    `block_sizes`.
    """
    core, depth = config.array, config.array.depth
    all_words = -(-k // depth)
    words = _even(all_words, min(all_words, config.b_words))
    most = max(1, min(config.b_words // words, config.lines // config.row_chunks))
    tiles = _even(-(-n // core.cols), min(-(-n // core.cols), most))
    row = map_pitch(config, words) + -(-min(n, tiles * core.cols) * size // depth)
    source = tiles * (words * core.cols + config.row_chunks * config.line_vectors)
    maps = min(m, _MAX_ROWS) * row
    if config.program_words:
        return maps, _fixed(config) + source
    return _fixed(config) + max(2 * source, source + maps), 0


def block_sizes(
    config: NetworkCoreConfig, m: int, k: int, n: int, size: int, space: ProductSpace | None = None
) -> BlockSizes:
    """Return the blocks of ``C[m, n] = A[m, k] x B[k, n]`` with results of ``size`` bytes.

    K is divided only if a tile does not fit. Beside A, a block of B takes at most half of the
    memory, if that is enough for a tile. Without a ``space`` the product may use all.

    Raises ValueError if a memory or a buffer is too small for any product.
    """
    core, depth = config.array, config.array.depth
    space = space or ProductSpace.whole(config)
    log, fixed = DESCRIPTORS * -(-DESCRIPTOR_BYTES // depth), _fixed(config)
    in_program = config.program_words > 0
    for_maps = space.vectors if in_program else space.vectors - fixed
    most_source = space.program_vectors - fixed if in_program else for_maps // 2
    all_words, all_tiles = -(-k // depth), -(-n // core.cols)
    lines = config.row_chunks * config.line_vectors  # vectors of the parameter lines of a tile

    def output(tiles):  # vectors of a row of results
        return -(-min(n, tiles * core.cols) * size // depth)

    def source(words, tiles):
        return tiles * (words * core.cols + lines)

    def most_rows(words, tiles):
        row, taken = map_pitch(config, words) + output(tiles), source(words, tiles)
        if not in_program:
            return min((for_maps - taken) // row, m, _MAX_ROWS)
        return min(for_maps // row, m, _MAX_ROWS) if taken <= most_source else 0

    wanted = min(core.rows, m)
    words = next((
        words for rows in (wanted, 1) for words in range(min(all_words, config.b_words), 0, -1)
        if most_rows(words, 1) >= rows
    ), 0)
    if not words or config.row_chunks > config.lines:
        program = f", {space.program_vectors * depth} bytes of program memory" * in_program
        raise ValueError(
            f"a network core must have a memory and buffers for a product of one tile, not"
            f" {space.vectors * depth} bytes{program} and {config.lines} lines"
        )
    words = _even(all_words, words)
    fits = [
        tiles for tiles in range(1, min(all_tiles, config.b_words // words) + 1)
        if tiles * config.row_chunks <= config.lines and source(words, tiles) <= most_source
        and most_rows(words, tiles) >= wanted
    ]
    tiles = _even(all_tiles, max(fits, default=1))
    rows = _even(m, most_rows(words, tiles))
    maps = rows * map_pitch(config, words)
    if in_program:
        return BlockSizes(
            rows=rows, words=words, tiles=tiles, log=log, a=0, source=fixed, output=maps
        )
    first_source = fixed + maps
    return BlockSizes(
        rows=rows, words=words, tiles=tiles, log=log, a=fixed, source=first_source,
        output=first_source + source(words, tiles),
    )


def _fixed(config):
    """Return the vectors of a list and its log; what follows in a program memory begins a beat."""
    depth = config.array.depth
    vectors = DESCRIPTORS * -(-DESCRIPTOR_BYTES // depth) + -(-LOG_BYTES // depth)
    return vectors + (-vectors % config.read_vectors if config.program_words else 0)


def _even(total, most):
    """Return the size of blocks of at most ``most``, as even as possible."""
    return -(-total // -(-total // most))


_RESULT_BYTES = 1024  # that DONE carries, at most
_PART_BYTES = 4096  # of a part in this process, besides its data
_MAX_LISTS = 8  # of a part: its data can lie in different places of the buffers
_OFFSET = 128  # of uint8 results: the core stores them less 128


@dataclass(frozen=True, eq=False)
class Loaded:
    """Data that a load brings into a buffer.

    Attributes
    ----------
    target : LoadTarget
    data : bytes
    key : bytes
        Identifies the data: their hash.
    words : int
        Words or lines of the buffer.
    """

    target: LoadTarget
    data: bytes
    key: bytes
    words: int


@dataclass(frozen=True, eq=False)
class _Block:
    """A block of B: its words, its parameter lines, and its columns."""

    loaded: tuple[Loaded, Loaded]
    columns: int


class ListPart:
    """One list of a product: a block of A times a block of B.

    Parameters
    ----------
    plan : ListPlan
    blocks : BlockSizes
    rows, ks : slice
        Of A.
    columns : slice or array of int
        Of the result.
    block : _Block
    fields : dict
        Of the job, for all columns alike.

    Attributes
    ----------
    blocks, rows, ks, columns, loaded
    vectors, pitch : int
        Vectors of a row of A, and from row to row.
    steps : int
        Array steps.
    output : int
        Address of the results.
    row_bytes, result_bytes : int
        Bytes of a row of results, and of all rows in the memory.
    """

    def __init__(
        self, plan: "ListPlan", blocks: BlockSizes, rows: slice, ks: slice, columns, block: _Block,
        fields: dict[str, int],
    ):
        config, core, self.blocks = plan.config, plan.config.array, blocks
        m, n, depth = rows.stop - rows.start, block.columns, core.depth
        self.rows, self.ks, self.columns, self.loaded = rows, ks, columns, block.loaded
        self.vectors = -(-(ks.stop - ks.start) // depth)
        self.pitch = map_pitch(config, self.vectors)
        tiles, panel_rows = -(-n // core.cols), min(m, core.rows)
        self.steps = -(-m // panel_rows) * tiles * self.vectors
        self.row_bytes = n * plan.itemsize
        width = -(-self.row_bytes // depth)
        self.result_bytes = m * width * depth
        self._plan = plan
        self.output = plan.address(blocks.output)
        self._job = dict(
            cross=1, panel_rows=panel_rows, out_height=1, out_width=m, columns=n,
            tile_words=self.vectors, kernel_height=1, kernel_width=1, tap_vectors=self.vectors,
            group_tiles=tiles, in_height=1, in_width=m, stride_y=1, stride_x=1, dilation_y=1,
            dilation_x=1, input=plan.address(blocks.a),
            input_pixel_step=split(self.pitch, config.banks), b_step=self.vectors,
            output=self.output, output_pixel_step=split(width, config.banks), **fields,
        )
        self._lists: dict[tuple, bytes] = {}

    def list_for(self, places: tuple[tuple[int, bool], ...]) -> bytes:
        """Return the list. ``places`` are first words of ``loaded``, and whether to load them."""
        if places not in self._lists:
            if len(self._lists) == _MAX_LISTS:
                self._lists.clear()
            self._lists[places] = self._pack(places)
        return self._lists[places]

    def _pack(self, places):
        plan, source, loads = self._plan, self.blocks.source, []
        for loaded, (first, is_new) in zip(self.loaded, places, strict=True):
            if is_new:
                loads.append(ListLoad(
                    target=loaded.target, source=plan.list_address(source), first_word=first,
                    words=loaded.words,
                ))
                source += len(loaded.data) // plan.config.array.depth
        (b_word, _), (line, _) = places
        job = ListJob(loads=len(loads), b_word=b_word, parameter_line=line, **self._job)
        count = self.result_bytes if self.result_bytes <= _RESULT_BYTES else 0
        end = ListEnd(result=self.output, result_bytes=count)
        return b"".join(descriptor.pack() for descriptor in (*loads, job, end))


class ListPlan:
    """A product of ``m`` rows of A and one B, as lists: blocks, packed words and lines of B.

    Parameters
    ----------
    config : NetworkCoreConfig
    space : ProductSpace
    m : int
    b : int8 [N, K]
    entries : `weft.host.packing.ENTRY` [N], optional
        Parameters of scaled results; None: the results are sums.

    Attributes
    ----------
    config, m
    shape : (int, int)
        Of B.
    sums : bool
        Whether the results are sums of 4 bytes; else they are scaled to 1 byte.
    itemsize : int
        Bytes of a result.
    parts : list of ListPart
        In the order of their execution.
    offset : uint8 [N]
        What the host adds to results.
    bytes : int
        That the plan takes in this process, about.
    """

    def __init__(
        self, config: NetworkCoreConfig, space: ProductSpace, m: int, b: np.ndarray,
        entries: np.ndarray | None = None,
    ):
        self.config, self.m, self.shape = config, m, b.shape
        self._space = space
        self.sums = entries is None
        self.itemsize = 4 if self.sums else 1
        self.bytes = 0
        self.parts: list[ListPart] = []
        self.offset = np.zeros(len(b), np.uint8)
        columns = np.zeros(len(b), COLUMN)
        if entries is None:
            self._add(slice(0, len(b)), b, columns, dict(sums=1))
        else:
            self._add_scaled(b, columns, entries)
        self.bytes += _PART_BYTES * len(self.parts)

    def address(self, number: int) -> int:
        """Return the address of a vector of the space on the chip."""
        return split(self._space.first + number, self.config.banks)

    def list_address(self, number: int) -> int:
        """Return the address of a vector where lists and what they load lie."""
        return split(self._space.list_first(self.config) + number, self.config.banks)

    def _add_scaled(self, b, columns, entries):
        """Plan the columns; the ones with one zero point and the same limits are one product."""
        for name in COLUMN.names or ():
            columns[name] = entries[name]
        high = (entries["high"] >= _OFFSET) | (entries["zero"] >= _OFFSET)
        self.offset = (_OFFSET * high).astype(np.uint8)
        limits = np.stack([entries[name] for name in ("zero", "low", "high")], 1).astype(int)
        limits -= _OFFSET * (limits.max(1, keepdims=True) >= _OFFSET)
        for zero, low, high in np.unique(limits, axis=0).tolist():
            place = np.flatnonzero((limits == (zero, low, high)).all(1))
            self._add(place, b[place], columns[place], dict(zero=zero, low=low, high=high))

    def _add(self, where, b, columns, fields):
        """Plan some columns of B, which are ``where`` in the result."""
        config, (n, k), m = self.config, b.shape, self.m
        blocks = block_sizes(config, m, k, n, self.itemsize, self._space)
        depth, cols, words = config.array.depth, config.array.cols, blocks.words
        of_m, of_k, of_n = (
            [slice(first, min(first + step, total)) for first in range(0, total, step)]
            for total, step in ((m, blocks.rows), (k, words * depth), (n, blocks.tiles * cols))
        )
        # What is sent more than once: A for each block of N, or B for each block of M.
        fits = len(of_n) * blocks.tiles * words <= config.b_words
        again_a = 0 if len(of_m) == 1 else m * (len(of_n) - 1)
        again_b = 0 if fits else n * (len(of_m) - 1)
        for ks in of_k:
            packed = [self._packed(b[part, ks], columns[part]) for part in of_n]
            pairs = [(i, j) for i in range(len(of_m)) for j in range(len(of_n))]
            if again_a < again_b:
                pairs.sort(key=lambda pair: pair[1])
            self.parts += [
                ListPart(self, blocks, of_m[i], ks, _within(where, of_n[j]), packed[j], fields)
                for i, j in pairs
            ]

    def _packed(self, b, columns):
        """Return a block of B."""
        config = self.config
        tiles = -(-len(b) // config.array.cols)
        words, pairs = dense_words(b.T[None], -(-b.shape[1] // config.array.depth), tiles, config)
        whole = np.zeros(tiles * config.array.cols, COLUMN)
        whole[: len(b)] = columns
        if config.array.cell.corrected:
            whole["bias"][: len(b)] = (columns["bias"] - pairs).astype(np.int32)
        lines = parameter_lines(whole, config)
        self.bytes += words.nbytes + lines.nbytes
        depth = config.array.depth
        return _Block((
            _loaded(LoadTarget.B, words, config.array.cols * depth),
            _loaded(LoadTarget.PARAMETERS, lines, config.line_vectors * depth),
        ), len(b))


def _loaded(target, values, word_bytes):
    data = values.tobytes()
    return Loaded(target, data, hashlib.sha256(data).digest(), len(data) // word_bytes)


def _within(where, part: slice):
    """Return what ``part`` selects of the columns ``where``, which a slice may contain whole."""
    if isinstance(where, slice):
        return slice(where.start + part.start, where.start + part.stop)
    return where[part]
