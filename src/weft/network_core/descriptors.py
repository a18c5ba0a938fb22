"""The descriptors of a list, to the bit: loads, jobs, loops and the end.

A descriptor has 32 words of 32 bits, little-endian. Bits that no field uses are 0. The metadata of
each field has its place. `split` and `join` convert addresses; `ListReport` is how a list ended.
"""

import dataclasses
import functools
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, Self

from weft.network_core.config import NetworkCoreConfig

__all__ = [
    "BANK_BITS", "DESCRIPTOR_BYTES", "DESCRIPTOR_WORDS", "LIST_VERSION", "ON_CHIP", "WORD_BITS",
    "KINDS", "FieldPlace", "ListEnd", "ListError", "ListJob", "ListLoad", "ListLoop", "ListOpcode",
    "ListReport", "LoadTarget", "NetworkState", "join", "places", "split", "unpack", "unpack_list",
]

# Vector ``number`` lies in bank ``number % banks``, at word ``number // banks``. Lists contain both
# parts, so that the hardware adds addresses without a division.
BANK_BITS = 8  # lowest bits of an address in a list
WORD_BITS = 24  # the other bits, in two's complement
ON_CHIP = 1 << 31  # of a list in START: it lies on the chip with its log, of two memories


def split(number: int, banks: int) -> int:
    """Return the address (32 bits) of vector ``number``, or of a step of so many vectors.

    A negative step has a negative word: adding it to an address subtracts.
    """
    word, bank = divmod(number, banks)
    return (word & ((1 << WORD_BITS) - 1)) << BANK_BITS | bank


def join(address: int, banks: int) -> int:
    """Return the number of the vector at ``address``, the inverse of `split`."""
    word = address >> BANK_BITS
    word -= (word >> (WORD_BITS - 1)) << WORD_BITS
    return word * banks + (address & ((1 << BANK_BITS) - 1))


DESCRIPTOR_WORDS = 32
DESCRIPTOR_BYTES = 4 * DESCRIPTOR_WORDS
LIST_VERSION = 2


class ListOpcode(IntEnum):
    """Bits 3..0 of word 0; bits 7..4 are LIST_VERSION."""

    LOAD = 1
    JOB = 2
    LOOP = 3
    END = 4


class LoadTarget(IntEnum):
    """The buffer that a load writes."""

    B = 0
    PARAMETERS = 1
    ADD_TABLE = 2


class ListError(IntEnum):
    """Why a list ended."""

    NONE = 0
    OPCODE = 1  # unknown opcode or version, or an unused bit is 1
    FIELD = 2  # a size is 0 or too large for this core, or fields contradict each other
    ADDRESS = 3  # a vector outside base..limit would be read or written
    DEADLOCK = 4  # loads and jobs wait for each other
    ABORTED = 5
    BUS = 6  # a burst of the program memory had the response SLVERR or DECERR
    TIMEOUT = 7  # the program memory did not answer


@dataclass(frozen=True)
class FieldPlace:
    """Where a field lies in its descriptor: ``bits`` of ``word``, from bit ``low`` on.

    Attributes
    ----------
    name : str
    word, low, bits : int
    signed, address : bool
        An address may also be a step from address to address (`split`).
    option : str
        The option of `NetworkCoreConfig` without which the bits are unused; "" if there is none.
    """

    name: str
    word: int
    low: int
    bits: int
    signed: bool = False
    address: bool = False
    option: str = ""


def _bits(word, low, bits, option="", *, signed=False, default=0):
    place = {"word": word, "low": low, "bits": bits, "signed": signed, "option": option}
    return field(default=default, metadata=place)


def _flag(bit, option=""):
    return field(default=0, metadata={"word": 0, "low": bit, "bits": 1, "option": option})


def _address(word, option=""):
    place = {"word": word, "low": 0, "bits": 32, "address": True, "option": option}
    return field(default=0, metadata=place)


@functools.cache  # lists of networks have thousands of descriptors
def places(kind, config: NetworkCoreConfig | None = None) -> tuple[FieldPlace, ...]:
    """Return the places of all fields of a class of descriptors, or of those of a core."""
    every = [FieldPlace(f.name, **f.metadata) for f in dataclasses.fields(kind)]
    return tuple(p for p in every if not config or not p.option or getattr(config, p.option))


