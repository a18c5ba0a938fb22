"""The files of the kit's cocotb bench, and the description of the core that it reads."""

import dataclasses
import json

from weft import commands
from weft.c_names import renamed
from weft.geometry import memories
from weft.ip import Ip
from weft.kit.folder import text
from weft.register_map import constants, fifo_ports, registers

__all__ = ["bench", "env", "sources_of"]

HOOKS = "driver_hooks.h", "driver_glue.c"  # compiled with the driver
_FILES = (
    "test_weft.py", "test_driver.py", "weft_link.py", "weft_packing.py", "weft_pauses.py",
    "weft_driver.py", *HOOKS,
)
_FIELDS = "edge", "depth", "size", "group", "segments", "page", "pages"
# The packages from PyPI that every bench needs, at the tested versions.
_PACKAGES = "cocotb==2.1.0", "numpy==2.4.6"
_MAKEFILE = """\
# Run the bench on the simulator SIM: icarus or verilator.
SIM ?= icarus

all:
\tpython3 run.py $(SIM)
"""


def sources_of(ip: Ip) -> dict[str, str]:
    """The files of the bench that `weft.kit.files` has: name in the bench -> name there."""
    return {
        "run.py": "run_bench.py", **{name: name for name in _FILES},
        **{name: name for name in ["weft_commands.py"] * (not ip.has_dma)},
        "weft_data.py": f"weft_data_{ip.protocol.data_path.value}.py",
        "weft_master.py": f"weft_master_{ip.protocol.register_slave}.py",
    }


def bench(ip: Ip, sources: list[str]) -> dict[str, bytes]:
    """The files of the bench by name; ``sources`` are the names of the core's Verilog files."""
    files = {name: text(file) for name, file in sources_of(ip).items()}
    for name in HOOKS:
        files[name] = renamed(files[name], ip.prefix)
    packages = sorted([*_PACKAGES, ip.protocol.bench_package])
    files["requirements.txt"] = "".join(f"{package}\n" for package in packages)
    files["design.json"] = json.dumps(env(ip, sources), indent=1) + "\n"
    return {name: value.encode() for name, value in {**files, "Makefile": _MAKEFILE}.items()}


def env(ip: Ip, sources: list[str]) -> dict:
    """The description of a core for the bench: names, bus, Config, register addresses."""
    operands = memories(ip.array)
    return {
        "name": ip.name, "prefix": ip.prefix, "bus": ip.bus, "clocks": ip.clocks,
        "clock": ip.protocol.clock, "reset": ip.protocol.reset,
        "reset_active": ip.protocol.reset_active,
        "pipelined": ip.pipelined, "sources": sources,
        "config": dataclasses.asdict(ip.array), "floats": ip.array.data_type.is_float,
        "commands_version": commands.VERSION,
        "constants": constants(ip),
        "registers": {
            r.name: {"address": r.address, "fields": {f.name: [f.low, f.width] for f in r.fields}}
            for r in registers(ip)
        },
        "fifo_ports": {port.name: port.address for port in fifo_ports(ip)},
        # A and B
        "regions": [
            {name: getattr(operands[region], name) for name in _FIELDS}
            for region in (commands.Region.A, commands.Region.B)
        ],
    }
