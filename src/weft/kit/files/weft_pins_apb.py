"""The register slave of a Weft core in LiteX: AMBA APB3, behind a bridge from Wishbone."""

from litex.soc.interconnect import wishbone
from migen import Cat, Constant, Signal


def connect(module, facts):
    """Give ``module`` the Wishbone interface ``bus``; the pins of the core that it connects."""
    module.bus = bus = wishbone.Interface(data_width=32, adr_width=30, addressing="word")
    strobe, enable, ready, error = (Signal() for _ in range(4))
    # A strobe stays until its answer. Its first cycle is the setup phase of a transfer.
    module.comb += [
        strobe.eq(bus.cyc & bus.stb),
        bus.ack.eq(enable & ready & ~error), bus.err.eq(enable & ready & error),
    ]
    module.sync += enable.eq(strobe & ~(enable & ready))
    return {
        "i_psel": strobe, "i_penable": enable, "i_pwrite": bus.we,
        "i_paddr": Cat(Constant(0, 2), bus.adr[:10]), "i_pwdata": bus.dat_w,
        "o_prdata": bus.dat_r, "o_pready": ready, "o_pslverr": error,
    }
