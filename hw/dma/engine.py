"""The engine: descriptors in, the core's commands out; the core's results in; memory beside it."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.dma.axi import Axi4
from weft.hw.post.sender import Result

__all__ = ["DESCRIPTORS", "Dma"]

DESCRIPTORS = 32  # that wait at most


class Dma(wiring.Component):
    """Feeds a core from memory, and puts its results there; ``docs/dma.md`` has the descriptors.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    descriptors : In, stream of 32 bits
        Sixteen words each, the lowest first; taken as they come while there is `room`.
    room : Out
        Whole descriptors that are taken at once.
    commands : Out, stream of ``bytes_in`` bytes
    results : In, stream of `weft.hw.post.sender.Result`
    axi : Out, `Axi4`
    stop : In
        No burst begins, and all that is on its way in is dropped. With it and ``idle`` the engine
        forgets all; it may fall then.
    idle : Out
        No burst is under way.
    moving : Out
        A descriptor, or results, are under way.
    ended : Out
        Pulse: a job has ended, its last write was answered. With ``tag`` and ``status``.
    fetch_error, store_error, bad_descriptor : Out
        Pulses: a beat read, a burst written was answered by an error; a descriptor was dropped.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "descriptors": In(stream.Signature(32)),
            "room": Out(range(DESCRIPTORS + 1)),
            "commands": Out(stream.Signature(8 * config.bytes_in)),
            "results": In(stream.Signature(Result(bytes_out=config.bytes_out))),
            "axi": Out(Axi4(data_bytes=config.bytes_in)),
            "stop": In(1),
            "idle": Out(1),
            "moving": Out(1),
            "ended": Out(1),
            "tag": Out(16),
            "status": Out(8),
            "fetch_error": Out(1),
            "store_error": Out(1),
            "bad_descriptor": Out(1),
        })

    def elaborate(self, platform):
        return Module()
