"""A picture of an accelerator's activity over time, from one byte of flags per cycle."""

from dataclasses import dataclass

import numpy as np

from weft.files import written_whole

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

# The bits of the core's port ``activity``.
LOADING, COMPUTING, STARVED, STALLED, RESULT, BUSY = 1, 2, 4, 8, 16, 32

# After Okabe and Ito: distinguishable by colour-blind readers, and by lightness in grey.
_BLUE, _GREEN, _YELLOW, _RED, _PURPLE = "#56b4e9", "#009e73", "#f0b429", "#b23a00", "#8e5aa8"
_INK, _FAINT, _GRID, _PAPER = "#22303c", "#6b7885", "#e3e8ec", "#f7f9fa"
# Lanes from top to bottom: label, then (flag, meaning, colour) stacked from the bottom of the lane.
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
_BINS = 600  # maximum; each covers a power of two of cycles, to align with most tiles
_HEIGHT = 0.78  # share of a lane that is drawn; the rest is space
_ZOOM = 300  # most cycles of the lower panel


@dataclass(frozen=True, eq=False)
class Timeline:
    """The activity in each cycle, and the layer that each cycle belongs to.

    Attributes
    ----------
    flags : uint8 [cycles]
        For each cycle, the sum of LOADING (a command word accepted), COMPUTING (operands enter the
        array), STARVED, STALLED, RESULT (a result word taken) and BUSY (the core is busy; not
        drawn).
    layers : sequence of (name, first cycle)
        In ascending order; each layer ends where the next one starts.

    Raises
    ------
    TypeError, ValueError
        If ``flags`` is not such an array, or ``layers`` are out of order or out of range.
    """

    flags: np.ndarray
    layers: tuple

    def __post_init__(self):
        if getattr(self.flags, "dtype", None) != np.uint8:
            found = getattr(self.flags, "dtype", type(self.flags).__name__)
            raise TypeError(f"flags must be a uint8 array, not {found}")
        if self.flags.ndim != 1 or not self.flags.size:
            raise ValueError(f"flags must be one number per cycle, not of shape {self.flags.shape}")
        if self.flags.max() >= 2 * BUSY:
            raise ValueError(f"flags must be under {2 * BUSY}, not {self.flags.max()}")
        if not self.layers:
            raise ValueError("layers must not be empty")
        starts = [start for _, start in self.layers]
        if sorted(set(starts)) != starts:
            raise ValueError(f"layers must start at increasing cycles, not at {starts}")
        if starts[0] < 0 or starts[-1] >= self.flags.size:
            raise ValueError(f"layers must start in 0..{self.flags.size - 1}, not at {starts}")

    def spans(self):
        """(name, first cycle, end) of each layer."""
        ends = [start for _, start in self.layers[1:]] + [self.flags.size]
        return [(name, start, end) for (name, start), end in zip(self.layers, ends, strict=True)]


