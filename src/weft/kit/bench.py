"""The files of the kit's cocotb bench, and the description of the core that it reads."""

import dataclasses
import json

import numpy as np

from weft import commands
from weft.design import PerKind
from weft.geometry import memories
from weft.host.list_products import ListProducts
from weft.ip import Ip, renamed
from weft.kit.folder import text
from weft.network_core.descriptors import ListEnd, ListError, ListReport, join
from weft.network_core.ip import NetworkIp
from weft.register_map import constants, fifo_ports, registers

__all__ = ["bench", "env", "sources_of"]

HOOKS = "driver_hooks.h", "driver_glue.c"  # compiled with the driver
_FILES = (
    "test_weft.py", "test_driver.py", "weft_link.py", "weft_packing.py", "weft_pauses.py",
    "weft_driver.py", *HOOKS,
)
_PROGRAM_BYTES = 1 << 16  # of the simulated program memory, at most
_FIELDS = "edge", "depth", "size", "group", "segments", "page", "pages"
# The packages from PyPI that every bench needs, at the tested versions.
_PACKAGES = "cocotb==2.1.0", "numpy==2.4.6"
_MAKEFILE = """\
# Run the bench on the simulator SIM: icarus or verilator.
SIM ?= icarus

all:
\tpython3 run.py $(SIM)
"""


def sources_of(ip: Ip | NetworkIp) -> dict[str, str]:
    """The files of the bench that `weft.kit.files` has: name in the bench -> name there."""
    return _SOURCES.of(ip)(ip)


def _product_sources(ip):
    return {
        "run.py": "run_bench.py", **{name: name for name in _FILES},
        **{name: name for name in ["weft_commands.py"] * (not ip.has_dma)},
        "weft_data.py": f"weft_data_{ip.protocol.data_path.value}.py",
        "weft_master.py": f"weft_master_{ip.protocol.register_slave}.py",
    }


def _network_sources(ip):
    return {
        "run.py": "run_bench.py", "test_weft.py": "test_network.py",
        "test_driver.py": "test_network_driver.py", "driver_glue.c": "network_glue.c",
        "weft_data.py": "weft_network_bench.py", "weft_network_bench.py": "weft_network_bench.py",
        **{name: name for name in (
            "driver_hooks.h", "weft_driver.py", "weft_link.py", "weft_pauses.py",
        )},
        "weft_master.py": f"weft_master_{ip.protocol.register_slave}.py",
    }


_SOURCES = PerKind(product=_product_sources, network=_network_sources)


def bench(ip: Ip | NetworkIp, sources: list[str]) -> dict[str, bytes]:
    """The files of the bench by name; ``sources`` are the names of the core's Verilog files."""
    files = {name: text(file) for name, file in sources_of(ip).items()}
    for name in HOOKS:
        files[name] = renamed(files[name], ip.prefix)
    packages = sorted([*_PACKAGES, ip.protocol.bench_package])
    files["requirements.txt"] = "".join(f"{package}\n" for package in packages)
    files["design.json"] = json.dumps(env(ip, sources), indent=1) + "\n"
    return {name: value.encode() for name, value in {**files, "Makefile": _MAKEFILE}.items()}


def env(ip: Ip | NetworkIp, sources: list[str]) -> dict:
    """The description of a core for the bench: names, bus, Config, register addresses."""
    return _common(ip, sources) | _ENV.of(ip)(ip)


def _common(ip, sources):
    return {
        "name": ip.name, "prefix": ip.prefix, "bus": ip.bus, "clocks": ip.clocks,
        "clock": ip.protocol.clock, "reset": ip.protocol.reset,
        "reset_active": ip.protocol.reset_active,
        "pipelined": ip.pipelined, "sources": sources, "constants": constants(ip),
        "registers": {
            r.name: {"address": r.address, "fields": {f.name: [f.low, f.width] for f in r.fields}}
            for r in registers(ip)
        },
        "fifo_ports": {port.name: port.address for port in fifo_ports(ip)},
    }


def _product_env(ip):
    operands = memories(ip.array)
    return {
        "config": dataclasses.asdict(ip.array), "floats": ip.array.data_type.is_float,
        "commands_version": commands.VERSION,
        # A and B
        "regions": [
            {name: getattr(operands[region], name) for name in _FIELDS}
            for region in (commands.Region.A, commands.Region.B)
        ],
    }


def _network_env(ip):
    config = ip.config
    return {
        "banks": config.banks, "depth": config.array.depth, "words": config.words,
        "program_bytes": min(config.program_bytes, _PROGRAM_BYTES),
        "byte_addresses": ip.protocol.register_slave != "wishbone",
        "end": int.from_bytes(ListEnd().pack()[:4], "little"), "product": _product(config),
    }


_ENV = PerKind(product=_product_env, network=_network_env)


class _Recorder:
    """Records how a product uses the memory of a core; no list is executed."""

    uses = 0  # no others use it

    def __init__(self, config):
        self.config, self.program_bytes = config, min(config.program_bytes, _PROGRAM_BYTES)
        self.writes, self.program, self.lists, self.read_at = [], [], [], None

    def write(self, address, data, *, run=0, pitch=0, pixels=0, row_step=0):
        layout = run | pitch << 8 | pixels << 16
        self.writes.append([join(address, self.config.banks), layout, row_step, data.hex()])

    def write_program(self, address, data):
        self.program.append([join(address, self.config.banks), data.hex()])

    def run(self, first, log, *, timeout):
        self.lists.append([join(address, self.config.banks) for address in (first, log)])
        return ListReport(ListError.NONE, 1, cycles=0)

    def read(self, address, count):
        self.read_at = join(address, self.config.banks), count
        return bytes(count)


def _product(config):
    """A product for the bench; None if one list cannot compute it."""
    core, rng = config.array, np.random.default_rng(1)
    m, n, k = core.rows + 1, core.cols + 1, 2 * core.depth + 1
    a, b = rng.integers(-128, 128, (m, k), np.int8), rng.integers(-128, 128, (k, n), np.int8)
    recorder = _Recorder(config)
    try:
        ListProducts(recorder).sums(a, b.T)
    except ValueError:  # a memory is too small for any product
        return None
    if len(recorder.lists) != 1:
        return None
    [[first, log]], (output, count) = recorder.lists, recorder.read_at
    return {
        "a": a.tolist(), "b": b.tolist(), "writes": recorder.writes,
        "program": recorder.program, "list": first, "log": log, "output": output, "bytes": count,
    }
