"""What a design that holds the core has to constrain: clocks, reset, and what crosses clocks.

A page that tells of it, and files for the tools: SDC, XDC of Vivado, LPF of Lattice.
"""

from weft.ip import Ip

__all__ = ["constraints", "files"]

PERIOD = 10.0  # ns, that the files start with


def constraints(ip: Ip) -> str:
    """The page."""
    wishbone = ip.bus == "wishbone"
    text = _PAGE + (_CROSSING if ip.clocks == 2 else "")
    if ip.config.target != "generic":
        text += _PRIMITIVES
    return text.format(
        name=ip.name, target=ip.config.target,
        clock="wb_clk_i" if wishbone else "aclk", reset="wb_rst_i" if wishbone else "aresetn",
        active="high" if wishbone else "low", count=_COUNT[ip.clocks], least=_LEAST[ip.clocks],
    )


def files(ip: Ip) -> dict[str, str]:
    """The files of constraints by their names, for the core as the top of a design."""
    bus = "wb_clk_i" if ip.bus == "wishbone" else "aclk"
    clocks = [bus, "core_clk"][: ip.clocks]
    ways = [(bus, "core_clk"), ("core_clk", bus)] * (ip.clocks == 2)
    sdc = [f"create_clock -name {c} -period {PERIOD:.3f} [get_ports {{{c}}}]" for c in clocks]
    cross = [f"-from [get_clocks {{{a}}}] -to [get_clocks {{{b}}}]" for a, b in ways]
    xdc = [*sdc, *(f"set_max_delay -datapath_only {one} {PERIOD:.3f}" for one in cross)]
    if ways:
        stages = " || ".join(f"NAME =~ *stage{n}_reg*" for n in (0, 1))
        xdc.append(f"set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {{{stages}}}]")
    for one in cross:
        sdc += [f"set_max_delay {one} {PERIOD:.3f}", f"set_false_path -hold {one}"]
    lpf = [f'FREQUENCY PORT "{c}" {1000 / PERIOD:.1f} MHZ;' for c in clocks]
    lpf += ["BLOCK INTERCLOCKDOMAIN PATHS;"] * (ip.clocks == 2)
    story = [f"Constraints of {ip.name} as the top of a design, clocks of {1000 / PERIOD:.0f} MHz."]
    story.append("In a design of your own take its clocks instead; constraints.md says more.")
    if ways:
        story.append("Paths between the clocks: no longer than a period of the faster one.")
    head = "".join(f"# {line}\n" for line in story)
    kinds = {"sdc": sdc, "xdc": xdc, "lpf": lpf}
    return {f"{ip.name}.{kind}": head + "\n".join(lines) + "\n" for kind, lines in kinds.items()}


_COUNT = {1: "it is the only clock", 2: "so does `core_clk`, the core's own"}
_LEAST = {1: "a cycle of it is enough", 2: "hold it for 4 cycles of `core_clk`"}
_PAGE = """\
# Constraints of {name}

`{name}.sdc` (Quartus, Radiant, OpenSTA), `{name}.xdc` (Vivado) and `{name}.lpf` (Diamond,
nextpnr-ecp5) have what follows, for the core as the top of a design; set the periods in them.

* **`{clock}`** needs the period that it runs at; {count}.

  ```
  create_clock -name {clock} -period <ns> [get_ports {clock}]    # SDC, XDC
  FREQUENCY PORT "{clock}" <MHz> MHZ;                             # LPF
  ```

* **`{reset}`** is synchronous to `{clock}` and active {active}; {least}. A register
  of that clock must drive it: nothing in the core synchronizes it. Registers have initial values
  too, so that an FPGA which starts as it was configured starts right.
* All inputs are synchronous to `{clock}`. All outputs come from registers, or from a little logic
  behind them; no path leads from an input to an output. `irq` is a level of that clock, too.
"""
_CROSSING = """\
* **Between `{clock}` and `core_clk`** there are asynchronous queues (Gray-coded counters), a
  handshake for the register port, and pulses and resets through two registers each. The two
  clocks need no relation. Bound the length of the paths between them, so that the bits of a Gray
  code arrive together: no longer than a period of the faster clock,

  ```
  set_max_delay -datapath_only -from [get_clocks {{{clock}}}] -to [get_clocks {{core_clk}}] <ns>
  set_max_delay -datapath_only -from [get_clocks {{core_clk}}] -to [get_clocks {{{clock}}}] <ns>
  ```

  or declare the clocks asynchronous where the tool has nothing finer:

  ```
  set_clock_groups -asynchronous -group {clock} -group core_clk
  ```

  nextpnr does not time paths between clocks: nothing has to be written for it. In Vivado, set
  `ASYNC_REG` on the registers `stage0` and `stage1`, which synchronize, as the XDC file does.
"""
_PRIMITIVES = """\
* The core instantiates primitives of target `{target}`, which its synthesis knows; to simulate it,
  add `{name}_primitives.v`, with `NOISE` defined: then memories hold noise at first. Else they hold
  X, which shows in the bytes of a last word of results that are behind the last result.
"""
