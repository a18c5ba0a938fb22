"""The performance page: records, table, pictures, and the check for regressions."""

import dataclasses
import json
import statistics
from pathlib import Path

from weft.config import Config
from weft.files import output_folder, write_text, written_whole

__all__ = [
    "COLUMNS", "DEVICE", "Measurement", "PerformanceRecords", "cost_curve", "curve", "problems",
    "regressions", "rows",
]

TOLERANCE = 0.03  # relative loss that counts as noise
PEER = 6.6  # GMAC/s of the best other open array, on an LFE5U-85F
BEGIN, END = "<!-- the table: weft bench writes it -->", "<!-- the end of the table -->"
HEAD = f"""\
# Performance

`weft bench` (`make bench`) measures the designs of this table. It writes the table, two pictures,
and a record of each measured design (`performance.json`).

Each row is a whole accelerator: serial link, buffers, tiler, array, result path with
requantization, registers. It is synthesized with Yosys, and placed and routed with nextpnr for the
device, with real pins that nextpnr chooses. The device holds nothing else. The reset of an iCE40
comes from a pin and is not timed; a design for an ECP5 has no reset, and its registers start with
their configured values. "The array alone" is an array with unconnected ports.

* **LUT**, **FF**, **DSP**, **RAM** are numbers of cells as reported by nextpnr. ECP5: TRELLIS_COMB
  (two for each CCU2C of a carry chain, and the LUTs that feed it), TRELLIS_FF, MULT18X18D, DP16KD.
  iCE40: logic cells (a LUT and a flip-flop each), SB_DFF cells of the netlist, SB_MAC16, block RAMs
  + single-port RAMs.
* **fmax** is nextpnr's value for the routed design, ECP5 speed grade 6; best and median of the
  seeds.
* **utilization** is M * K * N / (interval * MAC/cycle). The interval is the number of cycles from
  one product to the next, for equal products back to back, at the better of 128^3 and 256^3. It has
  int8 results, and bfloat16 results on a BF16 core. It includes loading, and the splitting of
  operands that do not fit the buffers. Command words are always available and results always
  accepted at the core's streams. The cycle model computes it, and the simulated hardware takes the
  same number of cycles.
* **GMAC/s** is MAC/cycle * utilization * best fmax.
* **minutes** is the duration of place and route with the best seed, on one core of the machine that
  measured it.

{BEGIN}
{END}
"""
DEVICE = "LFE5U-85F"  # of the designs in the picture of the cost


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """The measured figures of one design.

    Attributes
    ----------
    name, device : str
    config : dict
        The fields that differ from the default Config.
    array_only : bool
        Only the array was built.
    goal : float or None
        Minimum throughput in GMAC/s.
    clock : float or None
        fmax must be higher than this, in MHz.
    used : dict of int
        Amount of each resource.
    fmax : dict of float
        fmax in MHz, by seed.
    path : str
        The critical path with the best seed.
    size : int or None
        M = K = N of the products that were measured; None if only the array was built.
    interval : float or None
        Cycles from one product to the next, in steady state.
    simulated : bool
        Whether the simulated hardware took the same number of cycles.
    design : str
        16 hexadecimal digits: a digest of the netlist and of the tool versions.
    date : str
    luts : int or None
        Maximum number of LUTs.
    arrivals : dict of float
        Latest arrival at a register in nanoseconds, by block, with the best seed.
    minutes : float or None
        Duration of place and route with the best seed.
    digests : dict of str
        `weft.boards.toolchain.digests` of what was measured; older records have none.
    """

    name: str
    device: str
    config: dict
    array_only: bool
    goal: float | None
    clock: float | None
    used: dict
    fmax: dict
    path: str
    size: int | None
    interval: float | None
    simulated: bool
    design: str
    date: str
    luts: int | None = None
    arrivals: dict = dataclasses.field(default_factory=dict)
    minutes: float | None = None
    digests: dict = dataclasses.field(default_factory=dict)

    @property
    def peak(self) -> int:
        """MAC/cycle."""
        return Config.from_dict(self.config).peak

    @property
    def best(self) -> float:
        """The best fmax of the seeds."""
        return max(self.fmax.values())

    @property
    def utilization(self) -> float | None:
        """Share of the peak rate that is used in steady state."""
        return None if self.size is None else self.size**3 / self.interval / self.peak

    @property
    def rate(self) -> float | None:
        """GMAC/s: peak * utilization * fmax."""
        return None if self.size is None else self.peak * self.utilization * self.best / 1000


