"""`Ip`: a core's Config with its bus, its clocks and the prefix of its names."""

import re
from dataclasses import dataclass

from weft.config import Config, ConfigError

__all__ = ["BUSES", "Ip"]

BUSES = {
    "axi": "AXI4-Lite slave with registers, and FIFO ports for commands and results",
    "wishbone": "Wishbone B4 slave with registers, and FIFO ports for commands and results",
    "stream": "AXI4-Stream for commands and results, AXI4-Lite slave with registers",
    "dma": "AXI4 master for operands and results in memory, AXI4-Lite slave with registers",
}
PREFIX_MAX = 24  # characters
_PREFIX = re.compile(rf"(?=.{{1,{PREFIX_MAX}}}$)[a-z][a-z0-9]*(_[a-z0-9]+)*")
WORD_BYTES = 4  # bytes of a register or FIFO port


@dataclass(frozen=True, kw_only=True)
class Ip:
    """An IP core: a Config, the bus in front of it, and the prefix of its names.

    Parameters
    ----------
    config : Config
    bus : str
        One of `BUSES`.
    clocks : int
        1: bus and core share a clock; 2: the core has its own clock, ``core_clk``.
    pipelined : bool
        Bus ``wishbone`` only: pipelined cycles of B4 instead of classic ones.
    window : bool
        Bus ``dma`` only: registers that limit the bus master to a window of memory.
    prefix : str
        Prefix of all names of the core and its driver: modules, files, C functions, and in capitals
        C macros. Cores with different prefixes can be used in one design and one firmware.

    Raises
    ------
    ConfigError
        All problems in one message, one line for each.
    """

    config: Config
    bus: str
    clocks: int = 1
    pipelined: bool = False
    window: bool = False
    prefix: str = "weft"

    def __post_init__(self):
        if problems := [*self._problems()]:
            raise ConfigError("\n".join(problems))

    @property
    def has_fifo_ports(self) -> bool:
        """Whether commands and results pass through the register space."""
        return self.bus in ("axi", "wishbone")

    @property
    def name(self) -> str:
        """A short name for folders, files and modules."""
        kind = "_pipelined" * self.pipelined + "_window" * self.window
        kind += "_two_clocks" * (self.clocks == 2)
        return f"{self.prefix}_{self.bus}{kind}_{self.config.name}"

    def _problems(self):
        c = self.config
        if self.bus not in BUSES:
            yield f"bus must be one of {', '.join(BUSES)}, not {self.bus!r}"
            return
        if self.clocks not in (1, 2):
            yield f"clocks must be 1 or 2, not {self.clocks!r}"
        if not (isinstance(self.prefix, str) and _PREFIX.fullmatch(self.prefix)):
            yield (
                f"prefix must be 1 to {PREFIX_MAX} lower-case letters, digits and _, a letter"
                f" first, no _ last and no two side by side, not {self.prefix!r}"
            )
        if self.pipelined and self.bus != "wishbone":
            yield f"pipelined must be False with bus {self.bus!r}, not {self.pipelined!r}"
        if self.window and self.bus != "dma":
            yield f"window must be False with bus {self.bus!r}, not {self.window!r}"
        if self.bus == "stream":
            return
        for field in ("bytes_in", "bytes_out"):
            if getattr(c, field) < WORD_BYTES:
                yield (
                    f"{field} must be at least {WORD_BYTES} with bus {self.bus!r},"
                    f" not {getattr(c, field)}"
                )
        if self.bus == "dma":
            if c.bytes_in != c.bytes_out:
                yield (
                    f"bytes_in and bytes_out must be equal with bus 'dma', not {c.bytes_in} and"
                    f" {c.bytes_out}"
                )
            if c.depth & (c.depth - 1):
                yield f"depth must be a power of two with bus 'dma', not {c.depth}"
            if c.cols % c.lanes:
                yield f"cols must be a multiple of lanes ({c.lanes}) with bus 'dma', not {c.cols}"
