"""The performance page: its table from its records, its picture, and what has become worse."""

import dataclasses
import json
from pathlib import Path

from weft.config import Config

__all__ = ["COLUMNS", "Records", "Measurement", "problems", "regressions", "rows"]

WORSE = 0.03  # of a figure, less than which counts as noise
PEER = 6.6  # GMAC/s of the best open array, on an LFE5U-85F
BEGIN, END = "<!-- the table: weft bench writes it -->", "<!-- the end of the table -->"
HEAD = f"""\
# Performance

`weft bench` (`make bench`) measures what is in this table, and writes it, along with a picture
(`performance.png`) and the records of each design that was measured (`performance.json`).

A line is a whole accelerator: serial link, buffers, tiler, array, result path with requantization,
registers, synthesized with Yosys and placed and routed with nextpnr for the device, with real
pins wherever nextpnr likes them. An iCE40's reset comes from a pin and is not timed; on an ECP5
there is none, and registers start as they were configured. Nothing else is on the device. "Alone"
is the array without the rest, its ports ending nowhere.

* **LUT**, **FF**, **DSP**, **RAM** are what nextpnr says it placed: TRELLIS_COMB (carry chains, two
  a CCU2C, and what feeds them included), TRELLIS_FF, MULT18X18D, DP16KD; on an iCE40 logic cells (a
  LUT and a flip-flop each), the SB_DFF of the netlist, SB_MAC16, block RAMs + single-port RAMs.
* **fmax** is nextpnr's for the routed design, ECP5 speed grade 6; best and median of the seeds.
* **utilization** is M * K * N / (interval * MAC/cycle), the interval being that of equal products
  with int8 results back to back, loading and the splitting that the buffers ask for included, at
  the better of 128^3 and 256^3; words always offered and results always taken at the core's
  streams. The cycle model has it, and the simulated hardware counts the same.
* **GMAC/s** is MAC/cycle * utilization * best fmax.

{BEGIN}
{END}
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """What one design reached.

    Attributes
    ----------
    name, device : str
    config : dict
        The fields that are not those of the default Config.
    alone : bool
        The array without the rest.
    goal, clock : float or None
        GMAC/s and MHz that it must reach, and pass.
    luts : int or None
        That it may take.
    used : dict of int
        Resources.
    fmax : dict of float
        MHz, by seed.
    path : str
        The critical path with the best seed.
    size : int or None
        Of the products, M = K = N, that the steady state is of; None for an array alone.
    interval : float or None
        Cycles from one to the next.
    simulated : bool
        Whether the hardware was seen to take so many.
    design : str
        16 digits that stand for the netlist and the tools.
    date : str
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
        """Share of the peak in steady state."""
        return None if self.size is None else self.size**3 / self.interval / self.peak

    @property
    def rate(self) -> float | None:
        """GMAC/s: peak * utilization * fmax."""
        return None if self.size is None else self.peak * self.utilization * self.best / 1000


class Records:
    """The records of a folder: the last of each name are the table of its page.

    Parameters
    ----------
    folder : Path
        With ``performance.json``, ``performance.md`` and ``performance.png``, as far as they are
        there.

    Raises
    ------
    OSError
        Where ``performance.json`` is there, but holds no records.
    """

    def __init__(self, folder: Path):
        self._folder = Path(folder)
        self._file = self._folder / "performance.json"
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = "[]"
        try:
            self._all = [Measurement(**one) for one in json.loads(text)]
        except (TypeError, ValueError) as error:
            raise OSError(f"{self._file} must hold records of weft bench: {error}") from error

    @property
    def records(self) -> dict[str, Measurement]:
        """The last one of each name."""
        return {record.name: record for record in self._all}

    def add(self, record: Measurement) -> None:
        """The newest of its name; it replaces the last one if that is of the same design."""
        last = self.records.get(record.name)
        if last is not None and last.design == record.design:
            self._all[self._all.index(last)] = record
        else:
            self._all.append(record)

    def save(self, names) -> None:
        """Write all three files; the table has lines for ``names``, in that order."""
        from weft.cli.output_paths import output_folder

        output_folder(self._folder)
        last = [self.records[name] for name in names if name in self.records]
        texts = ",\n".join(json.dumps(dataclasses.asdict(record)) for record in self._all)
        self._file.write_text(f"[\n{texts}\n]\n", encoding="utf-8")
        page = self._folder / "performance.md"
        text = page.read_text(encoding="utf-8") if page.exists() else HEAD
        if not 0 <= text.find(BEGIN) < text.find(END):
            raise OSError(f"{page} must have the lines {BEGIN!r} and {END!r} around its table")
        before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
        page.write_text(f"{before}\n\n{_table(last)}\n{after}", encoding="utf-8")
        _picture(last, self._folder / "performance.png")


