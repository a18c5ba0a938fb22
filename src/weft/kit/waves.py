"""Timing diagrams of a core's buses, drawn in text."""

from weft.ip import Ip

__all__ = ["draw", "waves"]

_CLOCK = "/-\\_"
_SHAPES = {"0": "____", "1": "----", "x": "::::", ".": "    "}


def waves(ip: Ip):
    """The diagrams for the bus of a core: for each one a heading, then the drawing."""
    for title, clock, rows in _DIAGRAMS[_KINDS[ip.bus, ip.pipelined]]:
        yield f"{title}:"
        yield f"```\n{draw(clock, rows)}\n```"


def draw(clock: str, rows: list[tuple[str, str]]) -> str:
    """A clock and the signals below it; a cycle is four characters wide.

    In ``rows`` a character stands for a cycle: 0 or 1 is a level, x any value, and a letter a
    value. The drawing names the value in its first cycle, and holds it while the letter repeats.
    """
    longest = max(len(name) for name in (clock, *(name for name, _ in rows)))
    cycles = max(len(levels) for _, levels in rows)
    lines = [f"{clock:{longest}}  {_CLOCK * cycles}"]
    for name, levels in rows:
        cells, previous = [], None
        for level in levels:
            if level in _SHAPES:
                cells.append(_SHAPES[level])
            else:
                cells.append("====" if level == previous else f"<{level:=<3}")
            previous = level
        lines.append(f"{name:{longest}}  {''.join(cells)}".rstrip())
    return "\n".join(lines)


_KINDS = {
    ("axi", False): "axi", ("wishbone", False): "wishbone", ("wishbone", True): "pipelined",
    ("stream", False): "stream", ("dma", False): "dma",
}
_WRITE = ("AXI4-Lite write; address and data may arrive in either order", "aclk", [
    ("s_axil_awaddr", "xAAxxxxx"), ("s_axil_awvalid", "01100000"), ("s_axil_awready", "00100000"),
    ("s_axil_wdata", "xDDxxxxx"), ("s_axil_wvalid", "01100000"), ("s_axil_wready", "00100000"),
    ("s_axil_bresp", "xxxxxRRx"), ("s_axil_bvalid", "00000110"), ("s_axil_bready", "00000010"),
])
_READ = ("AXI4-Lite read; about 30 cycles for the core's own registers, fewer for others", "aclk", [
    ("s_axil_araddr", "xAAxxxxx"), ("s_axil_arvalid", "01100000"), ("s_axil_arready", "00100000"),
    ("s_axil_rdata", "xxxxxDDx"), ("s_axil_rvalid", "00000110"), ("s_axil_rready", "00000010"),
])
_STREAM = ("A packet of results; tid is the job's tag, tuser is valid with tlast", "aclk", [
    ("m_axis_tdata", "xABBCxxx"), ("m_axis_tid", "xTTTTxxx"), ("m_axis_tlast", "00001000"),
    ("m_axis_tuser", "xxxxUxxx"), ("m_axis_tvalid", "01111000"), ("m_axis_tready", "01011000"),
])
_BURST = ("A read burst; no burst crosses a 4 KiB boundary", "aclk", [
    ("m_axi_araddr", "xAAxxxxx"), ("m_axi_arlen", "xNNxxxxx"), ("m_axi_arvalid", "01100000"),
    ("m_axi_arready", "00100000"), ("m_axi_rdata", "xxxxBCDx"), ("m_axi_rlast", "00000010"),
    ("m_axi_rvalid", "00001110"), ("m_axi_rready", "11111111"),
])
_CLASSIC = ("A write, then a read that ends in an error, in classic cycles", "wb_clk_i", [
    ("wb_cyc_i", "0111011110"), ("wb_stb_i", "0111011110"), ("wb_we_i", "x111x0000x"),
    ("wb_adr_i", "xAAAxBBBBx"), ("wb_dat_i", "xDDDxxxxxx"), ("wb_ack_o", "0001000000"),
    ("wb_err_o", "0000000010"),
])
_PIPELINED = ("Two reads in a pipelined cycle; the second is stalled", "wb_clk_i", [
    ("wb_cyc_i", "0111111100"), ("wb_stb_i", "0111000000"), ("wb_we_i", "x000xxxxxx"),
    ("wb_adr_i", "xABBxxxxxx"), ("wb_stall_o", "0010000000"), ("wb_dat_o", "xxxxxCDxxx"),
    ("wb_ack_o", "0000011000"),
])
_DIAGRAMS = {
    "axi": [_WRITE, _READ], "stream": [_STREAM, _WRITE], "dma": [_BURST, _WRITE],
    "wishbone": [_CLASSIC], "pipelined": [_PIPELINED],
}
