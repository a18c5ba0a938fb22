"""Print a digest of each design: equal digests are equal hardware, in each cell and each name.

    PYTHONPATH=tests/support python -m tools.digests [start of a name ...]

Run it before and after a move or a renaming, and compare both outputs. A design is digested as
RTLIL, which Yosys turns into Verilog: equal RTLIL is equal Verilog, in seconds instead of minutes.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator

import network_cores
from amaranth.back import rtlil
from covering import CONFIGS

from weft.boards import presets
from weft.boards.catalog import BOARDS
from weft.design import NETWORK
from weft.hw.network_core.core import NetworkTop
from weft.hw.primitives import Primitives
from weft.hw.serial.accelerator import SerialAccelerator
from weft.hw.top import Top

__all__ = ["designs", "digest"]

_DIVISOR = 35  # of each serial port: any value


def designs() -> Iterator[tuple[str, Callable, object]]:
    """The name, the maker and the platform of each component.

    They are the presets, the cores that the boards have, the covering Configs, and the network
    cores that the tests share.
    """
    for name, preset in presets.PRESETS.items():
        yield f"preset/{name}", lambda preset=preset: presets.component(preset), Primitives()
    boards = {
        board.others[purpose].config if purpose else board.config: f"{name}/{purpose}"
        for name, board in BOARDS.items() for purpose in (None, *board.others)
    }
    for config, name in boards.items():  # equal cores once
        yield f"board/{name}", lambda config=config: (
            SerialAccelerator(config, divisor=_DIVISOR)
        ), Primitives()
    for number, config in enumerate(CONFIGS):
        yield f"product/{number}", lambda config=config: Top(config), None
    for name, config in vars(network_cores).items():
        if getattr(config, "kind", None) == NETWORK and not isinstance(config, type):
            yield f"network/{name}", lambda config=config: NetworkTop(config), None
    for number, config in enumerate(network_cores.SIMULATED_SLOWLY):
        yield f"network/{number}", lambda config=config: NetworkTop(config), None


def digest(component, platform) -> str:
    """The SHA-256 of a component's RTLIL."""
    text = rtlil.convert(component, platform=platform, name="top", emit_src=False)
    return hashlib.sha256(text.encode()).hexdigest()


def main(names: list[str]) -> None:
    """Print the digest of each design whose name begins with one of ``names``, or of all."""
    for name, make, platform in designs():
        if not names or name.startswith(tuple(names)):
            print(f"{name:30} {digest(make(), platform)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
