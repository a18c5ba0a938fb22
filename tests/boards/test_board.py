"""`Board`: its FPGA, its divisor, and the rules for its attributes."""

import dataclasses

import pytest
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.tang_nano_9k import TangNano9kPlatform
from rejects import rejects

from weft.boards.board import Board, BoardError
from weft.boards.catalog import BOARDS
from weft.boards.designs import NETWORKS_85F
from weft.config import Config

ICEBREAKER = BOARDS["icebreaker"]
STATIC = "--placer", "static"


@pytest.mark.parametrize(("name", "device", "options"), [
    ("icebreaker", "iCE40UP5K", ("--up5k", "--package", "sg48")),
    ("ice40-hx8k-evn", "iCE40HX8K", ("--hx8k", "--package", "ct256")),
    ("ulx3s-12f", "LFE5U-12F", ("--12k", "--speed", "6", "--package", "CABGA381", *STATIC)),
    ("ulx3s-85f", "LFE5U-85F", ("--85k", "--speed", "6", "--package", "CABGA381", *STATIC)),
    ("ecpix5-45f", "LFE5UM5G-45F", (
        "--um5g-45k", "--speed", "8", "--package", "CABGA554", *STATIC
    )),
    ("icesugar-pro", "LFE5U-25F", ("--25k", "--speed", "6", "--package", "CABGA256", *STATIC)),
    ("tang-nano-20k", "GW2AR-18C", (
        "--device", "GW2AR-LV18QN88C8/I7", "--vopt", "family=GW2A-18C",
        "--placer-heap-beta", "0.65", "--freq", "102",
    )),
    ("tang-nano-9k", "GW1NR-9C", (
        "--device", "GW1NR-LV9QN88PC6/I5", "--vopt", "family=GW1N-9C",
        "--placer-heap-beta", "0.65", "--freq", "54",
    )),
])
def test_device_is_the_platforms(name, device, options):
    found = BOARDS[name].device
    assert (found.name, found.options) == (device, options)


def test_a_12f_is_the_die_of_a_25f():
    small, large = (BOARDS[f"ulx3s-{size}f"].device for size in (12, 25))
    assert dataclasses.replace(small, name=large.name, options=large.options) == large


def test_rejects_another_fpga_of_gowin():
    class Other(TangNano9kPlatform):
        family = "GW1NZ-1"

    with rejects(
        BoardError, "FPGA of other must be a GW2AR-18C or a GW1NR-9C of Gowin, not a GW1NZ-1"
    ):
        dataclasses.replace(BOARDS["tang-nano-9k"], name="other", platform=Other)


def test_a_core_for_networks_has_its_own_clock():
    board = BOARDS["ulx3s-85f"]
    built = board.built_for("networks")
    assert (built.name, built.clock) == ("ulx3s-85f", 75)
    assert (built.baud, built.divisor) == (3_000_000, 25)
    assert built.config == NETWORKS_85F.config and built.config.target == "ecp5"
    assert (board.clock, board.baud) == (125, 3_000_000)


def test_a_core_for_networks_has_its_own_placer():
    for name, purpose, placer in (
        ("ulx3s-25f", "networks", ()), ("ulx3s-85f", "networks", STATIC),
        ("ulx3s-85f", "batch1", STATIC),
    ):
        options = BOARDS[name].built_for(purpose).device.options
        assert options[-2:] == (placer or ("--package", "CABGA381"))


def test_a_core_for_networks_has_its_own_first_seed():
    board = BOARDS["ulx3s-85f"]
    assert [*board.seeds(3)] == [*board.built_for("networks").seeds(3)] == [1, 2, 3]
    assert [*board.built_for("batch1").seeds(3)] == [2, 3, 4]


def test_divisor_is_of_clock_and_baud():
    assert ICEBREAKER.divisor == 16
    assert dataclasses.replace(ICEBREAKER, baud=115_200).divisor == 417


