"""The placement line."""

from dataclasses import replace

import pytest
from network_programs import TARGET, make_program

from weft.models.report.placement import (
    link_bytes,
    placement_line,
    reasons_of,
    remedy_of,
    time_text,
)
from weft.models.target import NetworkTarget

START = (
    "tiny: 3 of 5 operators on Weft (100 % of 4,400 MAC), 2 on the host (AVERAGE_POOL_2D, SOFTMAX);"
)


def test_line(program):
    # 1,078 cycles at 100 MHz; 3,652 bytes to the board at 1 Mbaud.
    assert placement_line(program) == (
        f"{START} equal to a runtime; a-board: 10.8 us core, 36.5 ms wire"
    )


def test_without_a_clock_it_has_cycles():
    line = placement_line(make_program(NetworkTarget("mine", TARGET.config)))
    assert line.endswith("; mine: 1,078 cycles")


def test_a_share_below_one_is_never_100_percent(program):
    host = replace(program.steps[2], macs=1)
    steps = (replace(program.steps[0], macs=10**9), *program.steps[1:2], host, *program.steps[3:])
    assert "(over 99.99 % of 1,000,001,521 MAC)" in placement_line(replace(program, steps=steps))


def test_a_core_without_work(program):
    steps = (program.steps[2], program.steps[4])
    line = placement_line(replace(program, steps=steps))
    assert line == (
        "tiny: 0 of 2 operators on Weft, 2 on the host (AVERAGE_POOL_2D, SOFTMAX);"
        " equal to a runtime; a-board: the core is not used"
    )


@pytest.mark.parametrize("milliseconds, text", [
    (1234.5, "1,234 ms"), (96.2, "96.2 ms"), (0.382, "0.38 ms"), (0.0999, "99.9 us"),
    (0.00052, "0.52 us"),
])
def test_a_time_is_never_rounded_to_0(milliseconds, text):
    assert time_text(milliseconds) == text


def test_line_of_two_lists(network_core_program):
    line = placement_line(network_core_program)
    assert line.startswith(
        "net: 4 of 5 operators on Weft (100 % of 41,472 MAC), 1 on the host (SOFTMAX); equal to"
        " TFLite Micro in mode tflite; mine, 2 lists on the core: "
    )
    # Each list: WRITE with 288 bytes in a frame of 24 bytes more, and START in 20; an ACK of 12 for
    # each of them, and DONE in 20 and 288.
    assert link_bytes(network_core_program) == (2 * (288 + 24 + 20), 2 * (3 * 12 + 8 + 288))
    assert line.endswith(" us core, 13.3 ms wire")
    assert reasons_of(network_core_program) == [
        ("on the host: SOFTMAX: the core has no unit for it; a network core with softmax = true in"
         " [network_core] computes it"),
    ]


@pytest.mark.parametrize("kernel, remedy", [
    ("slice", "a network core may compute it (docs/operators.md), if its maps are of 8 bits"),
    ("tflite.add", "a network core computes it, if its maps are of 8 bits"),
    ("arg_max", "no core computes it"),
])
def test_names_the_core_that_would_compute_an_operator_of_the_host(program, kernel, remedy):
    host = next(step for step in program.steps if not step.placement.on_weft)
    step = replace(
        host, work=replace(host.work, kernel=kernel),
        placement=replace(host.placement, reason="no product"),
    )
    assert remedy_of(replace(program, source="tflite"), step) == remedy
