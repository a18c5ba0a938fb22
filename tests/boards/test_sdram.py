"""The SDRAM of a board: pads with registers, pins of the platform, and what a board must have."""

import dataclasses
import re

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import wiring
from rejects import rejects

from weft.boards.bitstream import Clock, prepare
from weft.boards.board import BoardError, Ports
from weft.boards.catalog import BOARDS
from weft.boards.memory import Sdram
from weft.boards.sdram import add_sdram
from weft.config import Config
from weft.designs import replace
from weft.hw.dma.axi import Axi4
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import ProgramTiming
from weft.network_core.cycles.sdram import SdramRows
from weft.sdram import SDRAM_CHIPS

ARRAY = Config(
    target="ecp5", rows=2, cols=4, depth=4, lanes=1, dsp_cols=0, requantize="tflite",
    activation="none",
)
CORE = NetworkCoreConfig(
    array=ARRAY, words=512, b_words=32, lines=32, read_vectors=4, program_words=1 << 18
)
NONE = "must be 0, not 262144: no SDRAM of this board is known"
MOST = (
    "must be at most 1,048,576, not 4,194,304: the IS42S16160G-7 has 33,554,432 bytes, and a word"
    " of all banks 20"
)
WITH_SDRAM = [name for name, board in BOARDS.items() if board.sdram]
WHOLE = "must be a multiple of 4 with its SDRAM, which has no masks of bytes, not 2"
# The ports of the chip in a GW2AR-18C, by Apycula (chipdb_builder.py), and their bits.
IN_PACKAGE = {
    "O_sdram_clk": 1, "O_sdram_cke": 1, "O_sdram_cs_n": 1, "O_sdram_cas_n": 1, "O_sdram_ras_n": 1,
    "O_sdram_wen_n": 1, "O_sdram_dqm": 4, "O_sdram_addr": 11, "O_sdram_ba": 2, "IO_sdram_dq": 32,
}
# Pins of the data sheet of an x16 chip with 13 address bits: clk, cke, cs, ras, cas, we, 2 ba,
# 13 a, 2 dqm, 16 dq.
PINS = 39
# Of an x32 chip with 11 address bits, whose CKE, CS and DQM the board ties: clk, ras, cas, we,
# 2 ba, 11 a, 32 dq.
TIED_PINS = 49


class Only(wiring.Component):
    """The controller and the pads, with a master that asks for nothing."""

    def __init__(self, board, config=CORE):
        self.board = board
        self.config = config
        self.step = Signal()
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain(reset_less=True)
        clock, shifted = Signal(), Signal()
        m.d.comb += ClockSignal().eq(clock)
        memory = Axi4(data_bytes=self.config.beat_bytes).create()
        add_sdram(m, Ports(platform), self.board, self.config, memory, shifted, self.step)
        return m


