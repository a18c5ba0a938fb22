"""The check of a board's pins: each message names the use and the resource."""

import dataclasses

import pytest
from amaranth.build import Attrs, Clock, Connector, DiffPairs, Pins, Resource, Subsignal
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.resources import LEDResources, RGBLEDResource, UARTResource
from rejects import rejects

from weft.boards.board import Board, BoardError, check_pins, resource_of
from weft.boards.catalog import BOARDS
from weft.config import Config

IO = Attrs(IO_TYPE="LVCMOS33")
CLOCK = Resource("osc", 0, Pins("P6", dir="i"), Clock(25e6), IO)
UART = UARTResource(0, rx="A9", tx="B9", attrs=IO)
LEDS = LEDResources(pins="A11 A12", attrs=IO)
RGB = RGBLEDResource(0, r="C1", g="C2", b="C3", attrs=IO)


def board(*resources, default_clk="osc", **fields):
    platform = type("Platform", (LatticeECP5Platform,), {
        "device": "LFE5U-25F", "package": "BG256", "speed": "6", "default_clk": default_clk,
        "resources": list(resources), "connectors": [],
    })
    return Board(**{
        "name": "mine", "platform": platform, "config": Config(target="ecp5"), "clock": 100,
        "baud": 1_000_000, "bridge": "", "leds": {"alive": ("led", 0), "busy": ("led", 1)},
        **fields,
    })


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_and_its_cores_for_networks_pass(name):
    check_pins(BOARDS[name])
    for purpose in BOARDS[name].networks:
        check_pins(BOARDS[name].built_for(purpose))


def test_a_resource_with_several_pins_serves_several_leds():
    check_pins(board(
        CLOCK, UART, RGB, leds={"alive": ("rgb_led", 0, "r"), "busy": ("rgb_led", 0, "g")}
    ))


@pytest.mark.parametrize(("resources", "fields", "text"), [
    ((UART, *LEDS), {}, "clock of mine: osc#0 must be a resource of the platform"),
    ((Resource("osc", 0, Pins("P6", dir="i"), IO), UART, *LEDS), {},
     "clock of mine: osc#0 must have a frequency: Clock(hertz) in its Resource"),
    ((CLOCK, *LEDS), {}, "serial port of mine: uart#0 must be a resource of the platform"),
    ((CLOCK, Resource("uart", 0, Pins("A9"), IO), *LEDS), {},
     "serial port of mine: uart#0 must have the pin rx; its pins: one"),
    ((CLOCK, Resource("uart", 0, Subsignal("rx", Pins("A9")), IO), *LEDS), {},
     "transmitter of mine: uart#0 must have the pin tx; its pins: rx"),
    ((CLOCK, UART), {}, "LED alive of mine: led#0 must be a resource of the platform"),
    ((CLOCK, UART, RGB), {"leds": {"error": ("rgb_led", 0)}},
     "LED error of mine: rgb_led#0 must be named with a pin; its pins: r, g, b"),
    ((CLOCK, UART, *LEDS), {"leds": {"alive": ("led", 0), "busy": ("led", 0)}},
     "LED busy of mine must have a pin of its own, not the pin of LED alive"),
])
def test_rejects_a_platform_without_a_pin(resources, fields, text):
    with rejects(BoardError, text):
        check_pins(board(*resources, **fields))


def test_rejects_a_pin_of_another_resource():
    message = "^LED alive of mine: led#0 must have pins of its own: .* pin A9, .*uart_0.rx"
    with pytest.raises(BoardError, match=message):
        check_pins(board(CLOCK, UART, *LEDResources(pins="A9 A12", attrs=IO)))


def test_the_message_of_the_pll_names_the_clock():
    with pytest.raises(ValueError, match="from 25 MHz, not 900 MHz"):
        check_pins(dataclasses.replace(board(CLOCK, UART, *LEDS), clock=900))


@pytest.mark.parametrize(("pin", "use"), [
    ("P6", "pin of osc#0"), ("A9", "pin rx of uart#0"), ("B9", "pin tx of uart#0"),
    ("A12", "pin of led#1"), ("C3", "pin b of rgb_led#0"), ("T1", "each pin"),
])
def test_the_resource_of_a_pin(pin, use):
    leds = {"alive": ("led", 0), "busy": ("led", 1), "error": ("rgb_led", 0, "b")}
    assert resource_of(board(CLOCK, UART, *LEDS, RGB, leds=leds), pin) == use


def test_the_resource_of_a_pin_of_a_connector_and_of_a_pair():
    made = board(
        Resource("osc", 0, DiffPairs("P6", "P7", dir="i"), Clock(25e6), IO),
        UARTResource(0, rx="1", tx="2", conn=("pmod", 0), attrs=IO), *LEDS,
    )
    made.platform.connectors = [Connector("pmod", 0, "C1 C2")]
    assert resource_of(made, "C2") == "pin tx of uart#0"
    assert resource_of(made, "P7") == "pin of osc#0"
