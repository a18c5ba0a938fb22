"""Layouts in numpy: of the streams, of the memory of a network core, and of the epilogue.

Operands are packed into panels, results unpacked from tiles. `Epilogue` makes the parameters of
columns from the arguments of a product.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.checks import INT32, columns, fits, integers, reals, require
from weft.commands import JobFlag, Region
from weft.config import Config
from weft.geometry import Operand
from weft.network_core.config import NetworkCoreConfig
from weft.quantize import quantize_multiplier

__all__ = [
    "COLUMN", "ENTRY", "HALF", "LIMITS", "Epilogue", "Packers", "PanelPacker", "cut", "dense_words",
    "pack", "pack_entries", "pack_results", "pack_table", "panel_slice", "parameter_lines",
    "result_bytes", "scale_bits", "signed", "unpack", "unpack_jobs",
]


# Parameters of one column, as in `weft.dtypes.DType.parameter`: of an int8 and of a bf16 core.
ENTRY = np.dtype([
    ("bias", "<i4"), ("multiplier", "<u4"), ("shift", "i1"), ("b_zero", "i1"),
    ("zero", "<i2"), ("low", "<i2"), ("high", "<i2"),
])
LIMITS = np.dtype([("low", "<f4"), ("high", "<f4")])

HALF = 0x80  # a value of uint8 less this is the operand of the core


def signed(x: np.ndarray) -> np.ndarray:
    """Return ``x - 128`` of uint8, as int8: the same bits with the top bit inverted."""
    return (x ^ np.uint8(HALF)).view(np.int8)


def scale_bits(scale: np.ndarray) -> np.ndarray:
    """Return the multiplier of mode ``onnx``, uint32: the bits of float32 scales above 0.

    The lanes multiply by normal numbers. A subnormal scale gives 0 for every sum, and so does the
    smallest normal one, which takes its place.
    """
    return np.maximum(scale, np.finfo(np.float32).tiny).view(np.uint32)


_MAX_KEPT, _MAX_KEPT_BYTES = 32, 1 << 16  # packers, and bytes of the matrix of each


class PanelPacker:
    """Packs ``count`` operands [R, K] of one shape into the payloads of their loads, repeatedly.

    Write the operands to `rows`, then call `pack`, or copy each part of `part` to its place. All
    use the same memory each time.

    Parameters
    ----------
    operand : Operand
        Geometry of the operand; R counts rows of A, or columns of B or C.
    count, size, k : int
        Number of operands, R and K.

    Attributes
    ----------
    rows : array [count, R, K] of unsigned integers
        Bits of the operands.
    nbytes : int
        Bytes of the memory.
    """

    def __init__(self, operand: Operand, count: int, size: int, k: int):
        panels, words = operand.panels(size), operand.panel_words(k)
        lines = -(-words // operand.group)
        # Values of any type are handled as unsigned integers with the same bits.
        padded = np.zeros(
            (count, panels * operand.edge, lines * operand.group * operand.depth),
            f"<u{operand.size}",
        )
        self.rows, self.nbytes = padded[:, :size, :k], padded.nbytes
        self._line = operand.segments * operand.stream
        self._used = operand.group * operand.word_bytes
        # The values of k in a word move as one integer if such an integer exists.
        unit = operand.depth * operand.size
        unit = unit if unit in (2, 4, 8) else operand.size
        source = padded.view(f"<u{unit}").reshape(
            count, panels, operand.edge, lines, operand.group, -1
        )
        self._source = source.transpose(0, 1, 3, 4, 2, 5)

    @functools.cached_property
    def _whole(self):
        """The payloads of all operands, and their values with the values to copy there."""
        stream = np.zeros((*self._source.shape[:3], self._line), np.uint8)
        return stream.reshape(len(stream), -1), self._values(stream), self._source

    def pack(self) -> np.ndarray:
        """Return the payloads, uint8 [count, bytes]; the next call overwrites them."""
        stream, target, source = self._whole
        np.copyto(target, source)
        return stream

    def part(self, index: int, part: slice, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where a part of the payload of an operand goes, and what to copy there.

        ``part`` is a slice of its bytes as from `panel_slice`; ``place`` has as many, uint8.
        """
        lines = self._source.shape[2]
        first, last = part.start // self._line, part.stop // self._line
        panels = slice(first // lines, -(-last // lines))
        # Several panels are whole.
        start = first % lines
        source = self._source[index, panels, start : start + min(lines, last - first)]
        place = place.reshape(*source.shape[:2], self._line)
        return self._values(place, source.shape), source

    def _values(self, lines, shape=None):
        """The values in some lines of a payload, with the axes of the values to copy there."""
        kind = self._source.dtype
        return lines[..., : self._used].view(kind).reshape(shape or self._source.shape)


class Packers:
    """The packers of the last matrices: to make one takes longer than to pack a small matrix.

    Threads take turns.

    Parameters
    ----------
    memories : dict of `weft.geometry.Operand`
        The buffers, by `Region`; also an attribute.
    """

    def __init__(self, memories: Mapping[Region, Operand]):
        self.memories = memories
        self._kept: dict[tuple, PanelPacker] = {}  # the one that was made last is the last one

    def pack(self, region: Region, matrix: np.ndarray) -> bytes:
        """Pack a ``matrix`` [R, K] (A, or B or C transposed) into the payload of its loads."""
        key = region, matrix.shape
        packer = self._kept.get(key)
        if packer is None:
            packer = PanelPacker(self.memories[region], 1, *matrix.shape)
            if matrix.nbytes <= _MAX_KEPT_BYTES:
                self._kept[key] = packer
            if len(self._kept) > _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
        return _packed(packer, matrix)


def pack(matrix: np.ndarray, operand: Operand) -> bytes:
    """Pack one ``matrix`` [R, K] (A, or B or C transposed) into the payload of its loads."""
    return _packed(PanelPacker(operand, 1, *matrix.shape), matrix)


def _packed(packer, matrix):
    packer.rows[0] = matrix.view(packer.rows.dtype)
    return packer.pack().tobytes()


def pack_entries(entries: np.ndarray, operand: Operand, cols: int) -> bytes:
    """Pack parameters, `ENTRY` or `LIMITS` [N], for panels of B of ``cols`` columns."""
    panels, chunks = -(-len(entries) // cols), -(-cols // operand.edge)
    whole = np.zeros(panels * cols, entries.dtype)
    whole[: len(entries)] = entries
    padded = np.zeros((panels, chunks * operand.edge), entries.dtype)
    padded[:, :cols] = whole.reshape(panels, cols)
    # The entries of a lane are packed like the values of k of a row of A.
    lanes = padded.reshape(panels, chunks, operand.edge).transpose(0, 2, 1)
    lanes = np.ascontiguousarray(lanes).view(np.int8)
    return pack(lanes.reshape(panels * operand.edge, chunks * entries.itemsize), operand)


def pack_table(table: np.ndarray, operand: Operand) -> bytes:
    """Pack an activation table, 256 entries of 8 bits, into its one panel."""
    return pack(table.view(np.int8)[None, :], operand)


def panel_slice(operand: Operand, k: int, panel: int, panels: int, word: int, words: int) -> slice:
    """Return the slice of packed panels of ``k`` for some words of some panels.

    The words are ``word .. word + words - 1`` of panels ``panel .. panel + panels - 1``: either all
    words of the panels, or of one panel words that start at a page.
    """
    line = operand.segments * operand.stream
    start = panel * operand.panel_stream_words(k) * operand.stream + word // operand.group * line
    return slice(start, start + panels * -(-words // operand.group) * line)


def cut(packed, operand: Operand, k: int, panel: int, panels: int, word: int, words: int):
    """Return the bytes of the same words of each of several panels, one panel after another."""
    if panels == 1 or words == operand.panel_words(k):
        return packed[panel_slice(operand, k, panel, panels, word, words)]
    parts = range(panel, panel + panels)
    return b"".join(packed[panel_slice(operand, k, p, 1, word, words)] for p in parts)


def result_bytes(m: int, n: int, config: Config, size: int) -> int:
    """Return the bytes on the result stream for [m, n] results of ``size`` bytes each."""
    total = m * _row_slots(n, config) * size
    return total + -total % config.bytes_out


def pack_results(results: np.ndarray, config: Config) -> bytes:
    """Pack the results [M, N] of a job, unsigned integers, into its result words; see `unpack`."""
    m, n = results.shape
    words = np.zeros(result_bytes(m, n, config, results.itemsize) // results.itemsize,
                     results.dtype)
    # The place of each result in the words follows from unpacking their indices.
    words[unpack(np.arange(len(words), dtype="<u4").tobytes(), m, n, config, np.uint32)] = results
    return words.tobytes()


def unpack(data: bytes, m: int, n: int, config: Config, dtype=np.int32) -> np.ndarray:
    """Unpack the [m, n] results of one job, of type ``dtype``, from its result words."""
    return unpack_jobs(data, 1, m, n, config, dtype)[0]


def unpack_jobs(
    data: bytes, jobs: int, m: int, n: int, config: Config, dtype=np.int32,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Unpack the results of equal jobs, [jobs, m, n] of ``dtype``, from their result words.

    There are four kinds of tiles, full or partial in height and width; each kind moves at once.
    They go to ``out``, if it is given.
    """
    dtype = np.dtype(dtype)
    row = _row_slots(n, config)
    results = np.frombuffer(data, f"<u{dtype.itemsize}").reshape(jobs, -1)
    if out is None:
        out = np.empty((jobs, m, n), dtype)
    bits, start = out.view(f"u{dtype.itemsize}"), 0
    for top, down, height in _kinds(m, config.rows):
        # down: rows of tiles of this height; in each, all tiles of one width are consecutive
        end = start + down * height * row
        band = results[:, start:end].reshape(jobs, down, -1)
        start = end
        offset = 0
        for left, across, width in _kinds(n, config.cols):
            slots = _chunk_slots(width, config)
            tiles = band[:, :, offset : (offset := offset + across * height * slots)]
            tiles = tiles.reshape(jobs, down, across, height, slots)[..., :width]
            place = bits[:, top : top + down * height, left : left + across * width]
            place.reshape(jobs, down, height, across, width)[...] = tiles.swapaxes(2, 3)
    return out


def _row_slots(n, config):
    """Return the number of results, padding included, for one row of ``n`` columns."""
    full, rest = divmod(n, config.cols)
    return full * _chunk_slots(config.cols, config) + _chunk_slots(rest, config)


def _chunk_slots(width, config):
    """Return the number of results, padding included, for one row of a tile."""
    return -(-width // config.lanes) * config.lanes


def _kinds(size, edge):
    """Yield ``(start, count, edge)`` of the full tiles along ``size``, then of the partial one."""
    full, rest = divmod(size, edge)
    if full:
        yield 0, full, edge
    if rest:
        yield full * edge, 1, rest


# The parameters of a column.
COLUMN = np.dtype([("bias", "<i4"), ("multiplier", "<i4"), ("shift", "i1")])


def dense_words(
    weights: np.ndarray, tap_vectors: int, tiles: int, config: NetworkCoreConfig
) -> tuple[np.ndarray, np.ndarray]:
    """Return the words of B of a layer whose columns read all channels, and their pair sums.

    The pair sum of a column is ``sum(w[2i] * w[2i + 1])`` over its weights: the sums of a
    `corrected` MAC cell contain it.

    Parameters
    ----------
    weights : int8 [taps, channels, columns]
    tap_vectors : int
        Vectors of a tap.
    tiles : int
        Tiles of columns.
    config : NetworkCoreConfig

    Returns
    -------
    (int8 [tiles, vectors, depth], int64 [columns])
        The vectors of a word follow each other, the words of a tile too: for tap: for vector.
    """
    cols, depth = config.array.cols, config.array.depth
    taps, channels, columns = weights.shape
    whole = np.zeros((taps, tap_vectors * depth, tiles * cols), np.int8)
    whole[:, :channels, :columns] = weights
    whole = whole.reshape(taps, tap_vectors, depth, tiles, cols)
    words = whole.transpose(3, 0, 1, 4, 2)  # tile, tap, vector, column, byte
    wide = words[..., : depth // 2 * 2].astype(np.int64)
    pairs = (wide[..., 0::2] * wide[..., 1::2]).sum((1, 2, 4)).reshape(-1)[:columns]
    return words.reshape(tiles, -1, depth), pairs


def parameter_lines(columns: np.ndarray, config: NetworkCoreConfig) -> np.ndarray:
    """Return `COLUMN` [lines * lanes] as parameter lines, uint8 [lines, bytes]."""
    lanes, size = config.array.lanes, config.array.lanes * COLUMN.itemsize
    lines = np.zeros((len(columns) // lanes, config.line_vectors * config.array.depth), np.uint8)
    used = np.frombuffer(columns.tobytes(), np.uint8)
    lines[:, :size] = used.reshape(len(lines), size)
    return lines


_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
_MIN_MULTIPLIER, _MAX_MULTIPLIER = 1 << 30, (1 << 31) - 1  # normalized, other than 0
_NO_BIAS = np.zeros((), np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Epilogue:
    """The checked arguments of `Accelerator.matmul` that apply after the product.

    A parameter of columns is a scalar, or broadcasts to [batch..., N].

    Attributes
    ----------
    flags : JobFlag
        REQUANTIZE, TABLE, or neither: then the results are the sums.
    dtype : numpy.dtype
        Type of the results.
    bias : int64 [..., N] or scalar
    multiplier : uint32 [..., N] or scalar
        As in a parameter entry: in mode ``onnx`` the bits of a float32 scale.
    shift, zero, low, high : int64 [..., N] or scalar
        Shift of the scale, zero point and limits of the results.
    table : int8 or uint8 [..., 256], or None
        Activation table.
    """

    flags: JobFlag = JobFlag(0)
    dtype: np.dtype = np.dtype(np.int32)
    bias: np.ndarray
    multiplier: np.ndarray | None = None
    shift: np.ndarray | int = 0
    zero: np.ndarray | int = 0
    low: np.ndarray | int = 0
    high: np.ndarray | int = 0
    table: np.ndarray | None = None

    @classmethod
    def of(
        cls, config: Config, shape: tuple[int, ...], *, bias=None, scale=None, multiplier=None,
        shift=None, zero_point=0, low=None, high=None, activation=None, out_dtype=None,
    ) -> "Epilogue":
        """Check the arguments for products with columns of ``shape`` [batch..., N].

        Raises TypeError or ValueError for an invalid argument, or one that needs a feature that the
        Config does not have.
        """
        bias = _NO_BIAS if bias is None else columns("bias", integers("bias", bias, *INT32), shape)
        if scale is None and multiplier is None and shift is None:
            _check_raw(zero_point, low, high, activation, out_dtype)
            return cls(bias=bias)
        if scale is None:
            multiplier, shift = _multiplier(config, multiplier, shift, shape)
        else:
            multiplier, shift = _scale(config, scale, multiplier, shift, shape)
        flags, table = JobFlag.REQUANTIZE, None
        if activation is not None:
            table = _table(config, activation, shape[:-1])
            flags |= JobFlag.TABLE
        if out_dtype is None:
            out_dtype = np.int8 if table is None else table.dtype
        dtype = np.dtype(out_dtype)
        if dtype not in _BYTES:
            raise TypeError(f"out_dtype must be int8 or uint8 for scaled results, not {dtype}")
        if table is not None and table.dtype != dtype:
            raise TypeError(f"activation must be {dtype} as out_dtype is, not {table.dtype}")
        limits = np.iinfo(dtype)
        zero, low, high = (
            columns(name, integers(name, value, limits.min, limits.max), shape)
            for name, value in (
                ("zero_point", zero_point), ("low", limits.min if low is None else low),
                ("high", limits.max if high is None else high),
            )
        )
        invalid = low > high
        if np.any(invalid):
            first, limit = (np.broadcast_to(x, invalid.shape)[invalid][0] for x in (low, high))
            raise ValueError(f"low must be at most high ({limit}), not {first}")
        return cls(
            flags=flags, dtype=dtype, bias=bias, multiplier=multiplier, shift=shift,
            zero=zero, low=low, high=high, table=table,
        )

    @property
    def requantizes(self) -> bool:
        """Whether the core converts the sums to 8 bits."""
        return JobFlag.REQUANTIZE in self.flags

    def entries(self, bias: np.ndarray, b_zero) -> np.ndarray:
        """Return the parameters, `ENTRY` [..., N], with ``bias`` [..., N] wrapped to int32."""
        values = {
            "bias": bias.astype(np.int32), "multiplier": self.multiplier, "shift": self.shift,
            "b_zero": b_zero, "zero": self.zero, "low": self.low, "high": self.high,
        }
        entries = np.zeros(np.broadcast_shapes(*map(np.shape, values.values())), ENTRY)
        for name, value in values.items():
            entries[name] = value
        return entries

    def add_bias(self, sums: np.ndarray) -> np.ndarray:
        """Add the bias to int32 ``sums`` [..., M, N]; ValueError if a result exceeds int32."""
        if not self.bias.any():
            return sums
        total = sums + np.atleast_1d(self.bias)[..., None, :]
        low, high = INT32
        require("sums with bias", f"in {low}..{high}", total, (total >= low) & (total <= high))
        return total.astype(np.int32)


def _check_raw(zero_point, low, high, activation, out_dtype):
    """Raise TypeError for arguments that are for scaled results only."""
    for name, value, absent in (
        ("zero_point", zero_point, 0), ("low", low, None), ("high", high, None),
        ("activation", activation, None),
    ):
        if value is not absent and not np.array_equal(value, absent):
            raise TypeError(f"{name} must be absent without a scale, not {value}")
    if out_dtype is not None and np.dtype(out_dtype) != np.int32:
        raise TypeError(f"out_dtype must be int32 without a scale, not {np.dtype(out_dtype)}")


def _multiplier(config, multiplier, shift, shape):
    for name, value, other in (("multiplier", multiplier, "shift"), ("shift", shift, "multiplier")):
        if value is None:
            raise TypeError(f"{name} must be given with {other}, not {value}")
    _mode(config, ("tflite", "single"), "a multiplier and a shift")
    rule = "0 or in 2**30..2**31-1"
    multiplier = integers("multiplier", multiplier, 0, _MAX_MULTIPLIER, rule)
    require("multiplier", rule, multiplier, (multiplier == 0) | (multiplier >= _MIN_MULTIPLIER))
    shift = integers("shift", shift, -31, 31)
    multiplier = columns("multiplier", multiplier, shape)
    return multiplier.astype(np.uint32), columns("shift", shift, shape)


def _scale(config, scale, multiplier, shift, shape):
    for name, value in (("multiplier", multiplier), ("shift", shift)):
        if value is not None:
            raise TypeError(f"{name} must be absent where scale is given, not {value}")
    _mode(config, ("tflite", "single", "onnx"), "a scale")
    if config.requantize != "onnx":
        multiplier, shift = quantize_multiplier(columns("scale", np.asarray(scale), shape))
        return multiplier.astype(np.uint32), shift
    return scale_bits(columns("scale", reals("scale", scale, np.float32), shape)), 0


def _mode(config, modes, what):
    if config.requantize not in modes:
        names = " or ".join([", ".join(modes[:-1]), modes[-1]])
        raise ValueError(
            f"Config.requantize must be {names} for {what}, not {config.requantize}"
        )


def _table(config, activation, lead):
    if config.activation != "table":
        raise ValueError(
            f"Config.activation must be table for an activation, not {config.activation}"
        )
    table = np.asarray(activation)
    if table.dtype not in _BYTES:
        raise TypeError(f"activation must be a table of int8 or uint8, not of {table.dtype}")
    if table.shape[-1:] != (256,) or not fits(table.shape, (*lead, 256)):
        rule = "of shape (256,)"
        if lead:
            rule += f", or of one that broadcasts to {(*lead, 256)}"
        raise ValueError(f"activation must be {rule}, not {table.shape}")
    return table