def problems(record: Measurement, before: Measurement | None) -> list[str]:
    """Where ``record`` misses what it must reach, or is worse than the one before."""
    found = []
    if record.goal is not None and record.rate < record.goal:
        found.append(
            f"{record.name} must reach {record.goal:g} GMAC/s, not {record.rate:.2f}: held by"
            f" {record.path}"
        )
    if record.clock is not None and record.best <= record.clock:
        found.append(
            f"{record.name} must pass {record.clock:g} MHz, not reach {record.best:.1f}: held by"
            f" {record.path}"
        )
    if record.luts is not None and record.used["LUT"] > record.luts:
        found.append(
            f"{record.name} may take {record.luts:,} LUTs, not {record.used['LUT']:,}"
        )
    return found + regressions(record, before)


def regressions(record: Measurement, before: Measurement | None) -> list[str]:
    """Where ``record`` is worse than the one before by more than noise."""
    if before is None:
        return []
    if None in (record.rate, before.rate):
        new, old, unit = record.best, before.best, "MHz"
    else:
        new, old, unit = record.rate, before.rate, "GMAC/s"
    if new >= old * (1 - WORSE):
        return []
    allowed = f"within {WORSE:.0%} of the {old:.2f} {unit} recorded"
    return [f"{record.name} must stay {allowed}, not fall to {new:.2f}"]


COLUMNS = (
    "design", "device", "MAC/cycle", "LUT", "FF", "DSP", "RAM", "fmax, best", "fmax, median",
    "utilization", "GMAC/s", "per DSP", "per 1000 LUT", "must",
)


def rows(records) -> list[list[str]]:
    """A row of `COLUMNS` for each record; a dash where there is nothing to say."""
    import statistics

    found = []
    for record in records:
        used, rate = record.used, record.rate
        dsp = used.get("DSP", 0)
        ram = str(used["RAM"]) + (f" + {used['SPRAM']}" if used.get("SPRAM") else "")
        must = f"{record.goal:g} GMAC/s" if record.goal is not None else "-"
        must = f"over {record.clock:g} MHz" if record.clock is not None else must
        must = f"{record.luts:,} LUT" if record.luts is not None else must
        found.append([
            record.name, record.device, str(record.peak), f"{used['LUT']:,}", f"{used['FF']:,}",
            str(dsp), ram, f"{record.best:.1f} MHz",
            f"{statistics.median(record.fmax.values()):.1f} MHz",
            "-" if rate is None else f"{record.utilization:.1%} at {record.size}^3",
            "-" if rate is None else f"{rate:.2f}",
            "-" if rate is None or not dsp else f"{rate / dsp:.2f}",
            "-" if rate is None else f"{1000 * rate / used['LUT']:.2f}",
            must,
        ])
    return found


def _table(records):
    """Rows, and what each line is made of, as Markdown."""
    lines = [" | ".join(COLUMNS), "|".join(["---"] * 2 + ["---:"] * (len(COLUMNS) - 2))]
    lines += [" | ".join(row) for row in rows(records)]
    text = "".join(f"| {line} |\n" for line in lines)
    for record in records:
        fields = ", ".join(f"{name}={value}" for name, value in record.config.items())
        took = "the array alone"
        if record.size is not None:
            seen = "simulated too" if record.simulated else "of the cycle model only"
            took = f"{record.interval:,.10g} cycles for {record.size}^3, {seen}"
        text += (
            f"\n* **{record.name}**: {fields}; {took}; seeds {', '.join(record.fmax)};"
            f" {record.date}; critical path {record.path}."
        )
    return text + "\n" if records else text


def _picture(records, path):
    """GMAC/s of each design beside what it must reach, and the best peer."""
    records = [record for record in records if record.rate is not None]
    if not records:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.6 * len(records) + 1.4), layout="constrained")
    axes = figure.subplots()
    places = range(len(records))
    bars = axes.barh(places, [record.rate for record in records], color="tab:blue", height=0.6)
    axes.bar_label(bars, [f"{record.rate:.2f}" for record in records], padding=4)
    for place, record in zip(places, records, strict=True):
        if record.goal is not None:
            axes.plot([record.goal] * 2, [place - 0.4, place + 0.4], color="black", linewidth=2)
    axes.axvline(PEER, color="tab:red", linestyle="--", linewidth=1)
    axes.text(PEER, -0.75, f" best open array on an 85F, {PEER}", color="tab:red", fontsize=8)
    axes.set_yticks(places, [f"{record.name}\n{record.device}" for record in records])
    axes.set_ylim(len(records) - 0.4, -1)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("GMAC/s in steady state, INT8 results; black: what it must reach")
    figure.savefig(path, dpi=120, metadata={"Software": None})
