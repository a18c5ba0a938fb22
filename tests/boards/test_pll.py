"""PLL parameters, compared with the output of the tools icepll and ecppll."""

import pytest
from rejects import rejects
from tiers import quick

from weft.boards import pll
from weft.boards.pll import PllError


@pytest.mark.parametrize(("source", "wanted", "divr", "divf", "divq", "filter_range", "vco"), [
    (12, 36, 0, 47, 4, 1, 576), (12, 90, 0, 59, 3, 1, 720), (12, 39, 0, 51, 4, 1, 624),
    (12, 96, 0, 63, 3, 1, 768), (48, 30, 0, 19, 5, 4, 960), (100, 60, 4, 47, 4, 2, 960),
])
def test_ice40_is_that_of_icepll(source, wanted, divr, divf, divq, filter_range, vco):
    made = pll.ice40(source, wanted)
    assert made.parameters == {
        "FEEDBACK_PATH": "SIMPLE", "DIVR": divr, "DIVF": divf, "DIVQ": divq,
        "FILTER_RANGE": filter_range,
    }
    assert (made.frequency, made.vco) == (wanted, vco)


@pytest.mark.parametrize(("source", "wanted", "reference", "feedback", "divider", "vco"), [
    (25, 125, 1, 5, 5, 625), (50, 125, 2, 5, 5, 625), (100, 125, 4, 5, 5, 625),
    (25, 100, 1, 4, 6, 600), (100, 100, 1, 1, 6, 600), (25, 112.5, 2, 9, 5, 562.5),
    (16, 96, 1, 6, 6, 576),
])
def test_ecp5_is_that_of_ecppll(source, wanted, reference, feedback, divider, vco):
    made = pll.ecp5(source, wanted)
    names = "CLKI_DIV", "CLKFB_DIV", "CLKOP_DIV", "CLKOP_CPHASE"
    assert [made.parameters[name] for name in names] == [
        reference, feedback, divider, divider // 2
    ]
    assert (made.frequency, made.vco) == (wanted, vco)


@pytest.mark.parametrize(("source", "wanted", "reference", "feedback", "divider", "vco"), [
    (25, 120, 1, 24, 5, 600), (25, 105, 1, 21, 5, 525), (50, 105, 5, 63, 6, 630),
    (12, 100, 1, 50, 6, 600),
])
def test_the_second_output_of_an_ecp5_is_that_of_ecppll(
    source, wanted, reference, feedback, divider, vco
):
    """As ``ecppll --highres``, which also allows less than 10 MHz at the phase detector."""
    made = pll.ecp5(source, wanted)
    names = "CLKI_DIV", "CLKFB_DIV", "CLKOP_DIV", "CLKOS_DIV"
    assert [made.parameters[name] for name in names] == [reference, 1, feedback, divider]
    assert (made.frequency, made.vco) == (wanted, vco)


@pytest.mark.parametrize(("wanted", "degrees", "divider", "coarse", "fine"), [
    (75, 270, 8, 10, 0), (75, 90, 8, 6, 0), (75, 0, 8, 4, 0), (75, 45, 8, 5, 0),
    # A second output of 575 MHz / 6, and between two steps of 7.5 degrees.
    (95.8333, 270, 6, 7, 4), (95.8333, 93, 6, 4, 4),
])
def test_a_shifted_clock_is_that_of_ecppll(wanted, degrees, divider, coarse, fine):
    """As ``ecppll --clkout1 75 --phase1 270``, whose output is CLKOS."""
    settings = pll.ecp5(25, wanted)
    made = pll.ecp5_shifted(settings, degrees)
    assert dict(made.parameters) == dict(settings.parameters) | {
        "CLKOS2_DIV": divider, "CLKOS2_CPHASE": coarse, "CLKOS2_FPHASE": fine,
        "CLKOS2_ENABLE": "ENABLED",
    }