class _Descriptor:
    """The conversion between a descriptor and its bytes."""

    OPCODE: ClassVar[ListOpcode]

    def pack(self) -> bytes:
        """Return the bytes of the descriptor.

        Raises ValueError if a value does not fit its field.
        """
        words = [0] * DESCRIPTOR_WORDS
        words[0] = self.OPCODE | LIST_VERSION << 4
        kind: type = type(self)
        for place in places(kind):
            value = int(getattr(self, place.name))
            low = -(1 << place.bits - 1) if place.signed else 0
            high = low + (1 << place.bits)
            if not low <= value < high:
                raise ValueError(
                    f"{place.name} of {kind.__name__} must be in {low}..{high - 1}, not {value}"
                )
            words[place.word] |= (value & (1 << place.bits) - 1) << place.low
        return struct.pack(f"<{DESCRIPTOR_WORDS}I", *words)

    @classmethod
    def from_words(cls, words, config: NetworkCoreConfig | None = None) -> Self:
        """Return the descriptor with these words, of a core; ValueError if an unused bit is 1."""
        values, rest = {}, list(words)
        rest[0] &= ~0xFF
        kind: type = cls
        for place in places(kind, config):
            mask = (1 << place.bits) - 1
            value = words[place.word] >> place.low & mask
            rest[place.word] &= ~(mask << place.low)
            values[place.name] = value - ((place.signed and value >> place.bits - 1) << place.bits)
        for number, word in enumerate(rest):
            if word:
                raise ValueError(
                    f"unused bits of word {number} of {cls.__name__} must be 0, not {word:#x}"
                )
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class ListLoad(_Descriptor):
    """Copies words from the memory to a buffer.

    Attributes
    ----------
    diagonal : flag
        Each word of B takes one vector. Column i of word w gets byte d of the vector in its byte d
        if ``d % cols == i % depth`` and, with ``cols > depth``, ``i // depth == w % phases``
        (``w`` counts the words of this load); its other bytes are 0.
    fill : flag
        All bytes of the vectors are ``fill_value``, and the memory is not read. With ``diagonal``,
        the words have ``fill_value`` on the diagonal, and 0 elsewhere.
    on_chip : flag
        ``source`` lies in the memory on the chip. Only with a program memory.
    packed : flag
        The words of B are of int4: `vectors` has the order of their beats. Not with ``diagonal`` or
        ``fill``, and only with the option ``int4``.
    jobs : int
        Jobs that must have ended before the load starts.
    target : LoadTarget
        The buffer: 0 is B, 1 the parameters, 2 the ADD table. ``diagonal`` has an effect on B only.
    fill_value : int8
        Each byte of the vectors with ``fill``.
    source : address
        Of the first vector. Vectors follow each other; a word of B has ``cols`` vectors, one with
        ``diagonal``; a line of parameters has ``line_vectors``, a word of the ADD table
        ``add_table_vectors``: 32 bits, little-endian, then unused bytes.
    first_word : int
        The first word of the buffer that is written.
    words : int
        Words of the buffer that are written.
    """

    OPCODE: ClassVar[ListOpcode] = ListOpcode.LOAD
    diagonal: int = _flag(8)
    fill: int = _flag(9)
    on_chip: int = _flag(10, "program_words")
    packed: int = _flag(11, "int4")
    jobs: int = _bits(1, 0, 16)
    target: int = _bits(1, 16, 8)
    fill_value: int = _bits(1, 24, 8, signed=True)
    source: int = _address(2)
    first_word: int = _bits(3, 0, 16)
    words: int = _bits(3, 16, 16)

    def word_vectors(self, config: NetworkCoreConfig) -> int:
        """Return the vectors of each word in the memory; of a load that is not ``packed``."""
        return {
            LoadTarget.B: 1 if self.diagonal else config.array.cols,
            LoadTarget.PARAMETERS: config.line_vectors,
            LoadTarget.ADD_TABLE: config.add_table_vectors,
        }[LoadTarget(self.target)]

    def vectors(self, config: NetworkCoreConfig) -> int:
        """Return the vectors that the load reads from the memory.

        A ``packed`` load reads beats of ``read_vectors`` vectors. The first one has the scales of
        ``scaled_words`` words, 4 bits each: of the columns of the first word, of the second one,
        and so on. The codes of these words follow, ``code_beats`` for a word: 4 bits for each
        weight, from the first column on. Then the scales of further words follow. The lower 4 bits
        of a byte come first. ``weight = code * scale``, with a signed code.
        """
        if self.fill:
            return 0
        if self.packed:
            return config.packed_vectors(self.words)
        return self.words * self.word_vectors(config)

    def read_vectors(self, config: NetworkCoreConfig) -> int:
        """Return the vectors of each read of the loader."""
        return min(self.word_vectors(config), config.read_vectors)

    def reads(self, config: NetworkCoreConfig) -> int:
        """Return the reads of the loader, one a cycle at most; a ``fill`` has none."""
        return self.vectors(config) // self.read_vectors(config)


