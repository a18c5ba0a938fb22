"""`Sdram`: the memory of a board, for the program memory of a core."""

from dataclasses import dataclass

from weft.boards import pll
from weft.design import PerKind
from weft.sdram import SdramChip, SdramPhase

__all__ = ["SDRAM_PINS", "Sdram", "has_sdram", "sdram_phase", "sdram_problem"]

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
        Of the platform, and its number. Empty for a chip in the package of the FPGA: nextpnr knows
        the pads between both by the names of the ports.
    tied : tuple of str
        Of `SDRAM_PINS`, those that the board ties: CKE to high, CS and DQM to low.

    Raises
    ------
    ValueError
        If DQM is tied, and the chip has `weft.sdram.SdramChip.masks`; or the other way round.
    """

    chip: SdramChip
    phase: int = 270
    resource: tuple[str, int] | tuple[()] = ("sdram", 0)
    tied: tuple[str, ...] = ()

    def __post_init__(self):
        if ("dqm" in self.tied) == self.chip.masks:
            raise ValueError(
                f"masks of {self.chip.name} must be {not self.chip.masks}, not {self.chip.masks}:"
                f" its DQM is {'' if self.chip.masks else 'not '}tied"
            )

    @property
    def pins(self) -> tuple[str, ...]:
        """Those of `SDRAM_PINS` that the FPGA drives or reads."""
        return tuple(pin for pin in SDRAM_PINS if pin not in self.tied)


_PROGRAM_BYTES = PerKind(
    product=lambda config: 0, network=lambda config: config.program_bytes,
    language=lambda config: config.program_bytes,
)
# Bytes that the core writes at once: a vector, or a whole word.
_WRITTEN_BYTES = PerKind(
    product=lambda config: 0, network=lambda config: config.array.depth,
    language=lambda config: config.beat_bytes,
)
_WORD = PerKind(product="", network="a word of all banks", language="a word")


def has_sdram(config) -> bool:
    """Whether a Design needs the SDRAM of its board: it has a program memory."""
    return _PROGRAM_BYTES.of(config)(config) > 0


def sdram_phase(board) -> SdramPhase:
    """The step of the board's PLL that is nearest to `Sdram.phase`."""
    flow, source = board.device.flow, board.platform().default_clk_frequency / 1e6
    settings = flow.pll(source, board.clock)
    return pll.nearest_phase(flow.name, settings, board.sdram.phase)


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
    written = _WRITTEN_BYTES.of(config)(config)
    if not chip.masks and written % chip.word_bytes:
        return (
            f"depth of {board.name} must be a multiple of {chip.word_bytes} with its SDRAM, which"
            f" has no masks of bytes, not {written}"
        )
    try:
        chip.timing(board.clock)
    except ValueError as error:
        return f"clock of {board.name}: {error}"
    return None
