"""PLL parameters for a clock frequency, within the limits of the data sheets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weft.sdram import SdramPhase

__all__ = [
    "Pll", "PllError", "ecp5", "ecp5_full_speed", "ecp5_phy", "ecp5_shifted", "gowin",
    "gowin_shifted", "ice40", "moves", "nearest_phase", "shifted",
]

TOLERANCE = 0.001  # relative error of the output frequency
# A device may be off by 0.25 % at full speed and by 0.05 % at high speed (USB 2.0, 7.1.11). The
# oscillator takes a part: 0.05 % and 0.04 %.
FULL_SPEED_MHZ, FULL_SPEED_TOLERANCE = 48, 0.002
PHY_MHZ, PHY_TOLERANCE = 60, 0.0001


class PllError(ValueError):
    """The PLL cannot make the requested frequency; the message gives the nearest one."""


@dataclass(frozen=True)
class Pll:
    """The settings of a PLL.

    Attributes
    ----------
    parameters : dict
        Parameters of the primitive.
    frequency : float
        Output frequency in MHz.
    vco : float
        Frequency of the oscillator in MHz.
    detector : float
        Frequency at the phase detector in MHz.
    """

    parameters: Mapping[str, object]
    frequency: float
    vco: float
    detector: float


def ice40(source: float, target: float) -> Pll:
    """``source * (DIVF + 1) / (DIVR + 1) / 2**DIVQ``, for an SB_PLL40_PAD or SB_PLL40_CORE.

    Limits: 10 to 133 MHz in, 16 to 275 MHz out, 533 to 1066 MHz in the oscillator, 10 to 133 MHz
    at the phase detector (iCE40 LP/HX and UltraPlus data sheets, sysCLOCK PLL timing).

    Raises PllError if ``source`` is beyond these limits, or if no parameters make ``target`` MHz.
    """
    _check_source(source, "an iCE40", 133)
    choices = []
    for divr in range(16):
        detector = source / (divr + 1)
        if not 10 <= detector <= 133:
            continue
        for divf in range(128):
            vco = detector * (divf + 1)
            for divq in range(1, 7):
                if 533 <= vco <= 1066 and 16 <= vco / 2**divq <= 275:
                    parameters = {
                        "FEEDBACK_PATH": "SIMPLE", "DIVR": divr, "DIVF": divf, "DIVQ": divq,
                        "FILTER_RANGE": _filter(detector),
                    }
                    choices.append(Pll(parameters, vco / 2**divq, vco, detector))
    return _nearest(choices, source, target, preference=lambda pll: -pll.detector)


def _filter(detector):
    """FILTER_RANGE for a frequency in MHz at the phase detector."""
    return 1 + sum(detector >= limit for limit in (17, 26, 44, 66, 101))


def ecp5(source: float, target: float) -> Pll:
    """The output of an EHXPLLL: CLKOP, which is also its feedback; if that is not possible, CLKOS.

    CLKOP has ``source / CLKI_DIV * CLKFB_DIV``. CLKOS has that times ``CLKOP_DIV / CLKOS_DIV``, so
    it can have a frequency between the multiples of the detector's.

    Limits: 10 to 400 MHz in, 3.125 to 400 MHz out, 400 to 800 MHz in the oscillator, 10 to 400 MHz
    at the phase detector (ECP5 data sheet, sysCLOCK PLL timing). Among equal choices, the
    oscillator nearest to the middle of its range wins.

    Raises PllError if ``source`` is beyond these limits, or if no parameters make ``target`` MHz.
    """
    _check_source(source, "an ECP5", 400)
    choices = list(_ecp5_choices(source))
    if not any(abs(pll.frequency - target) <= TOLERANCE * target for pll in choices):
        choices += _ecp5_second_outputs(source)
    return _nearest(
        choices, source, target, preference=lambda pll: (abs(pll.vco - 600), -pll.detector)
    )


def ecp5_full_speed(source: float) -> Pll:
    """An EHXPLLL with the clocks of a USB device of full speed: 48 MHz on CLKOS, 12 on CLKOS2.

    Raises PllError if ``source`` is beyond the limits of `ecp5`, or if no parameters make 48 MHz.
    """
    # CLKOS2 has four times the divider, of at most 128.
    best = _second_output(source, FULL_SPEED_MHZ, FULL_SPEED_TOLERANCE, most=32)
    divider = 4 * best.parameters["CLKOS_DIV"]
    return replace(best, parameters=best.parameters | {
        "CLKOS2_DIV": divider, "CLKOS2_CPHASE": divider // 2, "CLKOS2_FPHASE": 0,
        "CLKOS2_ENABLE": "ENABLED",
    })


def ecp5_phy(source: float) -> Pll:
    """An EHXPLLL with the clock of a PHY of high speed: 60 MHz on CLKOS.

    Raises PllError as `ecp5_full_speed`.
    """
    return _second_output(source, PHY_MHZ, PHY_TOLERANCE)


def ecp5_shifted(settings: Pll, degrees: float) -> Pll:
    """Settings of `ecp5` with the same clock on CLKOS2, later by a part of its period.

    A step is an eighth of the oscillator's period: ``45 / divider`` degrees. The nearest one is
    taken.

    Source: Lattice FPGA-TN-02200, ECP5 and ECP5-5G sysCLOCK PLL/DLL: fine and coarse phase. The
    parameters are those of ecppll.
    """
    output = _output(settings)
    divider, phase = (settings.parameters[f"{output}_{name}"] for name in ("DIV", "CPHASE"))
    coarse, fine = divmod(nearest_phase("ecp5", settings, degrees).phase, 8)
    return replace(settings, parameters=settings.parameters | {
        "CLKOS2_DIV": divider, "CLKOS2_CPHASE": phase + coarse, "CLKOS2_FPHASE": fine,
        "CLKOS2_ENABLE": "ENABLED",
    })


def _second_output(source, target, tolerance, most=128):
    """The best setting with ``target`` MHz on CLKOS, whose divider is at most ``most``."""
    _check_source(source, "an ECP5", 400)
    return _nearest(
        [pll for pll in _ecp5_second_outputs(source) if pll.parameters["CLKOS_DIV"] <= most],
        source, target, preference=lambda pll: (abs(pll.vco - 600), -pll.detector),
        tolerance=tolerance,
    )


def _ecp5_choices(source):
    """The settings with CLKOP as the output."""
    for reference in range(1, 129):
        detector = source / reference
        if not 10 <= detector <= 400:
            continue
        for feedback in range(1, 81):
            frequency = detector * feedback
            if not 3.125 <= frequency <= 400:
                continue
            for divider in range(1, 129):
                if 400 <= frequency * divider <= 800:
                    parameters = _ecp5_parameters(reference, feedback, divider)
                    yield Pll(parameters, frequency, frequency * divider, detector)


def _ecp5_second_outputs(source):
    """The settings with CLKOS as the output; CLKOP has the frequency of the phase detector."""
    for reference in range(1, 129):
        detector = source / reference
        if not 10 <= detector <= 400:
            continue
        # With CLKFB_DIV = 1, CLKOP has the detector's frequency: the oscillator CLKOP_DIV times it.
        for op_divider in range(1, 129):
            vco = detector * op_divider
            if not 400 <= vco <= 800:
                continue
            for divider in range(1, 129):
                if 3.125 <= vco / divider <= 400:
                    parameters = _ecp5_parameters(reference, 1, op_divider) | {
                        "CLKOS_DIV": divider, "CLKOS_CPHASE": divider // 2, "CLKOS_FPHASE": 0,
                        "CLKOS_ENABLE": "ENABLED",
                    }
                    yield Pll(parameters, vco / divider, vco, detector)


def _ecp5_parameters(reference, feedback, divider):
    return {
        "CLKI_DIV": reference, "CLKFB_DIV": feedback, "CLKOP_DIV": divider,
        "CLKOP_CPHASE": divider // 2, "CLKOP_FPHASE": 0,
        "CLKOP_ENABLE": "ENABLED", "FEEDBK_PATH": "CLKOP",
    }


# MHz: the most at the input and the phase detector; the oscillator; the output.
_GOWIN = {
    "GW2AR-18C": (500, (500, 1250), (3.90625, 625)),
    "GW1NR-9C": (400, (400, 1200), (3.125, 600)),
}


def gowin(source: float, target: float, device: str = "GW2AR-18C") -> Pll:
    """``source * (FBDIV_SEL + 1) / (IDIV_SEL + 1)``: CLKOUT of an rPLL, its feedback inside.

    The oscillator is ODIV_SEL times as fast.

    Limits of a GW2AR of grade C8/I7 (Gowin DS102 and DS226, PLL switching characteristic) and of a
    GW1NR-9C of grade C6/I5 (Gowin DS117).

    Raises PllError if ``source`` is beyond these limits, or if no parameters make ``target`` MHz.
    """
    most, oscillator, output = _GOWIN[device]
    _check_source(source, f"a {device}", most, least=3)
    choices = []
    for reference in range(1, 65):
        detector = source / reference
        if not 3 <= detector <= most:
            continue
        for feedback in range(1, 65):
            frequency = detector * feedback
            for divider in (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128):
                if (
                    oscillator[0] <= frequency * divider <= oscillator[1]
                    and output[0] <= frequency <= output[1]
                ):
                    parameters = {
                        "FCLKIN": f"{source:g}", "IDIV_SEL": reference - 1,
                        "FBDIV_SEL": feedback - 1, "ODIV_SEL": divider, "DEVICE": device,
                        "CLKFB_SEL": "internal", "DYN_IDIV_SEL": "false",
                        "DYN_FBDIV_SEL": "false", "DYN_ODIV_SEL": "false",
                    }
                    choices.append(Pll(parameters, frequency, frequency * divider, detector))
    return _nearest(choices, source, target, preference=lambda pll: (-pll.detector, pll.vco))


def gowin_shifted(settings: Pll, degrees: float) -> Pll:
    """Settings of `gowin` with the same clock on CLKOUTP, later by a part of its period.

    A step is a 16th of the period: 22.5 degrees. The nearest one is taken.

    Source: Gowin UG286, Clock: rPLL, PSDA_SEL and DUTYDA_SEL.
    """
    step = nearest_phase("gowin", settings, degrees).phase
    return replace(settings, parameters=settings.parameters | {
        "PSDA_SEL": f"{step:04b}", "DUTYDA_SEL": "1000", "DYN_DA_EN": "false",
    })


def shifted(family: str, settings: Pll, degrees: float) -> Pll:
    """`ecp5_shifted` or `gowin_shifted`, by the name of a `weft.boards.flows.flow.Flow`."""
    return {"ecp5": ecp5_shifted, "gowin": gowin_shifted}[family](settings, degrees)


def moves(family: str) -> bool:
    """Whether the phase of `shifted` can move while the clocks run."""
    return family == "ecp5"


def nearest_phase(family: str, settings: Pll, degrees: float) -> SdramPhase:
    """The phase that `shifted` sets: the step nearest to ``degrees``."""
    steps = 8 * settings.parameters[f"{_output(settings)}_DIV"] if family == "ecp5" else 16
    return SdramPhase(round(steps * (degrees % 360) / 360) % steps, steps)


def _output(settings):
    """The output of an EHXPLLL that has the clock of the core."""
    return "CLKOS" if "CLKOS_DIV" in settings.parameters else "CLKOP"


def _check_source(source, device, most, least=10):
    """Raise PllError if the PLL of a device cannot take ``source`` MHz: ``least`` to ``most``."""
    if not least <= source <= most:
        raise PllError(
            f"the clock that feeds the PLL of {device} must be {least} to {most} MHz, not"
            f" {source:g} MHz"
        )


def _nearest(choices, source, target, preference, tolerance=TOLERANCE):
    """The choice nearest to ``target``; among equal ones, that with the least ``preference``."""
    best = min(choices, key=lambda pll: (round(abs(pll.frequency - target), 6), preference(pll)))
    if abs(best.frequency - target) > tolerance * target:
        raise PllError(
            f"clock must be a frequency that the PLL can make from {source:g} MHz, not"
            f" {target:g} MHz; the nearest is {best.frequency:g} MHz"
        )
    return best
