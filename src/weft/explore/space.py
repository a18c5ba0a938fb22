"""The legal space: which values of a Config a search tries on a device, and random draws of them.

A field of `AXES` takes one of its values; all other fields come from a base Config, which says what
the workload needs: data type, rounding mode, activation. A Config is drawn field by field, so that
each draw is legal, and its DSP blocks and block RAMs do not exceed the device.

Of the space of network cores, `grid` goes through all Configs with the values of `GRID`. As
many columns of PEs use DSP blocks as the device has blocks for. If the memory has one port, the
array is given, so only memory and buffers change: all values of `SINGLE_PORT_AXES` are in the grid.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from weft.boards.devices import Device
from weft.config import Config, ConfigError
from weft.design import Design, PerKind
from weft.designs import chosen_fields
from weft.explore.model import feature_set
from weft.explore.network_features import output_blocks
from weft.network_core.config import OPTIONS, NetworkCoreConfig, has_single_port

__all__ = [
    "AXES", "GRID", "NETWORK_AXES", "SINGLE_PORT_AXES", "draws", "fields_of", "grid", "line_of",
    "neighbours", "network_draws", "with_words",
]


# Of the array of a network core; its operand buffers and streams are not used.
_ARRAY = "rows", "cols", "depth", "lanes", "hop", "dsp_cols", "ram_cols", "scale_cycles"
_IN_NAME = "rows", "cols", "depth", "target"  # of `Config.name`


def fields_of(config: Design) -> dict[str, Any]:
    """All fields by name; of a network core its own, and the ones of its array in use."""
    return _FIELDS.of(config)(config)


def line_of(config: Design) -> str:
    """The fields that are not in the name, in one line, without the ones of a usual value."""
    fields = _SHOWN.of(config)(config)
    return " ".join(f"{name}={value}" for name, value in fields.items() if name not in _IN_NAME)


def _unusual(config):
    usual = {"ram_cols": 0, "program_words": 0} | dict.fromkeys(OPTIONS, False)
    return {name: value for name, value in _with_array(config).items() if usual.get(name) != value}


def _own(config):
    return {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}


def _with_array(config):
    fields = _own(config)
    del fields["array"]
    return {name: getattr(config.array, name) for name in _ARRAY} | fields


_FIELDS = PerKind(product=_own, network=_with_array)
_SHOWN = PerKind(product=chosen_fields, network=_unusual)


_ICE40 = {
    "rows": (1, 2, 3, 4), "cols": (1, 2, 3, 4), "depth": (1, 2, 3, 4, 5, 6), "hop": (2, 4),
    "multiplier": ("plain", "fip"), "drain": ("overlapped", "folded"),
    "a_words": (128, 256, 512), "b_words": (128, 256, 512), "lanes": (1, 2),
    "scale_cycles": (4, 8, 16), "bytes_in": (4, 8), "bytes_out": (1, 2, 4), "jobs": (2, 4),
}
# By FPGA family, the values of each field.
AXES = {
    "ecp5": {
        "rows": (1, 2, 3, 4, 5, 6, 7, 8, 10), "cols": (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14),
        "depth": (1, 2, 4, 8, 16), "hop": (2, 3, 4), "multiplier": ("plain", "fip"),
        "dsp_cols": (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14),
        "ram_cols": (0, 1, 2, 3, 4, 5, 6, 7, 8),
        "drain": ("overlapped", "folded"),
        "a_words": (128, 256, 512, 1024, 2048), "b_words": (128, 256, 512, 1024, 2048),
        "lanes": (1, 2, 4, 8), "scale_cycles": (1, 2, 4), "bytes_in": (4, 8, 16),
        "bytes_out": (4, 8, 16), "jobs": (2, 4, 8),
    },
    "ice40hx": _ICE40,
    "ice40up": _ICE40 | {"dsp_cols": (0, 1, 2, 3, 4)},
}
NETWORK_AXES = {
    "rows": (1, 2, 3, 4, 5, 6, 7, 8), "cols": (2, 4, 8, 16, 32), "depth": (2, 4, 8, 16),
    "lanes": (1, 2, 4, 8), "hop": (2, 3, 4, 8, 16), "scale_cycles": (1, 2),
    "words": (256, 512, 1024, 2048, 4096, 8192), "b_words": (128, 256, 512, 528, 1024),
    "lines": (64, 128, 256, 512, 1024), "read_vectors": (1, 2, 4, 8),
}
GRID = NETWORK_AXES | {
    "hop": (2, 4), "scale_cycles": (1,), "b_words": (256, 512, 1024), "lines": (128, 512),
}
# By FPGA family. Smaller values take as many blocks.
SINGLE_PORT_AXES = {
    "ice40up": {
        "words": (16384, 32768), "b_words": (256, 512), "lines": (256, 512),
    },
    "ice40hx": {"words": (256, 512, 1024), "b_words": (256, 512), "lines": (256, 512)},
}
LUTS_PER_MAC = 160  # of a device, for each MAC/cycle of a random network core
# of a NetworkCoreConfig, not of its array
_OWN = {field.name for field in dataclasses.fields(NetworkCoreConfig)}


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
        config = _legal(base, fields, device)
        if config is not None and _fits(config, device):
            yield config


def neighbours(config: Config, device: Device) -> Iterator[Config]:
    """Yield the legal Configs of the space that differ from ``config`` by one step of one field."""
    kind, fields = _STEPS.of(config), fields_of(config)
    for name, values in kind.axes(config).items():
        value = fields[name]
        below = [other for other in values if isinstance(other, int) and other < value][-1:]
        above = [other for other in values if isinstance(other, int) and other > value][:1]
        others = [other for other in values if isinstance(other, str) and other != value]
        for other in (*below, *above, *others):
            found = kind.legal(config, {name: other}, device)
            if found is not None and found != config and _fits(found, device):
                yield found


def grid(
    device: Device, base: NetworkCoreConfig, least_memory: Callable[[NetworkCoreConfig], int]
) -> Iterator[NetworkCoreConfig]:
    """Yield all network cores of the grid that do not exceed the device's blocks.

    Each has the fewest words that hold ``least_memory`` bytes.
    """
    axes = _network_axes(base) if has_single_port(base.array) else GRID

    def product(names):
        values = itertools.product(*(axes[name] for name in names))
        return [dict(zip(names, each, strict=True)) for each in values]

    own = product([name for name in axes if name in _OWN and name != "words"])
    for fields in product([name for name in axes if name not in _OWN]):
        core = _legal_network_core(base, fields | {"read_vectors": 1}, device)
        for values in own if core is not None else ():
            config = _with(core, values | {"words": axes["words"][-1]})
            config = config and with_words(config, least_memory(config))
            if config and _fits(config, device):
                yield config


def with_words(config: NetworkCoreConfig, needed: int) -> NetworkCoreConfig | None:
    """The Config with the fewest words of the space that hold ``needed`` bytes; None if none do."""
    bank = config.banks * config.array.depth
    known = _network_axes(config)["words"]
    words = next((words for words in known if words * bank >= needed), None)
    return words and dataclasses.replace(config, words=words)


def network_draws(
    device: Device, base: NetworkCoreConfig, rng: np.random.Generator
) -> Iterator[NetworkCoreConfig]:
    """Yield random network cores of the space without end; the same one may come again."""
    axes, most = _network_axes(base), device.capacity["LUT"] // LUTS_PER_MAC
    while True:
        fields = {name: values[rng.integers(len(values))] for name, values in axes.items()}
        config = _legal_network_core(base, fields, device)
        if config is not None and config.peak <= most and _fits(config, device):
            yield config


def _network_axes(config):
    """The fields that change, and their values, of a kind of network core."""
    return SINGLE_PORT_AXES[config.target] if has_single_port(config.array) else NETWORK_AXES


def _with(config, values):
    """The Config with other values, or None."""
    try:
        return dataclasses.replace(config, **values)
    except ConfigError:
        return None


def _shapes(axes, peak):
    low, high = peak
    return [
        (rows, cols, depth)
        for rows in axes["rows"] for cols in axes["cols"] for depth in axes["depth"]
        if low <= rows * cols * depth <= high
    ]


def _legal(base, fields, device):
    """The Config with these fields, or None.

    ``dsp_cols``, ``ram_cols`` and ``lanes`` are lowered to be legal.
    """
    fields = dataclasses.asdict(base) | fields
    fields["dsp_cols"] = min(fields["dsp_cols"], fields["cols"])
    fields["ram_cols"] = min(fields["ram_cols"], fields["cols"] - fields["dsp_cols"])
    fields["lanes"] = min(fields["lanes"], fields["bytes_out"])
    try:
        return Config(**fields)
    except ConfigError:
        return None


def _legal_network_core(base, fields, device):
    """The NetworkCoreConfig with these fields, and with all DSP blocks that the device has; or
    None.

    A core whose memory has one port has all of them in its array.
    """
    own = {name: value for name, value in fields.items() if name in _OWN}
    if has_single_port(base.array):
        return _with(base, own)
    array = {name: value for name, value in fields.items() if name not in _OWN} | {"dsp_cols": 0}
    try:
        array = dataclasses.replace(base.array, **array)
        output = output_blocks(dataclasses.replace(base, array=array, **own))
        spare = device.capacity.get("DSP", 0) - output
        column = array.rows * (array.depth // array.cell.pairs)
        dsp_cols = min(array.cols, max(0, spare) // column)
        array = dataclasses.replace(array, dsp_cols=dsp_cols)
        return dataclasses.replace(base, array=array, **own)
    except ConfigError:
        return None


def _fits(config, device):
    """Whether DSP blocks and block RAMs, which can be counted, do not exceed the device."""
    count = feature_set(config).counted
    return (
        count["DSP"](config) <= device.capacity.get("DSP", 0)
        and count["RAM"](config) <= device.capacity["RAM"]
    )


class _Steps(NamedTuple):
    """The steps of one field that a kind of core has: the values, and the legal Design."""

    axes: Callable
    legal: Callable


_STEPS = PerKind(
    product=_Steps(lambda config: AXES[config.target], _legal),
    network=_Steps(_network_axes, _legal_network_core),
)