@dataclass(frozen=True, kw_only=True)
class ListJob(_Descriptor):
    """One layer: a convolution of a map with a window, rescaled, stored as a map.

    The pixels of the output map are taken in panels of at most ``panel_rows``, the columns in tiles
    of ``cols``. Row p of the array reads vector ``c`` of tap (ky, kx) of pixel (oy, ox) at::

        y = first_y + oy * stride_y + ky * dilation_y
        x = first_x + ox * stride_x + kx * dilation_x
        number = input + ox * pixel + oy * row + kx * tap_x + ky * tap_y + c + group * group_step
        pixel = input_pixel_step
        row   = input_row_step + (out_width - 1) * pixel
        tap_x = tap_x_step + tap_vectors - 1
        tap_y = tap_y_step + (kernel_width - 1) * tap_x + tap_vectors - 1

    with the numbers of vectors that the addresses stand for. If y or x lies outside the map, all
    bytes are ``outside``. All rows that read in one cycle must read different banks; the compiler
    chooses pitches and ``panel_rows`` for that.

    Attributes
    ----------
    cross : flag
        A panel may contain pixels of several rows of the output map.
    add : flag
        Another map is added to the result. The ADD table has the scaled values: byte x of the added
        map has word ``x modulo 256``, and result y has word ``256 + (y modulo 256)``.
    multiply : flag
        Both words are multiplied: signed values of 16 bits. With ``add`` and ``multiply_maps``.
    sums : flag
        The output map has ``sums + bias``, modulo 2^32: 32 bits each, little-endian, so
        ``4 * columns`` bytes a pixel. Not together with ``add``.
    partial : flag
        The job stores nothing: the sums of the next job start from its sums. Such jobs have the
        same pixels, in one panel, and the same columns, in one tile.
    softmax : flag
        Each pixel of the output map is the SOFTMAX of ``columns`` bytes, at most 4,095, of the
        input map. Word d of the ADD table has ``exp`` of a value d less than the largest one, with
        31 fractional bits. Array and lanes do not work. Only with the option ``softmax``.
    early : flag
        The job starts while results of the job before are stored. A panel waits until the vector
        ``span`` behind the first tap of its last pixel lies before all that will be stored. Not
        with ``partial``, ``softmax`` or ``lstm``, and only with the option ``early``.
    lstm : flag
        A step of an LSTM with ``columns`` units, in one pixel: `weft.golden.network_core.lstm`.
        Both maps have its sums, ``add_input + add_pixel_step`` its cell. No other flag but `cross`.
    pairs, quads, quad_pairs, words : flag
        Columns have the digits of a sum, of 8, 16 or 32 bits: `weft.golden.network_core.digits`.
        One of them, not with ``add``, ``sums``, ``softmax`` or ``lstm``.
    pair_low, pair_high : int16
        Limits of a result of 16 bits.
    two_rows : flag
        Pixels 2n and 2n + 1 of a row are stored at once, to two banks: ``out_width`` and
        ``panel_rows`` are even. Not with ``add``, ``sums``, ``softmax`` or ``lstm``.
    loads : int
        Loads that must be complete before the job starts.
    panel_rows : int
        Pixels of a panel: at most ``rows``.
    out_height, out_width : int
        Rows, and pixels of a row, of the output map.
    columns : int
        Channels of the output map: N.
    tile_words : int
        Array steps of a tile: for ky: for kx: for c in ``tap_vectors``. Each one takes a word of B.
    kernel_height, kernel_width : int
        Taps of the kernel: ky and kx are less.
    tap_vectors : int
        Vectors that are read of each tap.
    group_tiles : int
        Tiles with the same input. A convolution has one group: all tiles of N. A depthwise
        convolution: ``max(1, depth // cols)``.
    group_step : address
        Step of the input after ``group_tiles`` tiles.
    in_height, in_width : int
        Rows, and pixels of a row, of the input map; at most 32,768 in a core with a microprogram.
    first_y, first_x : int
        Row and column of the first tap of pixel (0, 0): minus the padding. Those of all taps must
        be at most 65,535.
    stride_y, stride_x : int
        Rows and columns of the input map from an output pixel to the next one.
    dilation_y, dilation_x : int
        Rows and columns of the input map from a tap to the next one.
    input : address
        Of the first tap of pixel (0, 0). It may lie before the map.
    input_pixel_step : address
        Step of the input from an output pixel to the next one in its row.
    input_row_step : address
        Step of the input from the last output pixel of a row to the first one of the next row.
    tap_x_step : address
        From the last vector of a tap to the first one of the next tap.
    tap_y_step : address
        From the last vector of a row of the kernel to the first one of the next row.
    b_word : int
        Word of B of the first tile.
    b_step : int
        Words of B from tile to tile; 0: all tiles share their words.
    parameter_line : int
        Line of the first chunk; the lines of all chunks of a row follow each other.
    add_line : int
        A line with the scale of the sum with ``add``, the same one for all lanes, without a bias.
    output : address
        Of pixel (0, 0). The columns of a pixel follow each other, ``depth`` in a vector, or
        ``depth / 4`` with ``sums``.
    output_pixel_step : address
        Step of the output from a pixel to the next one in its row.
    output_row_step : address
        Step of the output from the last pixel of a row to the first one of the next row.
    outside : int8
        Each byte outside of the input map; with the option ``int16`` each even byte.
    outside_odd : int8
        Each odd byte outside of the input map.
    zero : int8
        Zero point of the result, before ``add``.
    low, high : int8
        Limits of the result, before ``add``.
    add_input : address
        Of pixel (0, 0) of the added map.
    add_pixel_step, add_row_step : address
        Steps of the added map, as those of the output.
    sum_zero : int8
        Zero point of the sum, with ``add``.
    sum_low, sum_high : int8
        Limits of the sum, with ``add``.
    span : address
        With ``early``: the largest step from the first tap of a pixel to a vector that it reads;
        or ``-banks * words``, if the job reads nothing that the job before stores.
    """

    OPCODE: ClassVar[ListOpcode] = ListOpcode.JOB
    cross: int = _flag(8)
    add: int = _flag(9)
    sums: int = _flag(10)
    partial: int = _flag(11)
    multiply: int = _flag(12, "multiply_maps")
    softmax: int = _flag(13, "softmax")
    early: int = _flag(14, "early")
    lstm: int = _flag(15, "lstm")
    pairs: int = _flag(16, "int16")
    quads: int = _flag(17, "int16")
    quad_pairs: int = _flag(18, "int16")
    words: int = _flag(19, "int16")
    two_rows: int = _flag(20, "two_rows")
    loads: int = _bits(1, 0, 16)
    panel_rows: int = _bits(1, 16, 8)
    out_height: int = _bits(2, 0, 16)
    out_width: int = _bits(2, 16, 16)
    columns: int = _bits(3, 0, 16)
    tile_words: int = _bits(3, 16, 16)
    kernel_height: int = _bits(4, 0, 8)
    kernel_width: int = _bits(4, 8, 8)
    tap_vectors: int = _bits(4, 16, 16)
    group_tiles: int = _bits(5, 0, 16)
    group_step: int = _address(6)
    in_height: int = _bits(7, 0, 16)
    in_width: int = _bits(7, 16, 16)
    first_y: int = _bits(8, 0, 16, signed=True)
    first_x: int = _bits(8, 16, 16, signed=True)
    stride_y: int = _bits(9, 0, 8)
    stride_x: int = _bits(9, 8, 8)
    dilation_y: int = _bits(9, 16, 8)
    dilation_x: int = _bits(9, 24, 8)
    input: int = _address(10)
    input_pixel_step: int = _address(11)
    input_row_step: int = _address(12)
    tap_x_step: int = _address(13)
    tap_y_step: int = _address(14)
    b_word: int = _bits(15, 0, 16)
    b_step: int = _bits(15, 16, 16)
    parameter_line: int = _bits(16, 0, 16)
    add_line: int = _bits(16, 16, 16)
    output: int = _address(17)
    output_pixel_step: int = _address(18)
    output_row_step: int = _address(19)
    outside: int = _bits(20, 0, 8, signed=True)
    zero: int = _bits(20, 8, 8, signed=True)
    low: int = _bits(20, 16, 8, signed=True)
    high: int = _bits(20, 24, 8, signed=True)
    add_input: int = _address(21)
    add_pixel_step: int = _address(22)
    add_row_step: int = _address(23)
    outside_odd: int = _bits(24, 0, 8, "int16", signed=True)
    sum_zero: int = _bits(24, 8, 8, signed=True)
    sum_low: int = _bits(24, 16, 8, signed=True)
    sum_high: int = _bits(24, 24, 8, signed=True)
    span: int = _address(25, "early")
    pair_low: int = _bits(26, 0, 16, "int16", signed=True)
    pair_high: int = _bits(26, 16, 16, "int16", signed=True)


