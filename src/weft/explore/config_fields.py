"""The fields of a Design by name, as the explorer shows them: as values, and as a line."""

import dataclasses
from typing import Any

from weft.design import Design, PerKind
from weft.designs import chosen_fields

__all__ = ["fields_of", "line_of"]

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
    usual = {"ram_cols": 0, "program_words": 0}
    return {name: value for name, value in _with_array(config).items() if usual.get(name) != value}


def _own(config):
    return {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}


def _with_array(config):
    fields = _own(config)
    del fields["array"]
    return {name: getattr(config.array, name) for name in _ARRAY} | fields


_FIELDS = PerKind(product=_own, network=_with_array)
_SHOWN = PerKind(product=chosen_fields, network=_unusual)
