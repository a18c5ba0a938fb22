"""`NetworkCoreConfig`: the parameters of a core that executes networks from its own memory."""

import dataclasses
import hashlib
import json
import operator
from dataclasses import dataclass
from typing import ClassVar, SupportsIndex

from weft.config import Config, ConfigError
from weft.design import NETWORK
from weft.frames import MAX_WRITE, WRITE_FIELDS
from weft.hints import did_you_mean

__all__ = [
    "ADD_TABLE_BYTES", "ADD_TABLE_WORDS", "FACTOR_BITS", "LSTM_CELL_SHIFT", "LSTM_LIMITS",
    "LSTM_PARAMETERS", "LSTM_SCALES", "LSTM_WORDS", "MAX_SOFTMAX", "MOST_DIGITS", "OPTIONS",
    "PARAMETER_BYTES", "SIZES", "TEXTS", "NetworkCoreConfig", "has_single_port",
]

PARAMETER_BYTES = 9  # of a column: bias (4), multiplier (4), shift (1)
ADD_TABLE_WORDS = 512  # of the ADD table: 256 for the added map, then 256 for the results
ADD_TABLE_BYTES = 4  # of a word of that table
MAX_SOFTMAX = 4095  # values of a row: sums of exponentials fit 31 bits, as in TensorFlow Lite Micro
# Words of the ADD table of a job with ``lstm``, behind 256 of its functions: a multiplier and a
# shift of each scale, the limits of the cell, and the shift of its function.
LSTM_PARAMETERS = 256
LSTM_SCALES = 11
LSTM_LIMITS = LSTM_PARAMETERS + 2 * LSTM_SCALES
LSTM_CELL_SHIFT = LSTM_LIMITS + 1
LSTM_WORDS = LSTM_CELL_SHIFT + 1
MIN_LSTM_DEPTH = 4  # a sum of 32 bits lies in one vector
MOST_DIGITS = 4  # columns whose sums are one sum of 32 bits: a chunk has all of them
FACTOR_BITS = 16  # of a word of that table that is multiplied: the operands of any DSP block
MAX_WORDS = 1 << 16  # of each bank of the memory on the chip
MAX_PROGRAM_WORDS = 1 << 22  # of each bank of a program memory: an address has 32 bits
MAX_BEAT = 128  # bytes of a beat of AXI4
MAX_RESIDENT = 1 << 20  # vectors of B that the host writes: an address has 24 bits for words
MAX_SINGLE_PORT = 1 << 15  # words of a memory with one port, and of each buffer beside it


def _field(default, text):
    return dataclasses.field(default=default, metadata={"text": text})