@dataclass(frozen=True, kw_only=True)
class ListLoop(_Descriptor):
    """Repeats the ``body`` descriptors before it, which contain no loop and no end.

    Attributes
    ----------
    times : int
        Executions of the body in all, with the first one.
    body : int
        Descriptors of the body.
    body_loads : int
        Loads of the body. Each turn adds them to ``loads`` of jobs.
    body_jobs : int
        Jobs of the body. Each turn adds them to ``jobs`` of loads.
    source_step : address
        Each turn adds it to ``source`` of loads.
    input_step : address
        Each turn adds it to ``input`` of jobs.
    output_step : address
        Each turn adds it to ``output`` of jobs.
    add_step : address
        Each turn adds it to ``add_input`` of jobs.
    """

    OPCODE: ClassVar[ListOpcode] = ListOpcode.LOOP
    times: int = _bits(1, 0, 16)
    body: int = _bits(1, 16, 16)
    body_loads: int = _bits(2, 0, 16)
    body_jobs: int = _bits(2, 16, 16)
    source_step: int = _address(3)
    input_step: int = _address(4)
    output_step: int = _address(5)
    add_step: int = _address(6)


@dataclass(frozen=True, kw_only=True)
class ListEnd(_Descriptor):
    """Ends the list when all loads and jobs before it have ended.

    Attributes
    ----------
    interrupt : flag
        Has no effect: an IP core raises its interrupt ``done`` at each end.
    result : address
        Of the bytes that DONE carries: the result of the list.
    result_bytes : int
        How many bytes, at most 1,024.
    """

    OPCODE: ClassVar[ListOpcode] = ListOpcode.END
    interrupt: int = _flag(8)
    result_bytes: int = _bits(1, 0, 16)
    result: int = _address(2)


