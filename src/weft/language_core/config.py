"""`LanguageCoreConfig`: the sizes of a core for language models."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import ClassVar

from weft.design import LANGUAGE
from weft.targets import TARGETS

__all__ = [
    "BEAT_BYTES", "CODE_BEATS", "COLUMNS", "DEPTH", "GROUPS_OF_WORD", "HEADS", "LANES",
    "GROUP_BYTES", "PROGRAM_BITS", "SCALED_WORDS", "TEXT_TOKENS", "WORD_BEATS", "WORD_BYTES",
    "LanguageCoreConfig",
]

COLUMNS = 8  # sums that the array computes at the same time
DEPTH = 16  # products of a column in a cycle
LANES = 4  # values that the lanes compute in a cycle: a group
HEADS = 16  # heads of attention, at most
WORD_BYTES = COLUMNS * DEPTH  # of the main memory: what a step of the array reads
GROUP_BYTES = 2 * LANES  # an int16 for each lane
GROUPS_OF_WORD = WORD_BYTES // GROUP_BYTES
BEAT_BYTES = 16  # of the program memory
WORD_BEATS = WORD_BYTES // BEAT_BYTES  # a word is one burst
SCALED_WORDS = 4  # words of int4 that share a beat of scales: one for each column
CODE_BEATS = WORD_BEATS // 2  # of the codes of a word
PROGRAM_BITS = 20  # of the number of a word in the program memory
TEXT_TOKENS = 1024  # of the memory for the text, on a board: a block RAM
_PASSES = 2  # another layout or meaning of the descriptors is another number
_LIMITS = {"words": (16, 4096), "groups": (16, 4096), "side_groups": (4, 1024)}
_MICRO_LIMITS = {"words": (16, 1024), "groups": (16, 128), "side_groups": (4, 512)}
_MICRO_COLUMNS = 4  # of a core with a microprogram; each has one product in a cycle
_MICRO_TARGETS = "generic", "ice40up"  # whose DSP blocks it instantiates, or a simulator models


@dataclass(frozen=True)
class LanguageCoreConfig:
    """The sizes of a core of one row, with int8 weights and int16 activations.

    By default it has 1 x 8 x 16 MAC cells and reads a list of passes. With a microprogram it has 1
    x 4 MAC cells and reads an instruction a cycle: it computes models of the architecture microgpt.

    Attributes
    ----------
    words : int
        Words of the main memory, 128 bytes each: weights, keys, values, parameters, descriptors;
        or instructions. A multiple of 16 in 16..4096; with a microprogram at most 1024.
    groups : int
        Groups of the activation memory, four int16 each. A multiple of 16 in 16..4096; with a
        microprogram at most 128.
    side_groups : int
        Groups of the side memory, which has the residual and the second factors; 4..1024. With a
        microprogram it has keys and values, four int8 a group; 4..512.
    program_words : int
        Words of the program memory behind AXI4, which then has the weights, and the keys and values
        of all layers: a multiple of 16 in 16..1048576. With 0 there is none, and all of a model is
        in the main memory. With a microprogram it is 0.
    int4 : bool
        The core unpacks weights of int4 on their way from the program memory. Weights of int8, and
        models of int8, are as without it.
    target : str
        FPGA family, as in `weft.config.Config`. With a microprogram, ``ice40up`` or ``generic``,
        which is for simulation only.
    microprogram : bool

    Raises
    ------
    ValueError
        If a size or the target is not allowed; all problems in one message.
    """

    kind: ClassVar[str] = LANGUAGE

    words: int = 3072
    groups: int = 2048
    side_groups: int = 512
    program_words: int = 0
    int4: bool = False
    target: str = "generic"
    microprogram: bool = False

    def __post_init__(self):
        limits = _MICRO_LIMITS if self.microprogram else _LIMITS
        problems = [
            f"{name} must be in {low}..{high}, not {getattr(self, name)}"
            for name, (low, high) in limits.items() if not low <= getattr(self, name) <= high
        ]
        problems += [
            f"{name} must be a multiple of 16, not {getattr(self, name)}"
            for name in ("words", "groups", "program_words") if getattr(self, name) % 16
        ]
        if self.program_words and not 16 <= self.program_words <= 1 << PROGRAM_BITS:
            problems.append(
                f"program_words must be 0 or in 16..{1 << PROGRAM_BITS}, not {self.program_words}"
            )
        if self.program_words and self.microprogram:
            problems.append(
                f"program_words must be 0 with a microprogram, not {self.program_words}"
            )
        if self.int4 and not self.program_words:
            problems.append("int4 must be false without a program memory, not true")
        if self.target not in TARGETS:
            problems.append(f"target must be one of {', '.join(TARGETS)}, not {self.target}")
        elif self.microprogram and self.target not in _MICRO_TARGETS:
            problems.append(
                f"target must be {' or '.join(_MICRO_TARGETS)} with a microprogram, not"
                f" {self.target}"
            )
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def columns(self) -> int:
        """Sums that the array computes at the same time."""
        return _MICRO_COLUMNS if self.microprogram else COLUMNS

    @property
    def depth(self) -> int:
        """Products of a column in a cycle."""
        return 1 if self.microprogram else DEPTH

    @property
    def vectors(self) -> int:
        """Vectors of the activation memory: 16 int16, the operand of a step."""
        return self.groups * LANES // DEPTH

    @property
    def main_groups(self) -> int:
        """Groups of the main memory."""
        return self.words * GROUPS_OF_WORD

    @property
    def beat_bytes(self) -> int:
        """Bytes of a beat of the program memory."""
        return BEAT_BYTES

    @property
    def program_bytes(self) -> int:
        """Bytes of the program memory."""
        return self.program_words * WORD_BYTES

    @property
    def name(self) -> str:
        """Short name, usable as the name of a folder or a file."""
        memory = f"_program{self.program_words}" if self.program_words else ""
        memory += "_int4" if self.int4 else ""
        return f"language_1x{self.columns}x{self.depth}_{self.words}{memory}"

    @property
    def hash(self) -> int:
        """32-bit hash of all fields and of the list: a register of the core on a board."""
        fields = dataclasses.asdict(self) | {"kind": self.kind}
        for name in ("program_words", "int4"):  # a core without it has no such register either
            if not fields[name]:
                del fields[name]
        if not self.microprogram:
            fields["passes"] = _PASSES
        text = json.dumps(fields, sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")

    @property
    def peak(self) -> int:
        """MAC/cycle when the whole array is active."""
        return self.columns * self.depth