@dataclass(frozen=True, kw_only=True)
class NetworkCoreConfig:
    """A core with a memory for maps, weights and the list; ``docs/network-core.md`` describes it.

    Parameters
    ----------
    array : Config
        The array, its lanes and its rounding mode. Its operand buffers and streams are not used.
    words : int
        Words of each bank of the memory; a power of two. A word is a vector of ``depth`` bytes.
    b_words : int
        Words of the B buffer; a word has ``cols`` vectors.
    lines : int
        Lines of the parameter buffer; a line has the parameters of ``lanes`` columns.
    read_vectors : int
        Vectors that loads, descriptors and the host read in one cycle.
    program_words : int
        0: lists, weights and parameters lie in the memory beside the maps. Otherwise they lie in a
        program memory behind an AXI4 master, and the maps only in the memory. The program memory
        has as many banks of this many words; a power of two.
    softmax : bool
        The core has a unit that computes SOFTMAX.
    multiply_maps : bool
        A job can multiply its results with another map, where ADD adds them: a multiplier a lane.
    lstm : bool
        The core has a unit that computes the gates and the cell of an LSTM.
    int16 : bool
        Jobs can have values of 16 bits: neighbouring columns are the digits of a sum.
    int4 : bool
        Loads can have weights of int4, which the loader unpacks: codes of 4 bits, and a scale for
        each vector.
    early : bool
        The array can start with a job while the results of the job before are still stored.
    two_rows : bool
        Two rows of results leave the array in each cycle, and a job can store both at once.
    resident : bool
        Lists have no loads: the host writes weights, parameters and an ADD table where the array
        and the lanes read them. Only with one row, whose array uses each weight once.

    Raises
    ------
    ConfigError
        For an invalid value or combination of values; one line for each problem.
    """

    kind: ClassVar[str] = NETWORK

    array: Config
    words: int = _field(1024, "words of each bank of the memory")
    b_words: int = _field(512, "words of the B buffer")
    lines: int = _field(512, "lines of the parameter buffer")
    read_vectors: int = _field(
        4, "vectors that a load, a descriptor or a read of the host takes in a cycle"
    )
    program_words: int = _field(
        0, "words of each bank of the program memory; 0: no such memory"
    )
    softmax: bool = _field(False, "a unit that computes SOFTMAX of rows of a map")
    multiply_maps: bool = _field(
        False, "jobs can multiply their results with another map; a multiplier a lane"
    )
    lstm: bool = _field(False, "a unit that computes the gates and the cell of an LSTM of int8")
    int16: bool = _field(False, "jobs can have values of 16 bits: tensors and states of int16")
    int4: bool = _field(False, "loads can have weights of int4, which the loader unpacks")
    early: bool = _field(
        False, "the array starts with a job while the results of the job before are stored"
    )
    two_rows: bool = _field(
        False, "two rows of results leave the array in each cycle; as many lanes more"
    )
    resident: bool = _field(
        False, "no loads: the host writes weights, parameters and an ADD table; one row only"
    )

    def __post_init__(self):
        array, problems = self.array, []
        if not isinstance(array, Config):
            raise ConfigError(f"array must be a Config, not {array!r}")
        for name in SIZES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, SupportsIndex):
                problems.append(f"{name} must be an integer, not {value!r}")
            else:
                object.__setattr__(self, name, operator.index(value))
        for name in OPTIONS:
            value = getattr(self, name)
            if not isinstance(value, bool):
                problems.append(f"{name} must be True or False, not {value!r}")
        if problems:
            raise ConfigError("\n".join(problems))
        for name, value, allowed in (
            ("dtype", array.dtype, ("int8",)),
            ("requantize", array.requantize, ("tflite", "single", "onnx")),
            ("activation", array.activation, ("none",)),
            ("b_zero_point", array.b_zero_point, ("none",)),
            ("drain", array.drain, ("overlapped",)),
            ("c_words", array.c_words, (0,)),
        ):
            if value not in allowed:
                rule = " or ".join(map(repr, allowed))
                problems.append(f"{name} must be {rule} in a network core, not {value!r}")
        for name, value in (("depth", array.depth), ("cols", array.cols), ("words", self.words),
                            ("program_words", self.program_words or 1)):
            if value & (value - 1) or value < 1:
                problems.append(
                    f"{name} must be a power of two in a network core, not {value}"
                )
        if array.lanes > min(array.depth, array.cols):
            problems.append(
                f"lanes must be at most depth ({array.depth}) and cols ({array.cols}),"
                f" not {array.lanes}"
            )
        for name, low, high in (("words", 16, MAX_WORDS), ("b_words", 2, 1 << 16),
                                ("lines", 4, 1 << 16)):
            if not low <= getattr(self, name) <= high:
                problems.append(f"{name} must be in {low}..{high}, not {getattr(self, name)}")
        if self.read_vectors not in (1, 2, 4, 8) or array.cols % self.read_vectors:
            problems.append(
                f"read_vectors must be 1, 2, 4 or 8 and divide cols ({array.cols}),"
                f" not {self.read_vectors}"
            )
        if self.program_words:
            problems += self._program_problems()
        if self.softmax and array.requantize in ("single", "onnx"):
            problems.append(
                f"softmax must be False with requantize {array.requantize!r}, whose SOFTMAX is"
                " float32, not True"
            )
        if self.lstm and array.requantize != "tflite":
            problems.append(
                f"lstm must be False with requantize {array.requantize!r}, whose LSTM rounds in"
                " another way, not True"
            )
        if self.lstm and array.depth < MIN_LSTM_DEPTH:
            problems.append(f"depth must be at least {MIN_LSTM_DEPTH} with lstm, not {array.depth}")
        if self.resident:
            problems += self._resident_problems()
        if self.int16:
            problems += self._int16_problems()
        if self.int4:
            problems += self._int4_problems()
        if self.two_rows:
            problems += self._two_rows_problems()
        if has_single_port(array):
            problems += self._single_port_problems()
        if problems:
            raise ConfigError("\n".join(problems))

    def _int16_problems(self):
        """The problems of lanes that add the sums of neighbouring columns."""
        array = self.array
        if array.requantize != "tflite":
            yield (
                f"int16 must be False with requantize {array.requantize!r}, which computes values"
                " of 16 bits in another way, not True"
            )
        if array.lanes % MOST_DIGITS:
            yield f"lanes must be a multiple of {MOST_DIGITS} with int16, not {array.lanes}"
        if array.family.serial_epilogue and array.scale_cycles >= 4:
            yield (
                f"scale_cycles must be at most 2 with int16 and target {array.target!r}, not"
                f" {array.scale_cycles}"
            )

    def _int4_problems(self):
        """The problems of beats with the codes of two groups of columns."""
        array = self.array
        if 2 * self.read_vectors > array.cols:
            yield (
                f"read_vectors must be at most cols / 2 ({array.cols / 2:g}) with int4, not"
                f" {self.read_vectors}"
            )
        if array.cols > 2 * self.beat_bytes:
            yield (
                f"cols must be at most 2 * read_vectors * depth ({2 * self.beat_bytes}) with int4,"
                f" whose beats have the scales of whole words, not {array.cols}"
            )

    def _two_rows_problems(self):
        """The problems of a drain with two rows, whose lanes have the rows of a pair."""
        array = self.array
        for name, value in (("rows", array.rows), ("hop", array.hop)):
            if value % 2:
                yield f"{name} must be even with two_rows, not {value}"
        if array.lanes != array.cols:
            yield f"lanes must be cols ({array.cols}) with two_rows, not {array.lanes}"
        if self.int16:
            yield "int16 must be False with two_rows, whose lanes add no digits, not True"

    def _program_problems(self):
        """The problems of a program memory, and of the beats of its AXI4 master."""
        if not 16 <= self.program_words <= MAX_PROGRAM_WORDS:
            yield (
                f"program_words must be 0 or in 16..{MAX_PROGRAM_WORDS}, not {self.program_words}"
            )
        if self.beat_bytes > MAX_BEAT:
            yield (
                f"read_vectors * depth must be at most {MAX_BEAT} with a program memory, not"
                f" {self.beat_bytes}"
            )

    def _resident_problems(self):
        """What a core without loads must have, and what needs loads."""
        for name, value, rule in (
            ("rows", self.array.rows, 1), ("read_vectors", self.read_vectors, 1),
            ("program_words", self.program_words, 0), ("softmax", self.softmax, False),
            ("lstm", self.lstm, False), ("int4", self.int4, False),
        ):
            if value != rule:
                yield f"{name} must be {rule!r} with resident, not {value!r}"
        if self.b_words * self.array.cols > MAX_RESIDENT:
            yield (
                f"b_words * cols must be at most {MAX_RESIDENT} with resident, not"
                f" {self.b_words * self.array.cols}"
            )

    def _single_port_problems(self):
        """What a core whose memory has one port must have: its microprogram knows nothing else."""
        array = self.array
        for name, value, rule in (
            ("cols", array.cols, 4), ("depth", array.depth, 4), ("lanes", array.lanes, 1),
            ("multiplier", array.multiplier, "plain"), ("requantize", array.requantize, "tflite"),
            ("read_vectors", self.read_vectors, 1),
            ("program_words", self.program_words, 0), ("multiply_maps", self.multiply_maps, False),
            ("softmax", self.softmax, False), ("lstm", self.lstm, False),
            ("early", self.early, False), ("resident", self.resident, False),
            ("int16", self.int16, False), ("int4", self.int4, False),
            ("two_rows", self.two_rows, False),
        ):
            if value != rule:
                yield self._single_port_problem(name, repr(rule), value)
        if array.scale_cycles not in (4, 8):
            yield self._single_port_problem("scale_cycles", "4 or 8", array.scale_cycles)
        for name in ("words", "b_words", "lines"):
            value = getattr(self, name)
            if value > MAX_SINGLE_PORT:
                yield self._single_port_problem(name, f"at most {MAX_SINGLE_PORT}", value)

    def _single_port_problem(self, name, rule, value):
        return (
            f"{name} must be {rule} with target {self.array.target!r} and 1 row, whose memory has"
            f" one port, not {value!r}"
        )

    @classmethod
    def from_dict(cls, array: Config, values: dict) -> "NetworkCoreConfig":
        """A NetworkCoreConfig from field values; unknown names are reported."""
        known = [f.name for f in dataclasses.fields(cls) if f.name != "array"]
        problems = [
            f"{name} is not a field of [network_core]; the fields are {', '.join(known)}"
            f"{did_you_mean(name, known)}"
            for name in values if name not in known
        ]
        if problems:
            raise ConfigError("\n".join(problems))
        return cls(array=array, **values)

    @property
    def target(self) -> str:
        """FPGA family."""
        return self.array.target

    @property
    def name(self) -> str:
        """Short name, usable as the name of a folder or a file."""
        return f"{self.array.name}-networks"

    @property
    def peak(self) -> int:
        """MAC/cycle when every PE is active."""
        return self.array.peak

    @property
    def banks(self) -> int:
        """Banks of the memory: odd, and at least ``rows`` and ``read_vectors``."""
        if self.array.rows == 1:
            return self.read_vectors
        least = max(self.array.rows, self.read_vectors)
        return least + (least % 2 == 0)

    @property
    def vectors(self) -> int:
        """Vectors that the memory holds."""
        return self.banks * self.words

    @property
    def memory_bytes(self) -> int:
        """Bytes that the memory holds."""
        return self.vectors * self.array.depth

    @property
    def program_bytes(self) -> int:
        """Bytes of the program memory behind AXI4; 0 without one."""
        return self.banks * self.program_words * self.array.depth

    def size_text(self, words: int) -> str:
        """The parts of a memory with ``words`` words in a bank: 3 banks of 64 words of 4 bytes."""
        banks = "1 bank" if self.banks == 1 else f"{self.banks} banks"
        return f"{banks} of {words:,} words of {self.array.depth} bytes"

    @property
    def address_words(self) -> int:
        """Words of each bank that an address can name: of the larger memory.

        With ``resident``, of all regions.
        """
        if self.resident:
            return len(self.regions) * self.region
        return max(self.words, self.program_words)

    @property
    def regions(self) -> tuple[int, ...]:
        """Vectors of the memories that the host writes with ``resident``.

        The memory with maps and lists comes first, then those of `LoadTarget`, in its order.
        """
        return (
            self.vectors, self.b_words * self.array.cols, self.lines * self.line_vectors,
            ADD_TABLE_WORDS * self.add_table_vectors,
        )

    @property
    def region(self) -> int:
        """Vectors from one of these memories to the next, in the addresses of the host."""
        return 1 << (max(self.regions) - 1).bit_length()

    def loaded_vector(self, target: int, word: int) -> int:
        """Number of the first vector of a word of a `LoadTarget`, with ``resident``."""
        vectors = self.array.cols, self.line_vectors, self.add_table_vectors
        return (1 + target) * self.region + word * vectors[target]

    @property
    def beat_bytes(self) -> int:
        """Bytes of a beat of the AXI4 master: what the core reads in a cycle."""
        return self.read_vectors * self.array.depth

    @property
    def most_words(self) -> int:
        """Words that a bank of the memory of such a core can have."""
        return MAX_SINGLE_PORT if has_single_port(self.array) else MAX_WORDS

    @property
    def write_bytes(self) -> int:
        """Bytes of data in a WRITE frame, at most. The receiver has space for two frames: in one
        block RAM of 2,048 bytes, or of 1,024 bytes where block RAMs are scarce.
        """
        return 488 if has_single_port(self.array) else MAX_WRITE - WRITE_FIELDS

    @property
    def code_beats(self) -> int:
        """Beats with the codes of a word of B, of int4: each has those of two beats of weights."""
        return self.array.cols // (2 * self.read_vectors)

    @property
    def scaled_words(self) -> int:
        """Words of B whose scales are a beat: 4 bits for each vector."""
        return 2 * self.beat_bytes // self.array.cols

    def packed_vectors(self, words: int) -> int:
        """Vectors in the memory of some words of B, of int4: codes, and a beat of scales for each
        ``scaled_words`` of them.
        """
        beats = words * self.code_beats + -(-words // self.scaled_words)
        return beats * self.read_vectors

    @property
    def line_vectors(self) -> int:
        """Vectors of a parameter line, in the memory and in its buffer.

        With ``resident`` a power of two: an address has its line in its upper bits.
        """
        vectors = -(-PARAMETER_BYTES * self.array.lanes // self.array.depth)
        if self.resident:
            return 1 << (vectors - 1).bit_length()
        return -(-vectors // self.read_vectors) * self.read_vectors

    @property
    def add_table_vectors(self) -> int:
        """Vectors of a word of the ADD table, in the memory."""
        depth = self.array.depth
        return 1 if depth >= ADD_TABLE_BYTES else max(self.read_vectors, ADD_TABLE_BYTES // depth)

    @property
    def row_chunks(self) -> int:
        """Chunks of a row of a tile."""
        return self.array.cols // self.array.lanes

    @property
    def drained_rows(self) -> int:
        """Rows of results that leave the array in a cycle: a row of the result buffer."""
        return 2 if self.two_rows else 1

    @property
    def tile_rows(self) -> int:
        """Rows of the result buffer that a tile takes."""
        return self.array.rows // self.drained_rows

    @property
    def phases(self) -> int:
        """Words of B for each tap of a depthwise tile: vectors of ``cols`` channels."""
        return max(1, self.array.cols // self.array.depth)

    @property
    def has_units(self) -> bool:
        """Whether the output section has units with jobs of their own: SOFTMAX, LSTM."""
        return self.softmax or self.lstm

    @property
    def hash(self) -> int:
        """32-bit hash: first bytes of SHA-256 of all fields as sorted JSON.

        Options that are off are left out. So a new option changes no core without it.
        """
        fields = dataclasses.asdict(self)
        for name in OPTIONS:
            if not fields[name]:
                del fields[name]
        text = json.dumps(fields, sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


# The fields that are numbers, and those that are True or False.
SIZES, OPTIONS = (
    tuple(f.name for f in dataclasses.fields(NetworkCoreConfig) if f.type is kind)
    for kind in (int, bool)
)
# By the name of each field beside the array: what it is, in one line, for commands and documents.
TEXTS = {
    f.name: f.metadata["text"] for f in dataclasses.fields(NetworkCoreConfig) if f.metadata
}


def has_single_port(array: Config) -> bool:
    """Whether the memory has one port: a microprogram controls such a core, of one row.

    With more rows the array reads several banks, which single-port memories are too large for.
    """
    return array.family.single_port and array.rows == 1