class Clocked(Only):
    """The same with the PLL of the board."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.submodules.clock = clock = Clock(self.board, sdram=True)
        m.d.comb += clock.step.eq(self.step)
        return m


def test_boards_with_a_memory():
    assert WITH_SDRAM == [
        "ulx3s-12f", "ulx3s-25f", "ulx3s-45f", "ulx3s-85f", "colorlight-i5", "colorlight-i9",
        "icepi-zero", "icesugar-pro", "tang-nano-20k",
    ]
    sizes = {name: BOARDS[name].sdram.chip.size >> 20 for name in WITH_SDRAM}
    of_8 = "colorlight-i5", "colorlight-i9", "tang-nano-20k"
    assert sizes == dict.fromkeys(WITH_SDRAM, 32) | dict.fromkeys(of_8, 8)


@pytest.mark.parametrize(("name", "pins", "word"), [
    ("ulx3s-85f", PINS, 16), ("icepi-zero", PINS, 16), ("icesugar-pro", PINS, 16),
    ("colorlight-i5", TIED_PINS, 32), ("colorlight-i9", TIED_PINS, 32),
])
def test_all_signals_have_registers_in_their_pads(name, pins, word):
    board = dataclasses.replace(BOARDS[name], config=CORE, clock=75)
    plan = board.platform().prepare(Only(board), "top", emit_src=False)
    rtlil, constraints = plan.files["top.il"], plan.files["top.lpf"]
    assert len(re.findall(r'LOCATE COMP "sdram_0__\w+(?:\[\d+\])?" SITE', constraints)) == pins
    cells = {kind: rtlil.count(f"cell \\{kind} ") for kind in ("OFS1P3DX", "IFS1P3DX", "ODDRX1F")}
    # The value of all outputs but the clock, and the direction of each pin.
    assert cells == {"OFS1P3DX": 2 * pins - 1, "IFS1P3DX": word, "ODDRX1F": 1}


@pytest.mark.parametrize(("name", "moves"), [("icepi-zero", True), ("tang-nano-20k", False)])
def test_the_clock_of_the_chip_moves_on_an_ecp5(name, moves):
    """Lattice FPGA-TN-02200: PHASESEL 01 is CLKOS2, and its phase is that of the ports."""
    board = BOARDS[name].built_for("networks-sdram")
    plan = board.platform().prepare(Clocked(board, board.config), "top", emit_src=False)
    rtlil = plan.files["top.il"]
    assert rtlil.count("cell \\EHXPLLL ") == moves
    assert ("parameter \\DPHASE_SOURCE \"ENABLED\"\n" in rtlil) == moves
    pins = dict(re.findall(r"connect \\(PHASE\w+) (.*)\n", rtlil))
    assert pins.pop("PHASESTEP", "").startswith("\\") == moves
    assert pins == ({
        "PHASESEL0": "1'1", "PHASESEL1": "1'0", "PHASEDIR": "1'0", "PHASELOADREG": "1'0",
    } if moves else {})


def test_a_chip_in_the_package_of_the_fpga():
    """nextpnr places its ports by their names, so they have no place in the constraints."""
    board = BOARDS["tang-nano-20k"].built_for("networks-sdram")
    plan = board.platform().prepare(Only(board, board.config), "top", emit_src=False)
    rtlil, constraints = plan.files["top.il"], plan.files["top.cst"]
    (top,) = re.findall(r"attribute \\top 1\n.*?\nend", rtlil, re.S)
    ports = re.findall(r"  wire width (\d+) (?:output|inout) \d+ +\\(\w+)\n", top)
    assert {name: int(width) for width, name in ports} == IN_PACKAGE
    assert "sdram" not in constraints
    cells = {kind: rtlil.count(f"cell \\{kind} ") for kind in ("TBUF", "IOBUF", "ODDR")}
    assert cells == {"TBUF": sum(IN_PACKAGE.values()) - 32, "IOBUF": 32, "ODDR": 1}


def test_nextpnr_puts_the_registers_of_a_chip_in_the_package_into_the_pads():
    board = BOARDS["tang-nano-20k"]
    with_registers = [
        purpose for purpose in board.networks
        if "ioreg_in_iob" in board.built_for(purpose).device.options
    ]
    assert with_registers == ["networks-sdram"]
    assert "ioreg_in_iob" not in board.device.options


def test_the_timing_for_predictions():
    board = BOARDS["ulx3s-85f"].built_for("networks-sdram")
    # 8 cycles, the CAS latency and 16 words of a beat; a word a cycle, and refreshes.
    chip, mhz = board.sdram.chip, board.clock
    rows = SdramRows.of(chip, mhz, 32)
    assert board.memory == ProgramTiming(26, 4142, ahead=True, bursts=3, rows=rows)
    assert (rows.beats, rows.banks, rows.words, rows.refresh) == (32, 4, 16, 585)
    assert 4142 == round(256 * 16 / (1 - 52 / (8 * 585)))
    assert BOARDS["ulx3s-85f"].built_for("networks").memory is None


@pytest.mark.parametrize(("name", "fields", "text"), [
    ("ecpix5-85f", {}, f"program_words of ecpix5-85f {NONE}"),
    ("butterstick", {"link": "usb"}, f"program_words of butterstick {NONE}"),
    ("colorlight-i5", {"config": replace(CORE, depth=2)},
     f"depth of colorlight-i5 {WHOLE}"),
    ("ulx3s-85f", {"config": replace(CORE, program_words=1 << 22)},
     f"program_words of ulx3s-85f {MOST}"),
    ("ulx3s-85f", {"config": replace(CORE, depth=2, read_vectors=1)},
     "read_vectors * depth of ulx3s-85f must be at least 4 with its SDRAM, not 2"),
    ("ulx3s-85f", {"clock": 150, "baud": 3_000_000},
     "clock of ulx3s-85f: mhz must be at most 143 for IS42S16160G-7, not 150"),
])
def test_rejects_a_memory_that_a_board_has_not(name, fields, text):
    with rejects(BoardError, text):
        dataclasses.replace(BOARDS[name], **{"config": CORE, "clock": 75} | fields)


@pytest.mark.parametrize(("masks", "tied", "text"), [
    (True, ("dqm",), "masks of EM638325-7 must be False, not True: its DQM is tied"),
    (False, (), "masks of EM638325-7 must be True, not False: its DQM is not tied"),
])
def test_rejects_masks_that_do_not_match_the_pins(masks, tied, text):
    with rejects(ValueError, text):
        Sdram(chip=dataclasses.replace(SDRAM_CHIPS["EM638325-7"], masks=masks), tied=tied)


def test_a_pin_that_a_platform_lacks():
    board = dataclasses.replace(
        BOARDS["ulx3s-85f"], clock=75,
        sdram=Sdram(chip=SDRAM_CHIPS["IS42S16160G-7"], resource=("sdram", 1)),
    )
    with rejects(
        BoardError, "SDRAM pin clk of ulx3s-85f: sdram#1 must be a resource of the platform"
    ):
        prepare(board, CORE)


@pytest.mark.slow
def test_a_whole_board():
    design = prepare(dataclasses.replace(BOARDS["ulx3s-85f"], clock=75), CORE)
    assert "parameter \\CLKOS2_CPHASE 10\n" in design.rtlil
    assert design.rtlil.count("cell \\DCCA ") == 1
