"""`Sdram`: the memory of a board, for the program memory of a core."""

from dataclasses import dataclass

from weft.design import PerKind
from weft.sdram import SdramChip

__all__ = ["SDRAM_PINS", "Sdram", "has_sdram", "sdram_problem"]

# The pins of a chip: resources of amaranth-boards have these names.
SDRAM_PINS = "clk", "clk_en", "cs", "ras", "cas", "we", "ba", "a", "dqm", "dq"


@dataclass(frozen=True, kw_only=True)
class Sdram:
    """The SDRAM of a board.

    Attributes
    ----------
    chip : `weft.sdram.SdramChip`
        The slowest of those that boards of this name have, and the smallest.
    phase : int
        Degrees from an edge of the core's clock to that of the chip: 0 to 359. Outputs of the core
        change after its edge, and the chip must take them, at its own edge, before the next one. It
        answers after its edge, and the core takes that at an edge of its own.
    resource : tuple
        Of the platform, and its number.
    """

    chip: SdramChip
    phase: int = 270
    resource: tuple[str, int] = ("sdram", 0)


_PROGRAM_BYTES = PerKind(
    product=lambda config: 0, network=lambda config: config.program_bytes,
    language=lambda config: config.program_bytes,
)
_WORD = PerKind(product="", network="a word of all banks", language="a word")


def has_sdram(config) -> bool:
    """Whether a Design needs the SDRAM of its board: it has a program memory."""
    return _PROGRAM_BYTES.of(config)(config) > 0


def sdram_problem(board) -> str | None:
    """Why a board has not the program memory of its core; None if it has it."""
    config = board.config
    if board.sdram is None:
        return (
            f"program_words of {board.name} must be 0, not {config.program_words}: no SDRAM of this"
            " board is known"
        )
    chip = board.sdram.chip
    if config.program_bytes > chip.size:
        row = config.program_bytes // config.program_words
        most = 1 << (chip.size // row).bit_length() - 1
        return (
            f"program_words of {board.name} must be at most {most:,}, not"
            f" {config.program_words:,}: the {chip.name} has {chip.size:,} bytes, and"
            f" {_WORD.of(config)} {row}"
        )
    if 2 * chip.word_bytes > config.beat_bytes:
        return (
            f"read_vectors * depth of {board.name} must be at least {2 * chip.word_bytes} with its"
            f" SDRAM, not {config.beat_bytes}"
        )
    try:
        chip.timing(board.clock)
    except ValueError as error:
        return f"clock of {board.name}: {error}"
    return None
