"""`LanguageCoreConfig`: the sizes of a core for language models."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import ClassVar

from weft.design import LANGUAGE
from weft.targets import TARGETS

__all__ = [
    "COLUMNS", "DEPTH", "GROUPS_OF_WORD", "HEADS", "LANES", "PAIR_BYTES", "TEXT_TOKENS",
    "WORD_BYTES", "LanguageCoreConfig",
]

COLUMNS = 8  # sums that the array computes at the same time
DEPTH = 16  # products of a column in a cycle
LANES = 4  # values that the lanes compute in a cycle: a group
HEADS = 16  # heads of attention, at most
WORD_BYTES = COLUMNS * DEPTH  # of the main memory: what a step of the array reads
PAIR_BYTES = 2 * LANES  # of a parameter group: an int16 for each lane
GROUPS_OF_WORD = WORD_BYTES // PAIR_BYTES
TEXT_TOKENS = 1024  # of the memory for the text, on a board: a block RAM
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
            for name in ("words", "groups") if getattr(self, name) % 16
        ]
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
        """Parameter groups of the main memory."""
        return self.words * GROUPS_OF_WORD

    @property
    def name(self) -> str:
        """Short name, usable as the name of a folder or a file."""
        return f"language_1x{self.columns}x{self.depth}_{self.words}"

    @property
    def hash(self) -> int:
        """32-bit hash of all fields, which the core has in a register on a board."""
        fields = json.dumps(dataclasses.asdict(self) | {"kind": self.kind}, sort_keys=True)
        return int.from_bytes(hashlib.sha256(fields.encode()).digest()[:4], "little")

    @property
    def peak(self) -> int:
        """MAC/cycle when the whole array is active."""
        return self.columns * self.depth