def activity_picture(path, timeline, title):
    """Draw ``timeline`` as a PNG of 1600 x 900.

    The upper panel shows the whole run; the height in a lane is the share of cycles in which its
    flag is set. The lower panel shows the start of the first layer, cycle by cycle.

    Parameters
    ----------
    path : path of the PNG
        The file is written completely or not at all.
    timeline : Timeline
    title : str
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    name, start, end = timeline.spans()[0]
    end = min(end, start + _ZOOM)
    figure = Figure(figsize=(16, 9), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    upper = figure.add_axes((0.075, 0.485, 0.835, 0.340), facecolor="none")
    lower = figure.add_axes((0.075, 0.130, 0.835, 0.240), facecolor="none")
    _draw_heading(figure, timeline, title)
    _draw_run(upper, timeline)
    _draw_cycles(lower, timeline.flags[start:end], start, name)
    _draw_zoom(figure, upper, lower, (start, end))
    with written_whole(path) as part:
        figure.savefig(part, format="png")


def _share(flags, flag):
    return float(np.mean((flags & flag) != 0))


def _share_text(flags, flag, text, named):
    """The share of cycles with ``flag``; with its name if the lane has several flags."""
    return f"{_share(flags, flag):.1%}" + (f" {text.split(':')[0]}" if named else "")


def _draw_heading(figure, timeline, title):
    """The title, one line of numbers, and the legend."""
    from matplotlib.patches import Patch

    flags = timeline.flags
    figure.text(0.075, 0.945, title, fontsize=20, fontweight="bold", color=_INK, va="center")
    figure.text(
        0.075,
        0.906,
        f"{flags.size:,} cycles   ·   computing in {_share(flags, COMPUTING):.1%} of the cycles",
        fontsize=13,
        color=_FAINT,
        va="center",
    )
    handles = [Patch(color=colour, label=text) for _, parts in _LANES for _, text, colour in parts]
    figure.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.4925, 0.012),
        ncols=len(handles),
        frameon=False,
        fontsize=11,
        labelcolor=_INK,
        handlelength=1.1,
        handleheight=1.1,
        columnspacing=2.4,
    )


def _draw_lanes(axes, left, right):
    """The background and the name of each lane; returns the bottom y of each."""
    bottoms = [len(_LANES) - 1 - i for i in range(len(_LANES))]
    for bottom in bottoms:
        axes.barh(bottom, right - left, _HEIGHT, left, align="edge", color=_PAPER, zorder=0)
    axes.set_yticks(
        [bottom + _HEIGHT / 2 for bottom in bottoms],
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
    return bottoms


def _draw_run(axes, timeline):
    """The duty of each lane over the whole run, divided into layers."""
    flags = timeline.flags
    width = 1 << (-(-flags.size // _BINS) - 1).bit_length()
    edges = np.append(np.arange(0, flags.size, width), flags.size)
    for bottom, (_, parts) in zip(_draw_lanes(axes, 0, flags.size), _LANES, strict=True):
        base, drawn = np.full(edges.size - 1, float(bottom)), 0
        for flag, _, colour in parts:
            active = (flags & flag != 0) & (flags & drawn == 0)
            count = np.add.reduceat(active, edges[:-1], dtype=np.int64)
            top = base + _HEIGHT * count / np.diff(edges)
            axes.stairs(top, edges, baseline=base, fill=True, color=colour, lw=0, zorder=2)
            base, drawn = top, drawn | flag
        shares = "\n".join(
            _share_text(flags, flag, text, len(parts) > 1) for flag, text, _ in parts[::-1]
        )
        axes.annotate(
            shares,
            (1, bottom + _HEIGHT / 2),
            (10, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=12 if len(parts) == 1 else 11,
            color=_INK,
            linespacing=1.4,
        )
    scale = (
        "one column per cycle"
        if width == 1
        else f"{width:,} cycles per column; height: share of these cycles"
    )
    axes.set_xlabel(f"cycle  ({scale})", fontsize=11, color=_FAINT, loc="right")
    renderer = axes.figure.canvas.get_renderer()
    run_width, margin = axes.get_window_extent(renderer).width, 0.08 * axes.figure.bbox.width
    for name, start, end in timeline.spans():
        axes.axvline(start, color=_INK, lw=1, ymax=1.12, clip_on=False, zorder=3)
        space = run_width * (end - start) / flags.size + (margin if end == flags.size else 0)
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
            if label.get_window_extent(renderer).width + 20 < space:
                break
            label.remove()


def _draw_cycles(axes, flags, start, name):
    """One mark per cycle in each lane; a second flag of a lane is drawn in its upper half."""
    end = start + flags.size
    for bottom, (_, parts) in zip(_draw_lanes(axes, start, end), _LANES, strict=True):
        drawn = 0
        for flag, _, colour in parts:
            cycles = np.flatnonzero(flags & flag)
            lift = _HEIGHT / 2 * (flags[cycles] & drawn != 0)
            drawn |= flag
            axes.bar(
                start + cycles, _HEIGHT - lift, 1, bottom + lift,
                align="edge", color=colour, ec="white", lw=0.5, zorder=2,
            )  # fmt: skip
    axes.set_xlabel("cycle  (one mark per cycle)", fontsize=11, color=_FAINT, loc="right")
    axes.set_title(
        f" {name}: the first {flags.size:,} cycles, one by one",
        loc="left",
        fontsize=13,
        color=_INK,
        pad=8,
    )


def _draw_zoom(figure, upper, lower, window):
    """A faint wedge from a part of the run to its enlargement."""
    from matplotlib.patches import Polygon

    above, below, page = upper.get_xaxis_transform(), lower.transAxes, figure.transFigure.inverted()
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
