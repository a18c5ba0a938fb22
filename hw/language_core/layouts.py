"""The layouts of a language core's descriptors and of its host's writes."""

from amaranth.hdl import signed
from amaranth.lib import data

from weft.language_core.config import PAIR_BYTES
from weft.language_core.descriptors import field_shapes

__all__ = ["HostWrite", "PassFields"]


class PassFields(data.StructLayout):
    """The fields of a `weft.language_core.descriptors.Pass`, at their places."""

    def __init__(self):
        super().__init__({
            name: signed(bits) if is_signed else bits
            for name, (bits, is_signed) in field_shapes().items()
        })


class HostWrite(data.Struct):
    """A write of the host: 8 bytes of the main memory, or an entry of a table.

    ``group`` is a parameter group or the number of the entry, whose base and slope are the lowest
    and the second 16 bits.
    """

    table: 1
    group: 16
    data: 8 * PAIR_BYTES
