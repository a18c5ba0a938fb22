"""`Bus`: what a bus says about itself to `weft.ip.Ip`, to the kit and to the command line."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft.config import Config

__all__ = ["WORD_BYTES", "Bus", "DataPath", "Diagram", "Interface"]

WORD_BYTES = 4  # bytes of a register or FIFO port


class DataPath(enum.Enum):
    """The way of commands and results; the value is in the names of its files in a kit."""

    FIFO_PORTS = "fifo"  # through CMD_FIFO and RESULT_FIFO, in the register space
    STREAMS = "stream"  # through AXI4-Stream
    DMA = "dma"  # from memory and to memory, by a bus master


@dataclass(frozen=True)
class Interface:
    """The ports whose names start with ``prefix``.

    Attributes
    ----------
    prefix, text : str
        ``text`` describes the interface.
    ports : Mapping
        The description of each port, by its name without the prefix.
    """

    prefix: str
    text: str
    ports: Mapping[str, str]


@dataclass(frozen=True)
class Diagram:
    """A timing diagram: a title, the name of the clock, and pairs of a port and its levels.

    `weft.kit.waves.draw` describes the levels.
    """

    title: str
    clock: str
    rows: tuple[tuple[str, str], ...]


class Bus:
    """A bus of an IP core; a subclass defines one, and `weft.buses.BUSES` has an object of each.

    The hardware of its register slave is in `weft.hw.bus.slaves`.

    Attributes
    ----------
    name, text : str
        The value of ``--bus``; one line about the bus.
    register_slave : str
        Protocol of the registers. It names the files of `weft.kit.files` for it:
        ``weft_master_<register_slave>.py`` and ``weft_pins_<register_slave>.py``.
    data_path : DataPath
    options : tuple of str
        The fields of `weft.ip.OPTIONS` that a core with this bus may set.
    clock, reset : str
        Ports of the clock and the reset of the bus.
    reset_active : int
        Level of ``reset`` during a reset.
    bench_package : str
        The requirement of the kit's bench for its bus models, for pip.
    use : str
        Sentences of the data sheet: how software uses the core. ``{header}`` is the driver's.
    interfaces : tuple of Interface
    """

    name: str
    text: str
    register_slave: str
    data_path: DataPath
    options: tuple[str, ...] = ()
    clock: str
    reset: str
    reset_active: int
    bench_package: str
    use: str
    interfaces: tuple[Interface, ...]

    def problems(self, config: Config) -> Iterable[str]:
        """A line for each reason why a core with this bus can't have ``config``."""
        for field in ("bytes_in", "bytes_out"):
            if getattr(config, field) < WORD_BYTES:
                yield (
                    f"{field} must be at least {WORD_BYTES} with bus {self.name!r},"
                    f" not {getattr(config, field)}"
                )

    def diagrams(self, options: tuple[str, ...]) -> tuple[Diagram, ...]:
        """The timing diagrams of a core that sets ``options``."""
        raise NotImplementedError
