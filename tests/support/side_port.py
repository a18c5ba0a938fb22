"""A model of the side port of a network core, and the forms of addresses in the hardware."""

import random

from weft.network_core.descriptors import join, places

__all__ = ["SidePort", "hardware_address", "hardware_fields"]


class SidePort:
    """Serves the reads of a block from a list of vectors, and checks them.

    Parameters
    ----------
    config : NetworkCoreConfig
    vectors : list of int
        The memory: ``config.vectors`` vectors.
    stall : float
        Probability of a cycle without ``ready``.
    latency : int
        Cycles from an accepted read to its data.

    Attributes
    ----------
    reads : list of int
        Number of the first vector of each read.
    """

    def __init__(self, config, vectors, *, stall=0.0, latency=3, seed=0):
        self.config, self.vectors = config, vectors
        self.stall, self.latency = stall, latency
        self.rng = random.Random(seed)
        self.reads = []

    async def serve(self, ctx, dut):
        """A background bench for a block with a `ReadPort`, ``reads``."""
        config, reads = self.config, dut.reads
        flight = [None] * self.latency
        while True:
            ready = self.rng.random() >= self.stall
            ctx.set(reads.request.ready, ready)
            first = flight.pop(0)
            ctx.set(reads.data_valid, first is not None)
            for n in range(config.read_vectors):
                value = self.rng.getrandbits(8 * config.array.depth)
                if first is not None:
                    value = self.vectors[(first + n) % len(self.vectors)]
                ctx.set(reads.data[n], value)
            _, _, valid, address = await ctx.tick().sample(
                reads.request.valid, reads.request.payload
            )
            flight.append(None)
            if valid and ready:
                number = address.word * config.banks + address.bank
                assert address.bank < config.banks, "a read must be from a bank that exists"
                self.reads.append(number)
                flight[-1] = number


def hardware_address(config, number):
    """The fields of a `weft.hw.network_core.layouts.VectorAddress` for the vector ``number``."""
    word, bank = divmod(number, config.banks)
    return {"bank": bank, "word": word % (2 * config.words)}


def hardware_fields(config, descriptor, base=0):
    """The fields of a job or load as the hardware has them; ``base`` (a word) moves all maps."""
    moved = {"source", "input", "output", "add_input"}
    return {
        place.name: hardware_address(
            config, join(value, config.banks) + base * config.banks * (place.name in moved)
        ) if place.address else int(value)
        for place in places(type(descriptor), config)
        for value in [getattr(descriptor, place.name)]
    }
