"""The rules for the fields of a descriptor: the error FIELD as hardware."""

from amaranth.hdl import Cat
from amaranth.lib import data

from weft.hw.network_core.layouts import VectorAddress, beat_place
from weft.network_core.addresses import BANK_BITS
from weft.network_core.config import ADD_TABLE_WORDS
from weft.network_core.descriptors import ListEnd, ListJob, ListLoad, ListLoop, LoadTarget, places

__all__ = ["field_faults"]

RESULT_BYTES = 1024  # of a list, at most
SIZES = {  # fields that must not be 0
    ListLoad: ("words",),
    ListJob: (
        "panel_rows", "out_height", "out_width", "columns", "tile_words", "kernel_height",
        "kernel_width", "tap_vectors", "group_tiles", "in_height", "in_width",
    ),
    ListLoop: ("times", "body"),
    ListEnd: (),
}
BEATS = {ListLoad: ("source",), ListLoop: ("source_step",)}  # begin with a beat of the program


def field_faults(config, kind, values, passed):
    """The faults of a descriptor: bits, of which all are 0 if its fields fit the core.

    Parameters
    ----------
    config : NetworkCoreConfig
    kind : type
        A class of `weft.network_core.descriptors`.
    values : dict of Value
        The fields, by name.
    passed : Value
        The descriptors before it that a body of a loop may contain.
    """
    faults = [values[name] == 0 for name in SIZES[kind]]
    faults += [
        values[place.name][:BANK_BITS] >= config.banks for place in places(kind) if place.address
    ]
    if config.program_words:
        faults += [
            beat_place(config, _address(config, values[name])).any()
            for name in BEATS.get(kind, ())
        ]
    if kind is ListLoad:
        target, end = values["target"], values["first_word"] + values["words"]
        faults += [
            target > max(LoadTarget),
            (target == LoadTarget.B) & (end > config.b_words),
            (target == LoadTarget.PARAMETERS) & (end > config.lines),
            (target == LoadTarget.ADD_TABLE) & (end > ADD_TABLE_WORDS),
        ]
    elif kind is ListJob:
        faults += [values["panel_rows"] > config.array.rows, values["add"] & values["sums"]]
    elif kind is ListLoop:
        faults.append(passed < values["body"])
    else:
        faults.append(values["result_bytes"] > RESULT_BYTES)
    return faults


def _address(config, value):
    """The `VectorAddress` in an address field."""
    layout = VectorAddress(config)
    return data.View(layout, Cat(*layout.from_list(value).values()))
