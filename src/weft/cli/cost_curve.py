"""The cost curve: what arrays of more and more MAC/cycle take on one device, as a picture."""

from pathlib import Path

from weft.files import whole

__all__ = ["DEVICE", "cost_curve", "curve"]

DEVICE = "LFE5U-85F"


def curve(records) -> list:
    """The records of whole INT8 accelerators on `DEVICE`, the smallest array first."""
    found = [
        record for record in records
        if record.device == DEVICE and record.rate is not None
        and record.config.get("dtype", "int8") == "int8"
    ]
    return sorted(found, key=lambda record: record.peak)


def cost_curve(records, path: Path) -> None:
    """Draw cells, fmax, rate, and minutes of place and route over the MAC/cycle of `curve`.

    Fewer than two designs make no curve, and no picture.
    """
    records = curve(records)
    if len(records) < 2:
        return
    from matplotlib.figure import Figure

    from weft.boards.devices import DEVICES

    figure = Figure(figsize=(9, 6.4), layout="constrained")
    figure.suptitle(f"Whole INT8 accelerators on an {DEVICE}")
    (cells, clock), (rate, minutes) = figure.subplots(2, 2, sharex=True)
    for name in ("LUT", "FF", "DSP", "RAM"):
        percent = 100 / DEVICES[DEVICE].capacity[name]
        _line(cells, records, lambda record, n=name, p=percent: p * record.used[n], name)
    cells.legend()
    _line(clock, records, lambda record: record.best)
    _line(rate, records, lambda record: record.rate)
    _line(minutes, [record for record in records if record.minutes], lambda record: record.minutes)
    peaks = [record.peak for record in records]
    for axes, label, top in (
        (cells, "cells, % of the device", 105), (clock, "fmax, MHz", None),
        (rate, "GMAC/s", None), (minutes, "minutes of place and route", None),
    ):
        axes.set_ylabel(label)
        axes.set_xscale("log", base=2)
        axes.set_xticks(peaks, [f"{peak:,}" for peak in peaks])
        axes.set_ylim(0, top)
        axes.grid(alpha=0.3)
    for axes in (rate, minutes):
        axes.set_xlabel("MAC/cycle")
    with whole(path) as part:
        figure.savefig(part, format="png", dpi=120, metadata={"Software": None})


def _line(axes, records, value, label=None):
    """A dot for each record, and a line through them."""
    axes.margins(y=0.2)
    axes.plot(
        [record.peak for record in records], [value(record) for record in records],
        marker="o", label=label,
    )