class PerformanceRecords:
    """The measurements in a folder; the last of each name are the table of the page.

    Parameters
    ----------
    folder : Path
        Folder of ``performance.json``.
    pages : Path
        Folder of ``performance.md``, ``performance.png`` and ``performance-cost.png``. Missing
        files are created by `save`.

    Raises
    ------
    OSError
        If ``performance.json`` exists, but cannot be read as records.
    """

    def __init__(self, folder: Path, pages: Path):
        self._pages = Path(pages)
        self._file = Path(folder) / "performance.json"
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = "[]"
        try:
            self._all = [Measurement(**fields) for fields in json.loads(text)]
        except (TypeError, ValueError) as error:
            raise OSError(f"{self._file} must hold records of weft bench: {error}") from error

    @property
    def latest(self) -> dict[str, Measurement]:
        """The last record of each name."""
        return {record.name: record for record in self._all}

    def add(self, record: Measurement) -> None:
        """Append a record; it replaces the last one of its name if both have the same design."""
        last = self.latest.get(record.name)
        if last is not None and last.design == record.design:
            self._all[self._all.index(last)] = record
        else:
            self._all.append(record)

    def save(self, names) -> None:
        """Write all files; the table has a row for each of ``names``, in that order."""
        output_folder(self._file.parent)
        output_folder(self._pages)
        records = [self.latest[name] for name in names if name in self.latest]
        texts = ",\n".join(json.dumps(dataclasses.asdict(record)) for record in self._all)
        write_text(self._file, f"[\n{texts}\n]\n")
        page = self._pages / "performance.md"
        text = page.read_text(encoding="utf-8") if page.exists() else HEAD
        if not 0 <= text.find(BEGIN) < text.find(END):
            raise OSError(f"{page} must have the lines {BEGIN!r} and {END!r} around its table")
        before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
        write_text(page, f"{before}\n\n{_table(records)}\n{after}")
        _picture(records, self._pages / "performance.png")
        cost_curve(records, self._pages / "performance-cost.png")


def problems(record: Measurement, previous: Measurement | None) -> list[str]:
    """The goals that ``record`` misses, and its regressions against the previous record."""
    texts = []
    if record.goal is not None and record.rate < record.goal:
        texts.append(
            f"{record.name} must reach {record.goal:g} GMAC/s, not {record.rate:.2f};"
            f" critical path: {record.path}"
        )
    if record.clock is not None and record.best <= record.clock:
        texts.append(
            f"{record.name} must run at over {record.clock:g} MHz, not {record.best:.1f};"
            f" critical path: {record.path}"
        )
    if record.luts is not None and record.used["LUT"] > record.luts:
        texts.append(
            f"{record.name} must use at most {record.luts:,} LUTs, not {record.used['LUT']:,}"
        )
    return texts + regressions(record, previous)


def regressions(record: Measurement, previous: Measurement | None) -> list[str]:
    """How ``record`` is worse than the previous one, by more than the tolerance."""
    if previous is None:
        return []
    if None in (record.rate, previous.rate):
        new, old, unit = record.best, previous.best, "MHz"
    else:
        new, old, unit = record.rate, previous.rate, "GMAC/s"
    if new >= old * (1 - TOLERANCE):
        return []
    allowed = f"within {TOLERANCE:.0%} of the recorded {old:.2f} {unit}"
    return [f"{record.name} must stay {allowed}, not fall to {new:.2f}"]


COLUMNS = (
    "design", "device", "MAC/cycle", "LUT", "FF", "DSP", "RAM", "fmax, best", "fmax, median",
    "utilization", "GMAC/s", "per DSP", "per 1000 LUT", "minutes", "goal",
)


def rows(records) -> list[list[str]]:
    """A row of `COLUMNS` for each record; "-" for a column that does not apply."""
    cells = []
    for record in records:
        used, rate = record.used, record.rate
        dsp = used.get("DSP", 0)
        ram = str(used["RAM"]) + (f" + {used['SPRAM']}" if used.get("SPRAM") else "")
        goal = "-"  # a record has one of the three at most
        if record.goal is not None:
            goal = f"{record.goal:g} GMAC/s"
        elif record.clock is not None:
            goal = f"over {record.clock:g} MHz"
        elif record.luts is not None:
            goal = f"at most {record.luts:,} LUT"
        cells.append([
            record.name, record.device, str(record.peak), f"{used['LUT']:,}", f"{used['FF']:,}",
            str(dsp), ram, f"{record.best:.1f} MHz",
            f"{statistics.median(record.fmax.values()):.1f} MHz",
            "-" if rate is None else f"{record.utilization:.1%} at {record.size}^3",
            "-" if rate is None else f"{rate:.2f}",
            "-" if rate is None or not dsp else f"{rate / dsp:.2f}",
            "-" if rate is None else f"{1000 * rate / used['LUT']:.2f}",
            "-" if record.minutes is None else f"{record.minutes:.1f}",
            goal,
        ])
    return cells


