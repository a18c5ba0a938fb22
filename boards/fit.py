"""Search for the largest array that fits a board: the Configs to try, and quick size estimates."""

import contextlib
import dataclasses

from weft.boards.board import Board
from weft.config import Config, ConfigError
from weft.network_core.config import ChipConfig

__all__ = ["chosen_fields", "min_luts", "replace", "sizes"]

_MIN_MAC_LUTS = 50  # lower bound of the LUTs of a MAC in logic


def sizes(board: Board) -> list[Config]:
    """The board's Config with arrays of other sizes, largest first.

    Arrays that cannot fit by their DSP blocks and their MACs in logic are left out.
    """
    device, configs = board.device, []
    for shape in device.flow.shapes:
        fields, in_logic = device.flow.fit(shape, device.capacity)
        if _MIN_MAC_LUTS * in_logic <= device.capacity["LUT"]:
            with contextlib.suppress(ConfigError):
                configs.append(replace(board.config, **fields))
    return sorted(configs, key=lambda config: -config.peak)


def replace(config: Config | ChipConfig, **fields) -> Config | ChipConfig:
    """``config`` with other values for some fields.

    Fields of a Config that have their default value follow from the new values. If there are fewer
    columns, ``dsp_cols`` and ``ram_cols`` are at most as many. A field of a ChipConfig is its own
    if it has one of this name, or else a field of its core.
    """
    if isinstance(config, ChipConfig):
        own = {f.name for f in dataclasses.fields(config)} & fields.keys()
        core = replace(config.core, **{name: fields[name] for name in fields.keys() - own})
        return dataclasses.replace(config, core=core, **{name: fields[name] for name in own})
    kept = chosen_fields(config)
    left = fields.get("cols", config.cols)
    for name in ("dsp_cols", "ram_cols"):
        if name in kept:
            kept[name] = max(0, min(kept[name], left))
        left -= fields.get(name, kept.get(name, 0))
    return Config.from_dict(kept | fields)


def chosen_fields(config: Config) -> dict[str, int | str | bool]:
    """The fields that define ``config``; all others have the values that follow from them."""
    chosen = dataclasses.asdict(config)
    for name in list(chosen):
        rest = {other: value for other, value in chosen.items() if other != name}
        with contextlib.suppress(ConfigError):
            chosen = rest if Config.from_dict(rest) == config else chosen
    return chosen


def min_luts(cells: dict[str, int]) -> int:
    """Lower bound of the LUTs of a netlist, from its number of cells by type."""
    luts = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4, "SB_LUT4": 1}
    return sum(luts.get(cell, 0) * count for cell, count in cells.items())
