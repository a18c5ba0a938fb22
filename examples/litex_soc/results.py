"""Checks of what the firmware and nextpnr print."""

import re

__all__ = ["print_difference", "timing_is_met"]

CELLS = "TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD", "MULT18X18D"


def print_difference(predicted: int, text: str) -> None:
    """Print how far the predicted cycles of all layers are from the ones that the firmware prints.

    ``text`` is what the firmware printed. The memory of the prediction is a model of an SDRAM, so
    a difference is no error.
    """
    [cycles] = re.findall(r"([\d,]+) +[\d,]+  all layers", text)
    off = predicted / int(cycles.replace(",", "")) - 1
    print(f"The predicted cycles are {abs(off):.1%} {'too many' if off > 0 else 'too few'}.")


def timing_is_met(text: str) -> bool:
    """Print cells and clocks from the output of nextpnr; whether each clock is met."""
    for cell in CELLS:
        used, available = re.findall(rf"{cell}: +(\d+)/ *(\d+)", text)[-1]
        print(f"{cell}: {int(used):,} of {int(available):,}")
    pattern = r"Max frequency for clock +'(.*)': ([\d.]+) MHz \(\w+ at ([\d.]+) MHz\)"
    # nextpnr prints each clock after placement, and again after routing.
    clocks = {name: (float(fmax), float(goal)) for name, fmax, goal in re.findall(pattern, text)}
    for name, (fmax, goal) in clocks.items():
        print(f"{name}: {fmax} MHz, required {goal} MHz")
    return bool(clocks) and all(fmax >= goal for fmax, goal in clocks.values())
