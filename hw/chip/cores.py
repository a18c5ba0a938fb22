"""Which core executes the lists of a `weft.chip.config.ChipConfig`."""

from weft.chip.config import has_single_port
from weft.hw.chip.core import NetworkCore
from weft.hw.micro.core import MicroCore

__all__ = ["network_core"]


def network_core(chip):
    """Return the core of ``chip``: with a microprogram if its memory has one port."""
    return (MicroCore if has_single_port(chip.core) else NetworkCore)(chip)
