"""The fields of a Config or a ChipConfig by name: as values, as a line, and as a TOML file."""

import dataclasses
import json
from typing import Any

from weft.boards.fit import chosen_fields
from weft.config import Config
from weft.network_core.config import ChipConfig

__all__ = ["fields_of", "line_of", "toml_of"]

# Of the array of a core for networks; its operand buffers and streams are not used.
_ARRAY = "rows", "cols", "depth", "lanes", "hop", "dsp_cols", "ram_cols", "scale_cycles"
_IN_NAME = "rows", "cols", "depth", "target"  # of `Config.name`


def fields_of(config: Config | ChipConfig) -> dict[str, Any]:
    """All fields by name; of a core for networks its own, and the ones of its array in use."""
    fields = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    core = fields.pop("core", None)
    return fields if core is None else {name: getattr(core, name) for name in _ARRAY} | fields


def line_of(config: Config | ChipConfig) -> str:
    """The fields that are not in the name, in one line, without the ones of a usual value."""
    if isinstance(config, ChipConfig):
        usual = {"ram_cols": 0, "program_words": 0}
        fields = {
            name: value for name, value in fields_of(config).items() if usual.get(name) != value
        }
    else:
        fields = chosen_fields(config)
    return " ".join(f"{name}={value}" for name, value in fields.items() if name not in _IN_NAME)


def toml_of(config: Config | ChipConfig) -> str:
    """A file for ``--config``; a core for networks has a table ``[chip]``."""
    if isinstance(config, ChipConfig):
        own = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)[1:]}
        return f"{toml_of(config.core)}\n[chip]\n{_lines(own)}"
    return _lines(chosen_fields(config))


def _lines(fields):
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())
