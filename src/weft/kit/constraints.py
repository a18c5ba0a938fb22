"""What a design that holds the core has to constrain: clocks, reset, and what crosses clocks."""

from weft.ip import Ip

__all__ = ["constraints"]


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


_COUNT = {1: "it is the only clock", 2: "so does `core_clk`, the core's own"}
_LEAST = {1: "a cycle of it is enough", 2: "hold it for 4 cycles of `core_clk`"}
_PAGE = """\
# Constraints of {name}

* **`{clock}`** needs the period that it runs at; {count}.

  ```
  create_clock -name {clock} -period <ns> [get_ports {clock}]    # SDC: Vivado, Quartus, Diamond
  FREQUENCY NET "{clock}" <MHz> MHz;                              # LPF: nextpnr-ecp5
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
  set_max_delay -datapath_only -from [get_clocks {clock}] -to [get_clocks core_clk] <ns>
  set_max_delay -datapath_only -from [get_clocks core_clk] -to [get_clocks {clock}] <ns>
  ```

  or declare the clocks asynchronous where the tool has nothing finer:

  ```
  set_clock_groups -asynchronous -group {clock} -group core_clk
  ```

  nextpnr does not time paths between clocks: nothing has to be written for it.
"""
_PRIMITIVES = """\
* The core instantiates primitives of target `{target}`, which its synthesis knows; to simulate it,
  add `{name}_primitives.v`, with `NOISE` defined: then memories hold noise at first. Else they hold
  X, which shows in the bytes of a last word of results that are behind the last result.
"""
