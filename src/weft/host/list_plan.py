"""What a product on a network core needs besides A, made once: blocks of B, and lists."""

import hashlib
from dataclasses import dataclass

import numpy as np

from weft.host.list_products import BlockSizes, ProductSpace, block_sizes, map_pitch
from weft.host.packing import COLUMN, dense_words, parameter_lines
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import ListEnd, ListJob, ListLoad, LoadTarget, split

__all__ = ["ListPart", "ListPlan", "Loaded"]

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
