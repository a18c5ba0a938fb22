"""The cost curve: what arrays of more and more MAC/cycle take on one device, as a picture."""

from pathlib import Path

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

    capacity = DEVICES[DEVICE].capacity
    peaks = [record.peak for record in records]
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    figure.suptitle(f"Whole INT8 accelerators on an {DEVICE}")
    (cells, clock), (rate, minutes) = figure.subplots(2, 2, sharex=True)
    for name in ("LUT", "FF", "DSP", "RAM"):
        shares = [100 * record.used[name] / capacity[name] for record in records]
        cells.plot(peaks, shares, marker="o", label=name)
    cells.axhline(100, color="black", linewidth=1)
    cells.set_ylabel("cells, % of the device")
    cells.legend()
    clock.plot(peaks, [record.best for record in records], marker="o")
    clock.set_ylabel("fmax, MHz")
    rate.plot(peaks, [record.rate for record in records], marker="o")
    rate.set_ylabel("GMAC/s")
    timed = [(record.peak, record.minutes) for record in records if record.minutes is not None]
    minutes.plot(*zip(*timed, strict=True), marker="o")
    minutes.set_ylabel("minutes of place and route")
    for axes in (cells, clock, rate, minutes):
        axes.set_xscale("log", base=2)
        axes.set_xticks(peaks, [f"{peak:,}" for peak in peaks])
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    for axes in (rate, minutes):
        axes.set_xlabel("MAC/cycle")
    figure.savefig(path, dpi=120, metadata={"Software": None})
