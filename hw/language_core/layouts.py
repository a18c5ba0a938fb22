"""The layout of the descriptors of a language core."""

from amaranth.hdl import signed
from amaranth.lib import data

from weft.language_core.descriptors import field_shapes

__all__ = ["PassFields"]


class PassFields(data.StructLayout):
    """The fields of a `weft.language_core.descriptors.Pass`, at their places.

    Parameters
    ----------
    transfers : bool
        With those of a core that has a program memory.
    """

    def __init__(self, *, transfers=False):
        super().__init__({
            name: signed(bits) if is_signed else bits
            for name, (bits, is_signed) in field_shapes(transfers=transfers).items()
        })