# gowin_pll of Apycula 0.32, -d "GW2AR-18 C8/I7"; it has the values of the data sheet, too.
@pytest.mark.parametrize(("wanted", "idiv", "fbdiv", "odiv", "vco"), [
    (81, 0, 2, 8, 648), (108, 0, 3, 8, 864), (27, 0, 0, 32, 864), (94.5, 1, 6, 8, 756),
])
def test_gowin_is_that_of_gowin_pll(wanted, idiv, fbdiv, odiv, vco):
    made = pll.gowin(27, wanted)
    names = "FCLKIN", "IDIV_SEL", "FBDIV_SEL", "ODIV_SEL"
    assert [made.parameters[name] for name in names] == ["27", idiv, fbdiv, odiv]
    assert (made.frequency, made.vco) == (wanted, vco)


@pytest.mark.parametrize(("degrees", "step"), [
    (0, "0000"), (22.5, "0001"), (90, "0100"), (270, "1100"), (337.5, "1111"), (350, "0000"),
])
def test_a_shifted_clock_of_gowin(degrees, step):
    """UG286, rPLL: PSDA_SEL has 16 steps of 22.5 degrees; DUTYDA_SEL 8 of 16 is half a period."""
    settings = pll.gowin(27, 102)
    assert dict(pll.gowin_shifted(settings, degrees).parameters) == dict(settings.parameters) | {
        "PSDA_SEL": step, "DUTYDA_SEL": "1000", "DYN_DA_EN": "false",
    }


def test_the_nearest_phase_is_a_step():
    """Of 45 degrees / 6 on an ECP5 at 95.8333 MHz, and of 22.5 degrees on a Gowin FPGA."""
    ecp5, gowin = pll.ecp5(25, 95.8333), pll.gowin(27, 102)
    for degrees, wanted in ((0, 0), (90, 90), (93, 90), (270, 270), (94, 97.5), (358, 0)):
        assert pll.nearest_phase("ecp5", ecp5, degrees).degrees == wanted
    for degrees, wanted in ((270, 270), (33, 22.5), (34, 45), (350, 0)):
        assert pll.nearest_phase("gowin", gowin, degrees).degrees == wanted


# The same, -d "GW1NR-9 C6/I5".
@pytest.mark.parametrize(("wanted", "idiv", "fbdiv", "odiv", "vco"), [
    (54, 0, 1, 8, 432), (40.5, 1, 2, 16, 648),
])
def test_the_oscillator_of_a_smaller_gowin_fpga_is_slower(wanted, idiv, fbdiv, odiv, vco):
    made = pll.gowin(27, wanted, "GW1NR-9C")
    names = "IDIV_SEL", "FBDIV_SEL", "ODIV_SEL"
    assert [made.parameters[name] for name in names] == [idiv, fbdiv, odiv]
    assert (made.frequency, made.vco) == (wanted, vco)


@pytest.mark.parametrize("source", quick(3, [12, 25, 10, 48, 100]))
def test_limits_of_the_data_sheets_are_kept(source):
    """For any input and output frequency."""
    for wanted in range(20, 276, 15):
        for make, (low, high), detector in (
            (pll.ice40, (533, 1066), 133), (pll.ecp5, (400, 800), 400)
        ):
            try:
                made = make(source, wanted)
            except PllError:
                continue
            assert low <= made.vco <= high
            assert 10 <= made.detector <= detector
            assert made.frequency == pytest.approx(wanted, rel=0.001)


@pytest.mark.parametrize(("make", "source", "wanted", "nearest"), [
    (pll.ice40, 25, 40, "39.8438"), (pll.ice40, 12, 300, "270"), (pll.ice40, 12, 10, "16.125"),
    (pll.ecp5, 25, 118, "117.5"), (pll.ecp5, 25, 500, "400"),
])
def test_rejects_what_cannot_be_made(make, source, wanted, nearest):
    with rejects(PllError, (
        f"clock must be a frequency that the PLL can make from {source} MHz, not {wanted} MHz;"
        f" the nearest is {nearest} MHz"
    )):
        make(source, wanted)


@pytest.mark.parametrize(("make", "device", "most"), [
    (pll.ice40, "an iCE40", 133), (pll.ecp5, "an ECP5", 400),
])
def test_rejects_a_source_beyond_the_limits(make, device, most):
    for source in (8, 9.9, most + 0.5, 500):
        with rejects(PllError, (
            f"the clock that feeds the PLL of {device} must be 10 to {most} MHz, not {source} MHz"
        )):
            make(source, 100)
    assert make(most, most / 4).detector <= most
