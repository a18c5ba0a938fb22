"""The register slave of a Weft core in LiteX: AMBA APB3, behind a bridge from Wishbone."""

from litex.soc.interconnect import wishbone
from migen import Cat, Constant, Signal


def connect(module, facts):
    """Give ``module`` the Wishbone interface ``bus``; the pins of the core that it connects."""
    module.bus = bus = wishbone.Interface(data_width=32, adr_width=30, addressing="word")
    strobe, whole, enable, end, ready, error = (Signal() for _ in range(6))
    # A strobe stays until its answer. Its first cycle is the setup phase of a transfer. APB3 has no
    # byte strobes: a write of less than a word ends in an error and does not reach the core.
    module.comb += [
        strobe.eq(bus.cyc & bus.stb), whole.eq(~bus.we | (bus.sel == 0b1111)),
        end.eq(enable & (ready | ~whole)),
        bus.ack.eq(end & whole & ~error), bus.err.eq(end & (~whole | error)),
    ]
    module.sync += enable.eq(strobe & ~end)
    return {
        "i_psel": strobe & whole, "i_penable": enable & whole, "i_pwrite": bus.we,
        "i_paddr": Cat(Constant(0, 2), bus.adr[:10]), "i_pwdata": bus.dat_w,
        "o_prdata": bus.dat_r, "o_pready": ready, "o_pslverr": error,
    }