@pytest.mark.parametrize(("fields", "text"), [
    ({"name": "A b"}, "name of a board must be lower-case letters, digits and hyphens, not 'A b'"),
    ({"leds": {"alife": ("led", 0)}}, "LED must be one of alive, busy, error, not 'alife'"),
    ({"leds": {"alive": "led"}},
     "LED alive of icebreaker must be (resource, number) or (resource, number, pin), not 'led'"),
    ({"programmers": ("iceprog",)},
     "programmer of icebreaker must be a tuple of a command and its arguments, not 'iceprog'"),
    ({"networks": {"networks": 3}},
     "networks of icebreaker must be a dict of NetworkDesign, not {'networks': 3}"),
    ({"placer": "sa"}, "placer of icebreaker must be heap or static, not 'sa'"),
    ({"seed": 0}, "seed of icebreaker must be an integer over 0, not 0"),
    ({"seed": "2"}, "seed of icebreaker must be an integer over 0, not '2'"),
    ({"networks": 3}, "networks of icebreaker must be a dict of NetworkDesign, not 3"),
    ({"config": Config()}, "target of icebreaker must be ice40up, not generic"),
    ({"baud": 2_500_000}, "baud must divide 48 MHz by 4 to 65535, to within 1%, not 2500000"),
    ({"baud": 123_456_789}, "baud must divide 48 MHz by 4 to 65535, to within 1%, not 123456789"),
    ({"baud": 0}, "baud of icebreaker must be over 0, not 0"),
    ({"baud": None}, (
     "baud of icebreaker must be a baud rate: without USB at pins of its FPGA, its link is a"
     " serial port")),
    ({"clock": -1}, "clock of icebreaker must be over 0, not -1 MHz"),
    ({"clock": float("nan")}, "clock of icebreaker must be over 0, not nan MHz"),
    ({"baud": 16_000_000}, "baud must divide 48 MHz by 4 to 65535, to within 1%, not 16000000"),
])
def test_rejects_a_wrong_attribute(fields, text):
    with rejects(BoardError, text):
        dataclasses.replace(ICEBREAKER, **fields)


@pytest.mark.parametrize(("part", "value", "text"), [
    *(
        ("device", device, (
            "FPGA of other must be an ECP5, an iCE40UP5K, an iCE40HX8K, a GW2AR-18C or a GW1NR-9C,"
            f" not {device}"))
        for device in ("LFE5U-90F", "iCE40LP1K", "MachXO2")
    ),
    ("speed", "9", "speed of other must be one of 6, 7, 8, not '9'"),
    ("package", "BG380",
     "package of other must be one of BG256, MG285, BG381, BG554, BG756, not 'BG380'"),
])
def test_rejects_an_fpga_without_a_target(part, value, text):
    platform = type("Other", (LatticeECP5Platform,), {
        "device": "LFE5U-25F", "package": "BG381", "speed": "6", "resources": [], "connectors": [],
        part: value,
    })
    with rejects(BoardError, text):
        Board(name="other", platform=platform, config=Config(), clock=100, baud=1_000_000,
              bridge="")


@pytest.mark.parametrize("missing", ["connectors", "resources"])
def test_rejects_a_platform_without_a_list(missing):
    parts = {
        "device": "LFE5U-25F", "package": "BG381", "speed": "6", "resources": [], "connectors": [],
    }
    platform = type("Other", (LatticeECP5Platform,), {
        part: value for part, value in parts.items() if part != missing
    })
    with rejects(BoardError, f"platform of other must have the list {missing}"):
        Board(name="other", platform=platform, config=Config(target="ecp5"), clock=100,
              baud=1_000_000, bridge="")


def test_rejects_a_platform_without_an_fpga():
    message = "^platform of icebreaker must have the strings device and package$"
    with pytest.raises(BoardError, match=message):
        dataclasses.replace(ICEBREAKER, platform=LatticeECP5Platform)
