"""USB at pins of the FPGA: the boards that have it, their clocks, and what is rejected."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest
from rejects import rejects
from tiers import tiers

from weft.boards import pll
from weft.boards.bitstream import prepare
from weft.boards.blocks import GROUPS, block_of
from weft.boards.board import FULL_SPEED, ULPI, BoardError
from weft.boards.catalog import BOARDS
from weft.cli import bitstream_report, main
from weft.designs import replace

SPEEDS = {
    "ulx3s-12f": FULL_SPEED, "ulx3s-25f": FULL_SPEED, "ulx3s-45f": FULL_SPEED,
    "ulx3s-85f": FULL_SPEED, "icepi-zero": FULL_SPEED, "ecpix5-45f": ULPI, "ecpix5-85f": ULPI,
    "orangecrab-25f": FULL_SPEED, "orangecrab-85f": FULL_SPEED, "butterstick": ULPI,
}


def on_usb(name, link="usb"):
    return dataclasses.replace(BOARDS[name], link=link)


def test_the_boards_with_usb():
    assert {name for name, board in BOARDS.items() if board.usb} == {*SPEEDS}
    assert {name: on_usb(name).usb_pins for name in SPEEDS} == SPEEDS


def test_the_page_has_the_boards_with_usb():
    text = (Path(__file__).parents[2] / "docs" / "usb.md").read_text(encoding="utf-8")
    page = text[text.index("| board |"):].partition("\n\n")[0].splitlines()[2:]
    said = {}
    for row in page:
        names, _, speed, _ = (cell.strip() for cell in row.strip("|").split("|"))
        said |= dict.fromkeys(re.findall(r"`([\w-]+)`", names), speed)
    said |= dict.fromkeys(("ulx3s-25f", "ulx3s-45f"), said["ulx3s-12f"])  # 12f to 85f
    assert said == {name: "high" if pins == ULPI else "full" for name, pins in SPEEDS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", tiers(
    {name: name for name in SPEEDS}, "ulx3s-25f",
    long={*SPEEDS} - {"ulx3s-25f", "ecpix5-85f"},
))
def test_a_board_is_elaborated_with_usb(name):
    board = on_usb(name, "usb:left")
    config = replace(board.config, rows=2, cols=2, depth=2, dsp_cols=1)
    design = prepare(board, config)
    ports = set(re.findall(r'LOCATE COMP "(\w+?)__io', design.constraints))
    high = SPEEDS[name] == ULPI
    resource = "_".join(map(str, board.usb))
    given = name == "butterstick"  # the PHY takes its clock from the FPGA
    assert {port for port in ports if port.startswith(("usb", "ulpi", "uart"))} == {
        f"{resource}__{pin}" for pin in SPEEDS[name]
    }
    assert board.usb_clocks == (("usb",) if given else () if high else ("usb_io", "usb"))
    assert design.rtlil.count("cell \\EHXPLLL ") == (1 if high and not given else 2)
    # No clock before the lock.
    assert design.rtlil.count("cell \\DCCA ") == 1 + len(board.usb_clocks)
    assert ("60000000.0 HZ" in design.constraints) == (high and not given)
    assert design.rtlil.count("cell \\ODDRX1F ") == given
    modules = {*re.findall(r"^module \\(\S+)$", design.rtlil, re.M)}
    # Registers between the FIFOs of USB and the link of the core.
    assert {"top.accelerator.usb.rx_skid", "top.accelerator.usb.tx_skid"} <= modules
    # No addresses of objects: equal designs have equal texts.
    assert [module for module in modules if re.search(r"\d{8}", module)] == []
    blocks = set(re.findall(r"^module \\(top\.accelerator\.\w+)$", design.rtlil, re.M))
    assert {block_of(f"{block[4:]}.x") for block in blocks} <= {
        block for members in GROUPS.values() for block in members
    }
    assert block_of("accelerator.usb.device.address_TRELLIS_FF_Q") == "usb"


@pytest.mark.parametrize("source, error", [(25, 0.0017), (50, 1e-9), (100, 1e-9), (12, 1e-9)])
def test_the_clocks_of_full_speed(source, error):
    """Within 0.25 % of 48 and 12 MHz, and within the limits of the PLL."""
    settings = pll.ecp5_full_speed(source)
    parameters = settings.parameters
    vco = source / parameters["CLKI_DIV"] * parameters["CLKFB_DIV"] * parameters["CLKOP_DIV"]
    assert 400 <= vco <= 800 and source / parameters["CLKI_DIV"] >= 10
    assert abs(vco / parameters["CLKOS_DIV"] / 48 - 1) <= error
    assert parameters["CLKOS2_DIV"] == 4 * parameters["CLKOS_DIV"] <= 128


def test_rejects_a_clock_that_is_too_far_from_48_mhz():
    with pytest.raises(pll.PllError, match="not 48 MHz; the nearest is 48.1333 MHz"):
        pll.ecp5_full_speed(19)


@pytest.mark.parametrize("source", [12, 25, 30, 48, 50, 100])
def test_the_clock_of_a_phy_is_exact(source):
    settings = pll.ecp5_phy(source)
    parameters = settings.parameters
    vco = source / parameters["CLKI_DIV"] * parameters["CLKFB_DIV"] * parameters["CLKOP_DIV"]
    assert 400 <= vco <= 800 and source / parameters["CLKI_DIV"] >= 10
    assert vco / parameters["CLKOS_DIV"] == settings.frequency == pytest.approx(60, rel=1e-9)


def test_rejects_a_clock_that_is_too_far_from_60_mhz():
    with pytest.raises(pll.PllError, match="not 60 MHz; the nearest is 59.9231 MHz"):
        pll.ecp5_phy(19)


@pytest.mark.parametrize("name, fields, text", [
    ("icebreaker", {"link": "usb"},
     "link of icebreaker must be serial, not usb: no USB connector is at pins of its FPGA"),
    ("icebreaker", {"usb": ("usb", 0)}, (
     "usb of icebreaker must be empty: USB needs the PLLs of an ECP5, and its FPGA is an"
     " iCE40UP5K")),
    ("orangecrab-25f", {"link": "serial"},
     "link of orangecrab-25f must be usb or usb:NAME, not serial: it has no serial port"),
    ("ulx3s-25f", {"link": "can"}, (
     "link of ulx3s-25f must be serial, usb or usb:NAME, with a NAME of at most 32 letters,"
     " digits, dots, hyphens and underscores, not 'can'")),
])
def test_rejects_a_link_that_the_board_does_not_have(name, fields, text):
    with rejects(BoardError, text):
        dataclasses.replace(BOARDS[name], **fields)


def test_rejects_a_resource_that_is_no_usb_connector():
    board = dataclasses.replace(BOARDS["ulx3s-25f"], usb=("uart", 0), link="usb")
    with pytest.raises(BoardError, match="^usb of ulx3s-25f must have the pins d_p, d_n, pullup"):
        prepare(board, board.config)
    with rejects(BoardError, (
        "usb of ulx3s-25f must be a resource of the platform and its number, not ('usb', 7)"
    )):
        prepare(dataclasses.replace(board, usb=("usb", 7)), board.config)


def test_rejects_a_machine_without_luna(monkeypatch, in_checkout):
    monkeypatch.setitem(sys.modules, "luna", None)
    board = on_usb("ulx3s-25f")
    with rejects(BoardError, (
        "link usb needs luna-usb 0.2.3 or newer;"
        " type: make setup, or: pip install -e '.[usb]'"
    )):
        prepare(board, board.config)


def test_build_takes_the_link(capsys):
    assert main(["build", "ecpix5-85f", "--link", "usb:left", "--list"]) == 0
    assert " usb:left  " in capsys.readouterr().out
    assert main(["build", "ulx3s-25f", "--link", "usb", "--baud", "1000000", "--list"]) == 2
    assert capsys.readouterr().err == (
        "weft: error: --baud must be for --link serial, not for --link usb\n"
    )


def test_usb_is_the_link_of_a_board_without_a_serial_port(capsys):
    assert main(["build", "orangecrab-25f", "--list"]) == 0
    assert " usb  " in capsys.readouterr().out
    for options, text in (
        (["--baud", "1000000"], "--baud must be for --link serial, not for --link usb"),
        (["--link", "serial"],
         "link of orangecrab-25f must be usb or usb:NAME, not serial: it has no serial port"),
    ):
        assert main(["build", "orangecrab-25f", *options]) == 2
        assert capsys.readouterr().err == f"weft: error: {text}\n"


def test_a_clock_that_the_serial_port_cannot_divide_is_right_with_usb():
    board = BOARDS["ulx3s-25f"]
    with pytest.raises(BoardError, match="^baud must divide 11 MHz by 4 to 65535"):
        dataclasses.replace(board, clock=11)
    assert dataclasses.replace(board, clock=11, link="usb").clock == 11


def test_a_core_for_networks_has_no_baud_rate_without_a_serial_port():
    board = dataclasses.replace(BOARDS["orangecrab-25f"], networks=BOARDS["ulx3s-25f"].networks)
    built = board.built_for("networks")
    assert (built.link, built.baud, built.clock) == ("usb", None, 110)


@pytest.mark.parametrize("name, link, text", [
    ("ulx3s-25f", "usb", "USB: full speed, serial number ulx3s-25f"),
    ("ecpix5-85f", "usb:left", "USB: high speed, serial number left"),
])
def test_the_report_names_the_link(name, link, text):
    assert bitstream_report.link_text(on_usb(name, link)) == text
