"""Parts of the data sheet of a network core.

`weft.kit.product_sections` has the same names for a product core; `weft.kit.sheet` chooses.
"""

import dataclasses

from weft.network_core.config import TEXTS
from weft.network_core.ip import NetworkIp

__all__ = ["KIND", "numbers", "parameters", "performance", "use"]

KIND = "A core that executes whole neural networks from its own memory"
_TRANSFERS = """\
To write memory, wait until `status.memory_busy` is 0, set `memory_address`, `memory_layout` and
`memory_row_step`, write the number of bytes to `memory_write`, and the bytes to `write_fifo`: at
most `write_fifo_free` words at a time. To read memory, write `memory_address` and `memory_read`,
and read at most `read_fifo_level` words at a time from `read_fifo`. To run a list, set `base` and
`limit` once, then `list_address` and `log_address`; write `control.start`, and wait until
`status.list_busy` is 0, or for the interrupt `done`."""


def numbers(ip: NetworkIp) -> str:
    """The sizes of the memory."""
    config = ip.config
    program = (
        f" The program memory behind the AXI4 master has at most {config.program_bytes:,} bytes; a"
        f" beat has {config.beat_bytes}."
    ) if config.program_words else ""
    size = config.size_text(config.words)
    return f"The memory holds {config.memory_bytes:,} bytes: {size}.{program}"


def use(ip: NetworkIp) -> str:
    """How software uses the core."""
    return (
        f"The driver [driver/{ip.prefix}.h](driver/{ip.prefix}.h) writes and reads the memory, and"
        " runs lists. `weft compile NETWORK --config config.toml -o net.weft --c FOLDER` writes a"
        " network as C code for it: `NAME_load` and `NAME_run`, with the name of the network, and"
        " for interrupts `NAME_start` and `NAME_finish`."
        f" [lists.md](lists.md) describes lists for own software.\n\n{_TRANSFERS}"
    )


def performance(ip: NetworkIp) -> list[str]:
    """None: `weft compile` predicts the cycles of a network."""
    return []


def parameters(ip: NetworkIp) -> list[tuple[str, str, str]]:
    """Rows of the fields of the NetworkCoreConfig: name, value, meaning."""
    return [
        (f"`network_core.{f.name}`", str(getattr(ip.config, f.name)), TEXTS[f.name])
        for f in dataclasses.fields(ip.config) if f.name != "array"
    ]
