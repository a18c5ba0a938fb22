"""`LanguageCoreConfig`: the sizes of a one-row core for language models."""

from dataclasses import dataclass

from weft.targets import TARGETS

__all__ = [
    "COLUMNS", "DEPTH", "GROUPS_OF_WORD", "HEADS", "LANES", "PAIR_BYTES", "WORD_BYTES",
    "LanguageCoreConfig",
]

COLUMNS = 8  # sums that the array computes at the same time
DEPTH = 16  # products of a column in a cycle
LANES = 4  # values that the lanes compute in a cycle: a group
HEADS = 16  # heads of attention, at most
WORD_BYTES = COLUMNS * DEPTH  # of the main memory: what a step of the array reads
PAIR_BYTES = 2 * LANES  # of a parameter group: an int16 for each lane
GROUPS_OF_WORD = WORD_BYTES // PAIR_BYTES
_LIMITS = {"words": (16, 4096), "groups": (16, 4096), "side_groups": (4, 1024)}


@dataclass(frozen=True)
class LanguageCoreConfig:
    """The sizes of a one-row core: 1 x 8 x 16 MAC cells, int8 weights and int16 activations.

    Attributes
    ----------
    words : int
        Words of the main memory, 128 bytes each: weights, keys, values, parameters, descriptors.
        A multiple of 16 in 16..4096.
    groups : int
        Groups of the activation memory, four int16 each. A multiple of 16 in 16..4096.
    side_groups : int
        Groups of the side memory, which has the residual and the second factors; 4..1024.
    target : str
        FPGA family, as in `weft.config.Config`.

    Raises
    ------
    ValueError
        If a size or the target is not allowed; all problems in one message.
    """

    words: int = 3072
    groups: int = 2048
    side_groups: int = 512
    target: str = "generic"

    def __post_init__(self):
        problems = [
            f"{name} must be in {low}..{high}, not {getattr(self, name)}"
            for name, (low, high) in _LIMITS.items() if not low <= getattr(self, name) <= high
        ]
        problems += [
            f"{name} must be a multiple of 16, not {getattr(self, name)}"
            for name in ("words", "groups") if getattr(self, name) % 16
        ]
        if self.target not in TARGETS:
            problems.append(f"target must be one of {', '.join(TARGETS)}, not {self.target}")
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def vectors(self) -> int:
        """Vectors of the activation memory: 16 int16, the operand of a step."""
        return self.groups * LANES // DEPTH
