"""A model of the side port of a core for networks, and the forms of addresses in the hardware."""

import random

from weft.network_core.addresses import join
from weft.network_core.descriptors import places

__all__ = ["SidePort", "hardware_address", "hardware_fields"]


class SidePort:
    """Serves the reads of a block from a list of vectors, and checks them.

    Parameters
    ----------
    chip : ChipConfig
    vectors : list of int
        The memory: ``chip.vectors`` vectors.
    stall : float
        Probability of a cycle without ``ready``.
    latency : int
        Cycles from an accepted read to its data.

    Attributes
    ----------
    reads : list of int
        Number of the first vector of each read.
    """

    def __init__(self, chip, vectors, *, stall=0.0, latency=3, seed=0):
        self.chip, self.vectors = chip, vectors
        self.stall, self.latency = stall, latency
        self.rng = random.Random(seed)
        self.reads = []

    async def serve(self, ctx, dut):
        """A background bench for a block with ``reads``, ``read_valid`` and ``read_data``."""
        chip = self.chip
        flight = [None] * self.latency
        while True:
            ready = self.rng.random() >= self.stall
            ctx.set(dut.reads.ready, ready)
            first = flight.pop(0)
            ctx.set(dut.read_valid, first is not None)
            for n in range(chip.read_vectors):
                value = self.rng.getrandbits(8 * chip.core.depth)
                if first is not None:
                    value = self.vectors[(first + n) % len(self.vectors)]
                ctx.set(dut.read_data[n], value)
            _, _, valid, address = await ctx.tick().sample(dut.reads.valid, dut.reads.payload)
            flight.append(None)
            if valid and ready:
                number = address.word * chip.banks + address.bank
                assert address.bank < chip.banks, "a read must be from a bank that exists"
                self.reads.append(number)
                flight[-1] = number


def hardware_address(chip, number):
    """The fields of a `weft.hw.network_core.layouts.VectorAddress` for the vector ``number``."""
    word, bank = divmod(number, chip.banks)
    return {"bank": bank, "word": word % (2 * chip.words)}


def hardware_fields(chip, descriptor, base=0):
    """The fields of a job or load as the hardware has them; ``base`` (a word) moves all maps."""
    moved = {"source", "input", "output", "add_input"}
    return {
        place.name: hardware_address(
            chip, join(value, chip.banks) + base * chip.banks * (place.name in moved)
        ) if place.address else int(value)
        for place in places(type(descriptor))
        for value in [getattr(descriptor, place.name)]
    }