def _table(records):
    """The table in Markdown, and a list with the details of each row."""
    lines = [" | ".join(COLUMNS), "|".join(["---"] * 2 + ["---:"] * (len(COLUMNS) - 2))]
    lines += [" | ".join(row) for row in rows(records)]
    text = "".join(f"| {line} |\n" for line in lines)
    for record in records:
        fields = ", ".join(f"{name}={value}" for name, value in record.config.items())
        cycles = "the array alone"
        if record.size is not None:
            source = "confirmed in simulation" if record.simulated else "by the cycle model only"
            cycles = f"{record.interval:,.10g} cycles for {record.size}^3, {source}"
        text += (
            f"\n* **{record.name}**: {fields}; {cycles}; seeds {', '.join(record.fmax)};"
            f" {record.date}; critical path {record.path}."
        )
    return text + "\n" + _limits(records) if records else text


def _limits(records):
    """A table of the clock that the latest arrival at each block allows: a column a record."""
    records = [record for record in records if record.arrivals and not record.array_only]
    if not records:
        return ""
    slowest = {}
    for record in records:
        for block, delay in record.arrivals.items():
            slowest[block] = max(delay, slowest.get(block, 0))
    names = [record.name for record in records]
    lines = ["block | " + " | ".join(names), "|".join(["---", *["---:"] * len(names)])]
    for block in sorted(slowest, key=lambda block: -slowest[block]):
        delays = [record.arrivals.get(block) for record in records]
        lines.append(" | ".join([block, *(f"{1000 / d:.0f}" if d else "-" for d in delays)]))
    return (
        "\nThe clock in MHz that each block allows: 1,000 divided by the latest arrival at one of"
        " its\nregisters, in nanoseconds, with the best seed. The slowest block comes first. An"
        " arrival of nextpnr\ncontains the delay of the clock's network (0.9 ns on an iCE40UP5K,"
        " none on an ECP5), but not the\nsetup time of the register (up to 0.8 ns on an iCE40UP5K,"
        " 0.4 ns on an ECP5). So the smallest\nnumber of a column is the fmax of its design within"
        " 7 %.\n\n"
        + "".join(f"| {line} |\n" for line in lines)
    )


def _picture(records, path):
    """A bar chart of the GMAC/s of each design, with its goal and the best peer."""
    records = [record for record in records if record.rate is not None]
    if not records:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.6 * len(records) + 1.4), layout="constrained")
    axes = figure.subplots()
    positions = range(len(records))
    bars = axes.barh(positions, [record.rate for record in records], color="tab:blue", height=0.6)
    axes.bar_label(bars, [f"{record.rate:.2f}" for record in records], padding=4)
    for y, record in zip(positions, records, strict=True):
        if record.goal is not None:
            axes.plot([record.goal] * 2, [y - 0.4, y + 0.4], color="black", linewidth=2)
    axes.axvline(PEER, color="tab:red", linestyle="--", linewidth=1)
    axes.text(PEER, -0.75, f" best open array on an 85F, {PEER}", color="tab:red", fontsize=8)
    axes.set_yticks(positions, [f"{record.name}\n{record.device}" for record in records])
    axes.set_ylim(len(records) - 0.4, -1)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("GMAC/s in steady state, results of 8 or 16 bits; black: goal")
    with written_whole(path) as part:
        figure.savefig(part, format="png", dpi=120, metadata={"Software": None})


def curve(records) -> list:
    """The records of whole INT8 accelerators on `DEVICE`, the smallest array first."""
    whole = (
        record for record in records
        if record.device == DEVICE and record.rate is not None
        and record.config.get("dtype", "int8") == "int8"
    )
    return sorted(whole, key=lambda record: record.peak)


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
    with written_whole(path) as part:
        figure.savefig(part, format="png", dpi=120, metadata={"Software": None})


def _line(axes, records, value, label=None):
    """A dot for each record, and a line through them."""
    axes.margins(y=0.2)
    axes.plot(
        [record.peak for record in records], [value(record) for record in records],
        marker="o", label=label,
    )
