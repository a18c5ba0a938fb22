"""Amaranth's simulator with fast access to signals, and values of layouts as plain Python.

Amaranth finds the type and the place of a signal again each time a testbench sets or samples it,
and the width of a layout from all of its members. For a small design that takes far longer than
the simulation itself.
"""

import operator
import re

from amaranth.hdl import Shape, Signal
from amaranth.lib import data
from amaranth.sim import _pyrtl
from amaranth.sim.pysim import PySimEngine

__all__ = ["Engine", "pack", "unpack"]

_PLACE = re.compile(r"slots\[(\d+)\]")
_UPDATE = re.compile(r"^( *)(slots\[(\d+)\])(\.update\((next_\3).*)$", re.MULTILINE)


def _compile(code, *options):
    """Compile a process of a design that Amaranth has written.

    Local variables have its signals, and no signal is updated that keeps its value: this is most of
    what a process does.
    """
    head = "def run("
    if code.startswith(head):
        code = _UPDATE.sub(r"\1if \2.next != \5: \2\4", code)
        places = ", ".join(f"slot_{n}=slots[{n}]" for n in dict.fromkeys(_PLACE.findall(code)))
        code = head + places + _PLACE.sub(r"slot_\1", code.removeprefix(head))
    return compile(code, *options)


_pyrtl.compile = _compile  # a module's own name comes before Python's


class Engine(PySimEngine):
    """Amaranth's own engine, but it finds the state of a signal by the signal's id."""

    def __init__(self, design):
        self._places = {}  # id of a signal -> the signal, which so keeps its id, and its state
        super().__init__(design)

    def _place(self, signal):
        """The state of a signal."""
        known = self._places.get(id(signal))
        if known is None:
            known = signal, self._state.slots[self._state.get_signal(signal)]
            self._places[id(signal)] = known
        return known[1]

    def get_value(self, expr):
        """The value of an expression."""
        return self._place(expr).curr if type(expr) is Signal else super().get_value(expr)

    def set_value(self, expr, value):
        """Set an expression; `step_design` propagates it."""
        place = self._place(expr) if type(expr) is Signal else None
        if place is None or place.is_comb:  # Amaranth refuses the latter
            super().set_value(expr, value)
            return
        width = len(expr)
        value &= (1 << width) - 1
        if expr.shape().signed and value >> (width - 1):
            value -= 1 << width
        place.update(value)

    def step_design(self):
        """Run all that is awake, until no signal changes."""
        if self._vcd_writers:
            super().step_design()
            return
        state, triggers, processes = self._state, self._active_triggers, self._processes
        while True:
            for trigger in triggers:
                trigger.run()
            triggers.clear()
            for process in processes:
                if process.runnable:
                    process.runnable = False
                    process.run()
            if not state.pending or state.commit():
                return


def pack(shape, value):
    """The bits of a value; ValueError if it does not fit the shape.

    Parameters
    ----------
    shape : amaranth.hdl.ShapeLike
    value : int, or dict or list of values
        Members that are not in a dict or a list are 0.
    """
    return _converters(shape)[0](value)


def unpack(shape, bits):
    """The int of ``bits``, or a dict or list of the values of its members if the shape has some."""
    return _converters(shape)[1](bits)


def _converters(shape):
    """`pack` and `unpack` for a shape. A layout keeps its own: it has no hash."""
    if isinstance(shape, Shape):
        return _integer(shape.width, shape.signed)
    try:
        layout = data.Layout.cast(shape)
    except TypeError:
        return _converters(Shape.cast(shape))
    try:
        return layout._converters
    except AttributeError:
        of_kind = _array if isinstance(layout, data.ArrayLayout) else _struct
        layout._converters = of_kind(layout)
        return layout._converters


def _integer(width, signed):
    low, high = (-(1 << width - 1), 1 << width - 1) if signed else (0, 1 << width)
    mask, sign = (1 << width) - 1, (1 << width - 1) if signed else 0

    def pack_integer(value):
        value = operator.index(value)
        if not low <= value < high:
            raise ValueError(
                f"a value of {width} bits must be in {low}..{high - 1}, not {value}"
            )
        return value & mask

    def unpack_integer(bits):
        return (bits & mask ^ sign) - sign

    return pack_integer, unpack_integer


def _struct(layout):
    members = {key: (field.offset, *_converters(field.shape)) for key, field in layout}

    def pack_struct(value):
        bits = 0
        for key, member in value.items():
            offset, pack_member, _ = members[key]
            bits |= pack_member(member) << offset
        return bits

    def unpack_struct(bits):
        return {key: unpack_member(bits >> offset)
                for key, (offset, _, unpack_member) in members.items()}

    return pack_struct, unpack_struct


def _array(layout):
    pack_element, unpack_element = _converters(layout.elem_shape)
    width = Shape.cast(layout.elem_shape).width
    offsets = range(0, width * layout.length, width) if width else [0] * layout.length

    def pack_array(value):
        if len(value) > layout.length:
            raise ValueError(f"an array of {layout.length} elements cannot be set to {len(value)}")
        bits = 0
        for offset, element in zip(offsets, value, strict=False):
            bits |= pack_element(element) << offset
        return bits

    def unpack_array(bits):
        return [unpack_element(bits >> offset) for offset in offsets]

    return pack_array, unpack_array
