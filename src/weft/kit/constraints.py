"""Constraints for a design with the core: clocks, reset, clock domain crossings.

They come as a page of text and as files for the tools: SDC, XDC for Vivado, LPF for Lattice.
"""

from weft.ip import Ip
from weft.network_core.ip import NetworkIp

__all__ = ["constraint_files", "constraints"]

PERIOD = 10.0  # default clock period in the files, in ns


def constraints(ip: Ip | NetworkIp) -> str:
    """The page."""
    bus = ip.protocol
    text = _PAGE + (_CROSSING if ip.clocks == 2 else "")
    if ip.array.family.models:
        text += _PRIMITIVES
    return text.format(
        name=ip.name, target=ip.array.target,
        clock=bus.clock, reset=bus.reset, active="high" if bus.reset_active else "low",
        clocks=_CLOCKS[ip.clocks],
        reset_time=_RESET_TIME[ip.clocks],
    )


def constraint_files(ip: Ip | NetworkIp) -> dict[str, str]:
    """The constraint files by name, for a design whose top is the core."""
    bus = ip.protocol.clock
    clocks = [bus, "core_clk"][: ip.clocks]
    crossings = [(bus, "core_clk"), ("core_clk", bus)] * (ip.clocks == 2)
    sdc = [f"create_clock -name {c} -period {PERIOD:.3f} [get_ports {{{c}}}]" for c in clocks]
    paths = [f"-from [get_clocks {{{a}}}] -to [get_clocks {{{b}}}]" for a, b in crossings]
    xdc = [*sdc, *(f"set_max_delay -datapath_only {path} {PERIOD:.3f}" for path in paths)]
    if crossings:
        stages = " || ".join(f"NAME =~ *stage{n}_reg*" for n in (0, 1))
        xdc.append(f"set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {{{stages}}}]")
    for path in paths:
        sdc += [f"set_max_delay {path} {PERIOD:.3f}", f"set_false_path -hold {path}"]
    lpf = [f'FREQUENCY PORT "{c}" {1000 / PERIOD:.1f} MHZ;' for c in clocks]
    lpf += ["BLOCK INTERCLOCKDOMAIN PATHS;"] * (ip.clocks == 2)
    notes = [
        f"Constraints for {ip.name} as the top of a design; clocks of {1000 / PERIOD:.0f} MHz.",
        "In your own design use its clocks instead; see constraints.md.",
    ]
    if crossings:
        notes.append("Paths between the clocks must not exceed a period of the faster clock.")
    head = "".join(f"# {line}\n" for line in notes)
    kinds = {"sdc": sdc, "xdc": xdc, "lpf": lpf}
    return {f"{ip.name}.{kind}": head + "\n".join(lines) + "\n" for kind, lines in kinds.items()}


_CLOCKS = {1: "It is the only clock.", 2: "The core's own clock, `core_clk`, needs one too."}
_RESET_TIME = {1: "one cycle of it is enough", 2: "hold it for 4 cycles of `core_clk`"}
_PAGE = """\
# Constraints of {name}

The files `{name}.sdc` (Quartus, Radiant, OpenSTA), `{name}.xdc` (Vivado) and `{name}.lpf` (Diamond,
nextpnr-ecp5) contain the constraints below, for a design whose top is the core. Set the clock
periods in them.

* **`{clock}`** needs a clock constraint with its real period. {clocks}

  ```
  create_clock -name {clock} -period <ns> [get_ports {clock}]    # SDC, XDC
  FREQUENCY PORT "{clock}" <MHz> MHZ;                             # LPF
  ```

* **`{reset}`** is synchronous to `{clock}` and active {active}; {reset_time}. Drive it from a
  register of this clock: the core does not synchronize it. The registers of the core also have
  initial values, so an FPGA that starts without a reset starts in the correct state.
* All inputs are synchronous to `{clock}`. Outputs, `irq` included, come from registers of this
  clock, or from a few gates after them. No combinational path leads from an input to an output.
"""
_CROSSING = """\
* **Crossings between `{clock}` and `core_clk`** are asynchronous FIFOs (Gray-coded counters), a
  handshake for the register port, and two-register synchronizers for pulses and resets. The two
  clocks may have any phase and frequency. Limit the delay of the paths between them to a period of
  the faster clock, so that the bits of a Gray code arrive together:

  ```
  set_max_delay -datapath_only -from [get_clocks {{{clock}}}] -to [get_clocks {{core_clk}}] <ns>
  set_max_delay -datapath_only -from [get_clocks {{core_clk}}] -to [get_clocks {{{clock}}}] <ns>
  ```

  If the tool has no such constraint, declare the clocks asynchronous:

  ```
  set_clock_groups -asynchronous -group {clock} -group core_clk
  ```

  nextpnr does not time paths between clocks, so it needs no constraint for them. In Vivado, set
  `ASYNC_REG` on the synchronizer registers `stage0` and `stage1`, as the XDC file does.
"""
_PRIMITIVES = """\
* **Primitives:** the core instantiates primitives of target `{target}`. Synthesis tools know them.
  To simulate the core, add `{name}_primitives.v` and define `NOISE`: memories then start with
  random contents. Without `NOISE` they start as X, which becomes visible in the unused bytes after
  the last result of a job.
"""
