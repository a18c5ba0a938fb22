"""The legal space: which values of a Config a search tries on a device, and random draws of them.

A field of `AXES` takes one of its values; all other fields come from a base Config, which says what
the workload needs: data type, rounding mode, activation. A Config is drawn field by field, so that
each draw is legal, and its DSP blocks and block RAMs do not exceed the device.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from weft.boards.devices import Device
from weft.config import Config, ConfigError
from weft.explore.features import dsp_blocks, ram_blocks

__all__ = ["AXES", "draws", "neighbours"]

_ICE40 = {
    "rows": (1, 2, 3, 4), "cols": (1, 2, 3, 4), "depth": (1, 2, 4), "hop": (2, 4),
    "multiplier": ("plain", "fip"), "drain": ("overlapped", "folded"),
    "a_words": (128, 256, 512), "b_words": (128, 256, 512), "lanes": (1, 2),
    "scale_cycles": (4, 8, 16), "bytes_in": (4, 8), "bytes_out": (1, 2, 4), "jobs": (2, 4),
}
# By FPGA family, the values of each field.
AXES = {
    "ecp5": {
        "rows": (1, 2, 3, 4, 5, 6, 8), "cols": (1, 2, 3, 4, 5, 6, 8, 10, 12),
        "depth": (1, 2, 4, 8, 16), "hop": (2, 4), "multiplier": ("plain", "fip"),
        "dsp_cols": (0, 1, 2, 3, 4, 5, 6, 8, 10, 12), "drain": ("overlapped", "folded"),
        "a_words": (128, 256, 512, 1024, 2048), "b_words": (128, 256, 512, 1024, 2048),
        "lanes": (1, 2, 4, 8), "scale_cycles": (1, 2, 4), "bytes_in": (4, 8, 16),
        "bytes_out": (4, 8, 16), "jobs": (2, 4, 8),
    },
    "ice40hx": _ICE40,
    "ice40up": _ICE40 | {"dsp_cols": (0, 1, 2, 3, 4)},
}


def draws(
    device: Device, base: Config, rng: np.random.Generator, *, peak: tuple[int, int]
) -> Iterator[Config]:
    """Yield random Configs of the space without end; the same one may come again.

    Each has ``peak[0]`` to ``peak[1]`` MAC/cycle. Arrays of all sizes are equally likely on a
    logarithmic scale.
    """
    axes = AXES[device.target]
    shapes = _shapes(axes, peak)
    sizes = sorted({int(np.log2(rows * cols * depth)) for rows, cols, depth in shapes})
    by_size = {
        size: [shape for shape in shapes if int(np.log2(np.prod(shape))) == size]
        for size in sizes
    }
    rest = [name for name in axes if name not in ("rows", "cols", "depth")]
    while True:
        among = by_size[sizes[rng.integers(len(sizes))]]
        fields = dict(zip(("rows", "cols", "depth"), among[rng.integers(len(among))], strict=True))
        fields |= {name: axes[name][rng.integers(len(axes[name]))] for name in rest}
        config = _legal(base, fields)
        if config is not None and _fits(config, device):
            yield config


def neighbours(config: Config, device: Device) -> Iterator[Config]:
    """Yield the legal Configs of the space that differ from ``config`` by one step of one field."""
    for name, values in AXES[device.target].items():
        value = getattr(config, name)
        below = [other for other in values if isinstance(other, int) and other < value][-1:]
        above = [other for other in values if isinstance(other, int) and other > value][:1]
        others = [other for other in values if isinstance(other, str) and other != value]
        for other in (*below, *above, *others):
            found = _legal(config, {name: other})
            if found is not None and found != config and _fits(found, device):
                yield found


def _shapes(axes, peak):
    low, high = peak
    return [
        (rows, cols, depth)
        for rows in axes["rows"] for cols in axes["cols"] for depth in axes["depth"]
        if low <= rows * cols * depth <= high
    ]


def _legal(base, fields):
    """The Config with these fields, or None; ``dsp_cols`` and ``lanes`` are lowered to be legal."""
    fields = dataclasses.asdict(base) | fields
    fields["dsp_cols"] = min(fields["dsp_cols"], fields["cols"])
    fields["lanes"] = min(fields["lanes"], fields["bytes_out"])
    try:
        return Config(**fields)
    except ConfigError:
        return None


def _fits(config, device):
    """Whether DSP blocks and block RAMs, which can be counted, do not exceed the device."""
    return (
        dsp_blocks(config) <= device.capacity.get("DSP", 0)
        and ram_blocks(config) <= device.capacity["RAM"]
    )
