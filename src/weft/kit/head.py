"""What every file of a kit says of itself: which core it belongs to, and what makes it."""

import dataclasses
import json

from weft.config import Config
from weft.ip import BUSES, Ip

__all__ = ["command", "head", "toml"]


def head(ip: Ip, what: str) -> list[str]:
    """The lines of the comment that a file opens with."""
    c = ip.config
    return [
        f"{ip.name}: {what}", "",
        f"Weft, a matrix-multiply accelerator: {c.peak} MAC/cycle of {c.dtype}.",
        f"Config {c.hash:08x}.",
        f"Bus: {BUSES[ip.bus]}.", "",
        f"Made by: {command(ip)}",
        "where config.toml, which lies beside this file, has:",
        *(f"  {line}" for line in toml(ip.config).splitlines()), "",
        "Copyright (c) 2026, The Weft authors. SPDX-License-Identifier: BSD-2-Clause",
    ]


def command(ip: Ip) -> str:
    """What to type for this kit."""
    more = " --clocks 2" * (ip.clocks == 2) + " --pipelined" * ip.pipelined
    more += f" --prefix {ip.prefix}" * (ip.prefix != "weft")
    return f"weft generate --bus {ip.bus}{more} --config config.toml"


def toml(config: Config) -> str:
    """The Config as a file that ``--config`` takes."""
    values = dataclasses.asdict(config)
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
