"""The SDRAM of a simulated core: its chip, its clock, and what its model in C++ needs."""

from weft.language_core.config import LanguageCoreConfig
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import ProgramTiming
from weft.sdram import SDRAM_CHIPS, SdramChip, SdramPhase

__all__ = [
    "PHASE", "RIGHT_PHASES", "SDRAM_MHZ", "chip_macros", "simulated_chip", "simulated_memory",
]

_Config = NetworkCoreConfig | LanguageCoreConfig
SDRAM_MHZ = 100  # the clock of a simulated core, as its SDRAM sees it
# The phase of the clock of a simulated chip, and those with which its words arrive: as on a board
# with a delay of some nanoseconds to the chip and back.
PHASE = SdramPhase(48, 64)
RIGHT_PHASES = range(30, 61)


def simulated_chip(config: _Config) -> SdramChip | None:
    """The SDRAM of a simulated core: the smallest one that has the whole program memory.

    None without a program memory. Raises ValueError if none is so large.
    """
    if not config.program_words:
        return None
    chips = [chip for chip in SDRAM_CHIPS.values() if chip.size >= config.program_bytes]
    if not chips:
        largest = max(chip.size for chip in SDRAM_CHIPS.values())
        raise ValueError(
            f"program memory of a simulated board must have at most {largest:,} bytes, not"
            f" {config.program_bytes:,}"
        )
    return min(chips, key=lambda chip: (chip.width, chip.size))


def simulated_memory(config: _Config) -> ProgramTiming | None:
    """The timing of `simulated_chip`, for predictions; None without a program memory."""
    chip = simulated_chip(config)
    return chip and ProgramTiming.of_sdram(chip, SDRAM_MHZ, config.beat_bytes)


def chip_macros(chip: SdramChip | None) -> list[str]:
    """The macros that ``sim/sdram_chip.h`` needs for a chip; none without one."""
    if chip is None:
        return []
    sizes = {name: getattr(chip, name) for name in (
        "banks", "rows", "columns", "width", "refreshes",
    )} | {"masks": int(chip.masks)}
    times = {name: round(1000 * getattr(chip, name)) for name in (
        "period_2", "rcd", "rp", "ras", "rc", "rrd", "rfc", "wr", "ras_max", "power_up",
        "retention",
    )}
    values = sizes | times | {
        "period": round(1e6 / SDRAM_MHZ), "first_phase": RIGHT_PHASES[0],
        "last_phase": RIGHT_PHASES[-1],
    }
    return [f"SDRAM_{name.upper()}={value}" for name, value in values.items()]
