"""The FuseSoC core description (CAPI2), with targets to lint, simulate and synthesize."""

from weft.design import PerKind
from weft.ip import Ip
from weft.kit.bench import sources_of
from weft.network_core.ip import NetworkIp

__all__ = ["description"]

_KINDS = PerKind(product="matrix-multiply accelerator", network="core for neural networks")


def description(ip: Ip | NetworkIp, version: str, sources: list[str], drivers: list[str]) -> str:
    """The text of the ``.core`` file.

    ``sources`` are the Verilog files, the core first, then its primitive models. ``drivers`` are
    the files of the driver.
    """
    arch = ip.array.family.fusesoc_arch
    models = "".join(f"      - {name}\n" for name in sources[1:])
    simulation = (
        f"  models:\n    files:\n{models}    file_type: verilogSource-2005\n" if models else ""
    )
    copied = [
        *sources, "bench/design.json", "bench/requirements.txt",
        *(f"bench/{name}" for name in sources_of(ip)),
        *(f"driver/{name}" for name in drivers),
    ]
    bench = "".join(f"      - {name}: {{copyto: {name}}}\n" for name in copied)
    fileset = ", models" if models else ""
    return f"""\
CAPI=2:
name: weft:ip:{ip.name}:{version}
description: Weft {_KINDS.of(ip)}, {ip.peak} MAC/cycle, bus {ip.bus}

filesets:
  rtl:
    files:
      - {sources[0]}
    file_type: verilogSource-2005
{simulation}  waivers:
    files:
      - {ip.name}.vlt
    file_type: vlt
  bench:
    files:
{bench}    file_type: user

scripts:
  bench:
    cmd: [python3, bench/run.py, icarus]
    filesets: [bench]

targets:
  default:
    filesets: [rtl]
    toplevel: {ip.name}
  lint:
    description: Verilator with -Wall and the waivers of this core
    filesets: [waivers, rtl{fileset}]
    toplevel: {ip.name}
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
  sim:
    description: the cocotb bench on Icarus Verilog
    filesets: [rtl{fileset}, bench]
    toplevel: {ip.name}
    flow: generic
    flow_options:
      tool: icarus
    hooks:
      post_build: [bench]
  synth:
    description: Yosys, for {arch}
    filesets: [rtl]
    toplevel: {ip.name}
    flow: generic
    flow_options:
      tool: yosys
      arch: {arch}
      output_format: json
"""
