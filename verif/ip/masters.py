"""The register masters of IP cores, with one interface; bus models of third parties drive them."""

import pkgutil
from typing import Protocol

__all__ = ["RegisterMaster", "master_class"]


class RegisterMaster(Protocol):
    """A master for the registers of an IP core.

    It is made with the simulator's handle of the core and the `weft.ip.Ip`, while the core is in
    reset.

    Attributes
    ----------
    PARTIAL_MASKS : tuple of int
        Byte masks, less than a word, with which it can write.
    OUTPUTS : tuple
        The answers of the core: (valid, ready or None, names of the payload).
    """

    PARTIAL_MASKS: tuple[int, ...]
    OUTPUTS: tuple[tuple[str, str | None, tuple[str, ...]], ...]

    def clear(self):
        """Drop all accesses in progress: the core is in reset."""

    def pause(self, seed, odds):
        """Pause at random, with probability ``odds`` in a cycle."""

    def back_to_back(self):
        """A master that pauses only if the bus requires it; by default, this one."""
        return self

    async def write(self, address, value, mask=15):
        """Write the bytes of ``value`` that ``mask`` selects; False if the answer is an error."""

    async def read(self, address):
        """The word, and False if the answer is an error."""

    async def write_all(self, address, values):
        """Write words to a FIFO port; True if all succeed."""
        return all([await self.write(address, value) for value in values])

    async def read_all(self, address, count):
        """Read ``count`` words from a FIFO port; all accesses must succeed."""
        answers = [await self.read(address) for _ in range(count)]
        assert all(okay for _, okay in answers)
        return [value for value, _ in answers]


# By `weft.buses.Bus.register_slave`.
MASTERS = {
    "apb": "verif.ip.apb_master:ApbRegisters",
    "axi_lite": "verif.ip.axi_lite_master:AxiRegisters",
    "wishbone": "verif.ip.wishbone_master:WishboneRegisters",
}


def master_class(ip):
    """The `RegisterMaster` for ``ip``. A bench needs only the package of its own bus model."""
    return pkgutil.resolve_name(MASTERS[ip.protocol.register_slave])
