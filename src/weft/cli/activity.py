"""A picture of an accelerator's activity over time, from one byte of flags a cycle."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = [
    "BUSY",
    "COMPUTING",
    "LOADING",
    "RESULT",
    "STALLED",
    "STARVED",
    "Timeline",
    "activity_picture",
]

# As the core's port ``activity`` gives them.
LOADING, COMPUTING, STARVED, STALLED, RESULT, BUSY = 1, 2, 4, 8, 16, 32

# After Okabe and Ito: told apart by colour-blind eyes, and by their lightness in grey.
_BLUE, _GREEN, _YELLOW, _RED, _PURPLE = "#56b4e9", "#009e73", "#f0b429", "#b23a00", "#8e5aa8"
_INK, _FAINT, _GRID, _PAPER = "#22303c", "#6b7885", "#e3e8ec", "#f7f9fa"
# Lanes from the top down: label, then (flag, meaning, colour) stacked from the lane's floor.
_LANES = (
    ("load", ((LOADING, "command word taken", _BLUE),)),
    ("compute", ((COMPUTING, "operands enter the array", _GREEN),)),
    (
        "wait",
        (
            (STARVED, "starved: operands missing", _YELLOW),
            (STALLED, "stalled: no room for results", _RED),
        ),
    ),
    ("results", ((RESULT, "result word taken", _PURPLE),)),
)
_BINS = 600  # at most, and a power of two of cycles each: in step with most tiles
_HEIGHT = 0.78  # of a lane; the rest is air


@dataclass(frozen=True, eq=False)
class Timeline:
    """What happened in each cycle, and which layer it was for.

    Attributes
    ----------
    flags : uint8 [cycles]
        A cycle's sum of LOADING (a command word accepted), COMPUTING (operands enter the array),
        STARVED, STALLED, RESULT (a result word taken) and BUSY (anything under way; not drawn).
    layers : sequence of (name, first cycle)
        In ascending order; each lasts until the next begins.

    Raises
    ------
    TypeError, ValueError
        For flags that are no such array, or layers out of order or out of range.
    """

    flags: np.ndarray
    layers: tuple

    def __post_init__(self):
        if getattr(self.flags, "dtype", None) != np.uint8:
            found = getattr(self.flags, "dtype", type(self.flags).__name__)
            raise TypeError(f"flags must be a uint8 array, not {found}")
        if self.flags.ndim != 1 or not self.flags.size:
            raise ValueError(f"flags must be one number a cycle, not of shape {self.flags.shape}")
        if self.flags.max() >= 2 * BUSY:
            raise ValueError(f"flags must be under {2 * BUSY}, not {self.flags.max()}")
        if not self.layers:
            raise ValueError("layers must be one or more, not none")
        starts = [start for _, start in self.layers]
        if sorted(set(starts)) != starts:
            raise ValueError(f"layers must start one after the other, not at {starts}")
        if starts[0] < 0 or starts[-1] >= self.flags.size:
            raise ValueError(f"layers must start in 0..{self.flags.size - 1}, not at {starts}")

    def spans(self):
        """(name, first cycle, end) of each layer."""
        ends = [start for _, start in self.layers[1:]] + [self.flags.size]
        return [(name, start, end) for (name, start), end in zip(self.layers, ends, strict=True)]


def activity_picture(path, timeline, title, zoom=0, zoom_cycles=300):
    """Draws ``timeline`` as a PNG of 1600 x 900.

    Above is the whole run, a lane's height the share of cycles in which its flag was up; below it
    the start of one layer, cycle by cycle.

    Parameters
    ----------
    path : path of the PNG; written whole or not at all
    timeline : Timeline
    title : str
    zoom : int
        The layer whose first ``zoom_cycles`` cycles the lower panel shows.

    Raises
    ------
    ValueError
        For a layer that the timeline has not, or less than one cycle to zoom into.
    """
    if not 0 <= zoom < len(timeline.layers):
        raise ValueError(f"zoom must be in 0..{len(timeline.layers) - 1}, not {zoom}")
    if zoom_cycles < 1:
        raise ValueError(f"zoom_cycles must be 1 or more, not {zoom_cycles}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    name, start, end = timeline.spans()[zoom]
    end = min(end, start + zoom_cycles)
    figure = Figure(figsize=(16, 9), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    whole = figure.add_axes((0.075, 0.485, 0.835, 0.340), facecolor="none")
    close = figure.add_axes((0.075, 0.130, 0.835, 0.240), facecolor="none")
    _heading(figure, timeline, title)
    _whole_run(whole, timeline, (start, end))
    _cycle_by_cycle(close, timeline.flags[start:end], start, name)
    _enlarge(figure, whole, close, (start, end))
    path = Path(path)
    part = path.with_name(path.name + ".part")
    try:
        figure.savefig(part, format="png")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _share(flags, flag):
    return float(np.mean((flags & flag) != 0))


def _share_text(flags, flag, text, named):
    """A flag's share of all cycles, with the first word of its meaning where a lane has several."""
    return f"{_share(flags, flag):.1%}" + (f" {text.split(':')[0]}" if named else "")


