"""The layout of the instructions of a microprogram."""

from amaranth.hdl import Shape
from amaranth.lib import data

from weft.language_core.microcode import KIND_BITS, field_shapes

__all__ = ["InstructionFields", "fields_of"]


class InstructionFields(data.StructLayout):
    """The fields of an instruction of `weft.language_core.microcode`, at their places."""

    def __init__(self, kind):
        fields = {"kind": KIND_BITS}
        for name, (bits, signed, count) in field_shapes(kind).items():
            shape = Shape(bits, signed)
            fields[name] = shape if count == 1 else data.ArrayLayout(shape, count)
        super().__init__(fields)


def fields_of(kind, word):
    """The fields of an instruction in a word of 64 bits."""
    layout = InstructionFields(kind)
    return data.View(layout, word[: layout.size])
