"""The register slave of a Weft core in LiteX: Wishbone."""

from litex.soc.interconnect import wishbone
from migen import Signal


def connect(module, facts):
    """Give ``module`` the interface ``bus``; the pins of the core that it connects."""
    module.bus = bus = wishbone.Interface(data_width=32, adr_width=30, addressing="word")
    pins = {
        "i_wb_cyc_i": bus.cyc, "i_wb_stb_i": bus.stb, "i_wb_we_i": bus.we,
        "i_wb_adr_i": bus.adr[:10], "i_wb_sel_i": bus.sel, "i_wb_dat_i": bus.dat_w,
        "o_wb_dat_o": bus.dat_r, "o_wb_ack_o": bus.ack, "o_wb_err_o": bus.err,
    }
    if not facts["pipelined"]:
        return pins
    # LiteX's bus is classic: it holds the strobe until the response. Mask the strobe once the core
    # has accepted the access.
    stall, accepted = Signal(), Signal()
    module.sync += accepted.eq(bus.cyc & bus.stb & ~(bus.ack | bus.err) & (accepted | ~stall))
    return pins | {"i_wb_stb_i": bus.stb & ~accepted, "o_wb_stall_o": stall}
