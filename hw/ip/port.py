"""The register port: what every register bus is turned into, one access a cycle, in order."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Access", "Answer", "Port"]

Access = data.StructLayout({
    "address": 10,  # of a word
    "write": 1,
    "mask": 4,  # bytes that are written
    "data": 32,
})
Answer = data.StructLayout({"data": 32, "refused": 1})


class Port(wiring.Signature):
    """Accesses one way, an answer to each the other way, in the same order.

    Whoever asks takes every answer some day; whoever answers does so in bounded time.
    """

    def __init__(self):
        super().__init__({
            "access": Out(stream.Signature(Access)),
            "answer": In(stream.Signature(Answer)),
        })
