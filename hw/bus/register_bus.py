"""The register port: what every register bus is turned into, one access at a time, in order."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Access", "Answer", "RegisterBus"]

Access = data.StructLayout({
    "address": 10,  # of a word
    "write": 1,
    "mask": 4,  # bytes that are written
    "data": 32,  # these two mean nothing where nothing is written, and need not stay
})
Answer = data.StructLayout({"data": 32, "refused": 1})


class RegisterBus(wiring.Signature):
    """Accesses one way, an answer to each the other way, in the same order.

    Whoever answers does so in bounded time, in a later cycle than that of the access, and takes
    the next access in the cycle of the answer at the earliest, in the one after it at the latest.
    Whoever asks takes the answer as it comes.
    """

    def __init__(self):
        super().__init__({
            "access": Out(stream.Signature(Access)),
            "answer": In(stream.Signature(Answer, always_ready=True)),
        })
