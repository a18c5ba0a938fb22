"""The building blocks of the iCE40: the tool infers its memories."""

from weft.hw.fabrics.fabric import Fabric

__all__ = ["Ice40Fabric"]


class Ice40Fabric(Fabric):
    """A block RAM of the iCE40 has no output register: a bank registers the address instead."""

    registers_address = True
