"""The SDRAM of a board: its controller, and its pads with their registers."""

from amaranth.build.res import PortMetadata
from amaranth.hdl import ClockDomain, ClockSignal, IOPort
from amaranth.lib import io
from amaranth.lib.wiring import connect

from weft.boards import pll
from weft.boards.board import Board, Ports
from weft.boards.memory import sdram_phase
from weft.hw.sdram.controller import SdramController
from weft.hw.sdram.phase import connect_controller

__all__ = ["add_sdram"]

# The ports of a chip in the package of a Gowin FPGA: nextpnr knows their pads by these names.
_IN_PACKAGE = {
    "clk": "O_sdram_clk", "clk_en": "O_sdram_cke", "cs": "O_sdram_cs_n", "ras": "O_sdram_ras_n",
    "cas": "O_sdram_cas_n", "we": "O_sdram_wen_n", "ba": "O_sdram_ba", "a": "O_sdram_addr",
    "dqm": "O_sdram_dqm", "dq": "IO_sdram_dq",
}
# Outputs of the controller, and the pins of the resource, which are inverted where the chip's are.
_OUTPUTS = {"cke": "clk_en", "ba": "ba", "a": "a", "dqm": "dqm"}
_INVERTED = {"cs_n": "cs", "ras_n": "ras", "cas_n": "cas", "we_n": "we"}


def add_sdram(m, ports: Ports, board: Board, config, memory, clock, step):
    """Add the controller of the program memory of ``config`` and the pads of its chip to ``m``.

    All signals but the clock have a register in their pad. Those of outputs start at 0, so CKE is
    low until the clock of the core runs. The clock of the chip comes from a register of its pad,
    too: it is late by the same time as the other outputs.

    Parameters
    ----------
    m : Module
    ports : Ports
    board : Board
        With an `Sdram`.
    config : NetworkCoreConfig
    memory : `weft.hw.dma.axi.Axi4`
        The port of the accelerator.
    clock : Signal
        That of the chip; it has `Sdram.phase`.
    step : Signal
        To the PLL: its falling edge moves this clock, if `weft.boards.pll.moves`.
    """
    chip = board.sdram.chip
    m.submodules.sdram = controller = SdramController(
        chip, chip.timing(board.clock), data_bytes=config.beat_bytes, pads=True
    )
    if pll.moves(board.device.flow.name):
        register = connect_controller(m, config, memory, controller, sdram_phase(board))
        m.d.comb += step.eq(register.step)
    else:
        connect(m, memory, controller.axi)
    m.domains.sdram = ClockDomain(reset_less=True)
    m.d.comb += ClockSignal("sdram").eq(clock)

    def port(pin, width=1):
        if board.sdram.resource:
            return ports.request(*board.sdram.resource, pin)
        pads = IOPort(width, name=_IN_PACKAGE[pin], metadata=[PortMetadata(None, {})] * width)
        return io.SingleEndedPort(pads, invert=pin in inverted)

    inverted = _INVERTED.values()
    m.submodules.sdram_clk = output = io.DDRBuffer("o", port("clk"), o_domain="sdram")
    m.d.comb += [output.o[0].eq(1), output.o[1].eq(0)]
    pins = controller.pins
    for name, pin in (_OUTPUTS | _INVERTED).items():
        if pin in board.sdram.tied:
            continue
        value = getattr(pins, name)
        m.submodules[f"sdram_{pin}"] = pad = io.FFBuffer("o", port(pin, len(value)))
        m.d.comb += pad.o.eq(~value if name in _INVERTED else value)
    m.submodules.sdram_dq = dq = io.FFBuffer("io", port("dq", len(pins.dq_o)))
    m.d.comb += [dq.o.eq(pins.dq_o), dq.oe.eq(pins.dq_oe), pins.dq_i.eq(dq.i)]
