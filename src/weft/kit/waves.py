"""Timing diagrams: what the buses of a core look like, drawn in text."""

from weft.ip import Ip

__all__ = ["draw", "waves"]

_CLOCK = "/-\\_"
_SHAPES = {"0": "____", "1": "----", "x": "::::", ".": "    "}


def waves(ip: Ip):
    """The diagrams that a core wants, each a heading and a drawing."""
    for title, clock, rows in _DIAGRAMS[_KINDS[ip.bus, ip.pipelined]]:
        yield f"{title}:"
        yield f"```\n{draw(clock, rows)}\n```"


def draw(clock: str, rows: list[tuple[str, str]]) -> str:
    """A clock and signals below it, four characters a cycle.

    A row has a character a cycle: 0 or 1 for a level, x for any, and a letter for a value, which
    is named where it begins, and stays for as many cycles as the letter is repeated.
    """
    longest = max(len(name) for name in (clock, *(name for name, _ in rows)))
    count = max(len(levels) for _, levels in rows)
    lines = [f"{clock:{longest}}  {_CLOCK * count}"]
    for name, levels in rows:
        cells, before = [], None
        for level in levels:
            if level in _SHAPES:
                cells.append(_SHAPES[level])
            else:
                cells.append("====" if level == before else f"<{level:=<3}")
            before = level
        lines.append(f"{name:{longest}}  {''.join(cells)}".rstrip())
    return "\n".join(lines)


_KINDS = {
    ("axi", False): "axi", ("wishbone", False): "wishbone", ("wishbone", True): "pipelined",
    ("stream", False): "stream", ("dma", False): "dma",
}
_WRITE = ("A write over AXI4-Lite; address and data may come in either order", "aclk", [
    ("s_axil_awaddr", "xAAxxxxx"), ("s_axil_awvalid", "01100000"), ("s_axil_awready", "00100000"),
    ("s_axil_wdata", "xDDxxxxx"), ("s_axil_wvalid", "01100000"), ("s_axil_wready", "00100000"),
    ("s_axil_bresp", "xxxxxRRx"), ("s_axil_bvalid", "00000110"), ("s_axil_bready", "00000010"),
])
_READ = ("A read; the core's own registers answer after some 30 cycles, others sooner", "aclk", [
    ("s_axil_araddr", "xAAxxxxx"), ("s_axil_arvalid", "01100000"), ("s_axil_arready", "00100000"),
    ("s_axil_rdata", "xxxxxDDx"), ("s_axil_rvalid", "00000110"), ("s_axil_rready", "00000010"),
])
_STREAM = ("A packet of results: tid is the job's tag, tuser counts with tlast", "aclk", [
    ("m_axis_tdata", "xABBCxxx"), ("m_axis_tid", "xTTTTxxx"), ("m_axis_tlast", "00001000"),
    ("m_axis_tuser", "xxxxUxxx"), ("m_axis_tvalid", "01111000"), ("m_axis_tready", "01011000"),
])
_BURST = ("A burst of reads; no burst crosses a multiple of 4 KiB", "aclk", [
    ("m_axi_araddr", "xAAxxxxx"), ("m_axi_arlen", "xNNxxxxx"), ("m_axi_arvalid", "01100000"),
    ("m_axi_arready", "00100000"), ("m_axi_rdata", "xxxxBCDx"), ("m_axi_rlast", "00000010"),
    ("m_axi_rvalid", "00001110"), ("m_axi_rready", "11111111"),
])
_CLASSIC = ("A write, then a read that is refused, in classic cycles", "wb_clk_i", [
    ("wb_cyc_i", "0111011110"), ("wb_stb_i", "0111011110"), ("wb_we_i", "x111x0000x"),
    ("wb_adr_i", "xAAAxBBBBx"), ("wb_dat_i", "xDDDxxxxxx"), ("wb_ack_o", "0001000000"),
    ("wb_err_o", "0000000010"),
])
_PIPELINED = ("Two reads in a pipelined cycle, the second one held", "wb_clk_i", [
    ("wb_cyc_i", "0111111100"), ("wb_stb_i", "0111000000"), ("wb_we_i", "x000xxxxxx"),
    ("wb_adr_i", "xABBxxxxxx"), ("wb_stall_o", "0010000000"), ("wb_dat_o", "xxxxxCDxxx"),
    ("wb_ack_o", "0000011000"),
])
_DIAGRAMS = {
    "axi": [_WRITE, _READ], "stream": [_STREAM, _WRITE], "dma": [_BURST, _WRITE],
    "wishbone": [_CLASSIC], "pipelined": [_PIPELINED],
}