def _heading(figure, timeline, title):
    """Title, one line of figures, and the legend."""
    from matplotlib.patches import Patch

    flags = timeline.flags
    figure.text(0.075, 0.945, title, fontsize=20, fontweight="bold", color=_INK, va="center")
    figure.text(
        0.075,
        0.906,
        f"{flags.size:,} cycles   ·   computing in {_share(flags, COMPUTING):.1%} of them",
        fontsize=13,
        color=_FAINT,
        va="center",
    )
    marks = [Patch(color=colour, label=text) for _, parts in _LANES for _, text, colour in parts]
    figure.legend(
        handles=marks,
        loc="lower center",
        bbox_to_anchor=(0.4925, 0.012),
        ncols=len(marks),
        frameon=False,
        fontsize=11,
        labelcolor=_INK,
        handlelength=1.1,
        handleheight=1.1,
        columnspacing=2.4,
    )


def _lanes(axes, left, right):
    """A row of paper a lane, its name beside it; gives the floor of each."""
    floors = [len(_LANES) - 1 - i for i in range(len(_LANES))]
    for floor in floors:
        pass; (lambda *a, **k: 0)(0) #         axes.barh(floor, right - left, _HEIGHT, left, align="edge", color=_PAPER, zorder=0)
    axes.set_yticks(
        [floor + _HEIGHT / 2 for floor in floors],
        [name for name, _ in _LANES],
        fontsize=13,
        color=_INK,
    )
    axes.set_ylim(-0.12, len(_LANES) - (1 - _HEIGHT) + 0.06)
    axes.set_xlim(left, right)
    axes.tick_params(length=0, axis="y", pad=10)
    axes.tick_params(axis="x", colors=_FAINT, labelsize=11)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_FAINT)
    return floors


def _whole_run(axes, timeline, window):
    """Duty of every lane over the whole run, and the layers that it falls into."""
    flags = timeline.flags
    width = 1 << (-(-flags.size // _BINS) - 1).bit_length()
    edges = np.append(np.arange(0, flags.size, width), flags.size)
    for floor, (_, parts) in zip(_lanes(axes, 0, flags.size), _LANES, strict=True):
        base, taken = np.full(edges.size - 1, float(floor)), 0
        for flag, _, colour in parts:
            up = (flags & flag != 0) & (flags & taken == 0)
            top = base + _HEIGHT * np.add.reduceat(up, edges[:-1], dtype=np.int64) / np.diff(edges)
            axes.stairs(top, edges, baseline=base, fill=True, color=colour, lw=0, zorder=2)
            base, taken = top, taken | flag
        shares = "\n".join(
            _share_text(flags, flag, text, len(parts) > 1) for flag, text, _ in parts[::-1]
        )
        axes.annotate(
            shares,
            (1, floor + _HEIGHT / 2),
            (10, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=12 if len(parts) == 1 else 11,
            color=_INK,
            linespacing=1.4,
        )
    grain = (
        "every one a column"
        if width == 1
        else f"each column {width:,} of them, its height their share"
    )
    axes.set_xlabel(f"cycle  ({grain})", fontsize=11, color=_FAINT, loc="right")
    renderer = axes.figure.canvas.get_renderer()
    whole_width, margin = axes.get_window_extent(renderer).width, 0.08 * axes.figure.bbox.width
    for name, start, end in timeline.spans():
        axes.axvline(start, color=_INK, lw=1, ymax=1.12, clip_on=False, zorder=3)
        room = whole_width * (end - start) / flags.size + (margin if end == flags.size else 0)
        for size in (11, 9):
            label = axes.annotate(
                f"{name}\n{end - start:,} cycles",
                (start, 1),
                (7, 4),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                fontsize=size,
                color=_INK,
                va="bottom",
                linespacing=1.35,
            )
            if label.get_window_extent(renderer).width + 20 < room:
                break
            label.remove()


def _cycle_by_cycle(axes, flags, start, name):
    """One mark a cycle in every lane; a second flag of a lane takes the upper half."""
    end = start + flags.size
    for floor, (_, parts) in zip(_lanes(axes, start, end), _LANES, strict=True):
        taken = 0
        for flag, _, colour in parts:
            cycles = np.flatnonzero(flags & flag)
            lift = _HEIGHT / 2 * (flags[cycles] & taken != 0)
            taken |= flag
            axes.bar(
                start + cycles, _HEIGHT - lift, 1, floor + lift,
                align="edge", color=colour, ec="white", lw=0.5, zorder=2,
            )  # fmt: skip
    axes.set_xlabel("cycle  (every one a mark)", fontsize=11, color=_FAINT, loc="right")
    axes.set_title(
        f" {name}, its first {flags.size:,} cycles one by one",
        loc="left",
        fontsize=13,
        color=_INK,
        pad=8,
    )


def _enlarge(figure, whole, close, window):
    """A faint wedge from the piece of the run to its enlargement."""
    from matplotlib.patches import Polygon

    above, below, page = whole.get_xaxis_transform(), close.transAxes, figure.transFigure.inverted()
    corners = [above.transform((window[0], 0)), above.transform((window[1], 0))]
    corners += [below.transform((1, 1)), below.transform((0, 1))]
    figure.add_artist(
        Polygon(
            page.transform(corners),
            transform=figure.transFigure,
            color=_PAPER,
            ec=_GRID,
            lw=1,
            zorder=-1,
        )
    )