KINDS = {kind.OPCODE: kind for kind in (ListLoad, ListJob, ListLoop, ListEnd)}


def unpack(
    data: bytes, config: NetworkCoreConfig | None = None
) -> ListLoad | ListJob | ListLoop | ListEnd:
    """Return the descriptor with these `DESCRIPTOR_BYTES` bytes.

    Raises ValueError for an unknown opcode or version, and if an unused bit is 1: with a config,
    also one that its core does not have.
    """
    words = struct.unpack(f"<{DESCRIPTOR_WORDS}I", data)
    opcode, version = words[0] & 15, words[0] >> 4 & 15
    if version != LIST_VERSION or opcode not in KINDS:
        raise ValueError(
            f"a descriptor must have version {LIST_VERSION} and an opcode in 1..4,"
            f" not version {version} and opcode {opcode}"
        )
    return KINDS[ListOpcode(opcode)].from_words(words, config)


def unpack_list(data: bytes) -> list:
    """Return the descriptors at the start of ``data``, up to the first `ListEnd`.

    Raises ValueError as `unpack`, and if there is no end.
    """
    descriptors: list = []
    for at in range(0, len(data) - DESCRIPTOR_BYTES + 1, DESCRIPTOR_BYTES):
        descriptors.append(unpack(data[at : at + DESCRIPTOR_BYTES]))
        if isinstance(descriptors[-1], ListEnd):
            return descriptors
    raise ValueError(f"a list must have an end in its {len(data)} bytes")


class NetworkState(IntEnum):
    """What the core does, or how its last list ended."""

    IDLE = 0  # no list since the reset
    RUNNING = 1
    DONE = 2
    ABORTED = 3
    ERROR = 4


_REASONS = {
    ListError.OPCODE: "the list has an unknown descriptor",
    ListError.FIELD: "a field of a descriptor does not fit the core",
    ListError.ADDRESS: "an address lies outside of the memory that the list may use",
    ListError.DEADLOCK: "loads and jobs of the list wait for each other",
    ListError.ABORTED: "the list was aborted",
    ListError.BUS: "the program memory answered with an error (SLVERR or DECERR)",
    ListError.TIMEOUT: "the program memory did not answer",
}


@dataclass(frozen=True)
class ListReport:
    """How a list ended.

    Attributes
    ----------
    error : ListError
    jobs : int
        Jobs that have ended; after an error, the number of the job with the error.
    result : bytes
        The bytes of the memory that the list's last descriptor, END, names; empty if it names none.
    cycles : int or None
        Cycles from START to the end; None if they were not counted.
    """

    error: ListError
    jobs: int
    result: bytes = b""
    cycles: int | None = None

    def problem(self, where: str | None = None) -> str:
        """Return the error in words, "" if there is none; ``where``: else the number of the job."""
        if self.error == ListError.NONE:
            return ""
        where = where or f"in job {self.jobs}"
        return f"the list ended with error {self.error.name} {where}: {_REASONS[self.error]}"
