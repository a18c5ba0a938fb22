"""The ports of a network core: access to its memory, start and abort of lists, status."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.dma.axi import Axi4
from weft.hw.network_core.layouts import VectorAddress

__all__ = ["ListBegin", "NetworkInterface", "NetworkStatus", "VectorWrite"]


class VectorWrite(data.StructLayout):
    """A write of a vector to the memory; ``enable`` has one bit a byte."""

    def __init__(self, config):
        super().__init__({
            "address": VectorAddress(config), "data": 8 * config.array.depth,
            "enable": config.array.depth,
        })


class ListBegin(data.StructLayout):
    """The start of a list: ``valid`` for one cycle, with the addresses of list and log."""

    def __init__(self, config):
        super().__init__({"valid": 1, "list": VectorAddress(config), "log": VectorAddress(config)})


class NetworkStatus(data.StructLayout):
    """The state of the core, and of its running or last list.

    ``state`` is a `weft.network_core.report.NetworkState`, ``error`` a
    `weft.network_core.descriptors.ListError`, ``job`` the number of jobs that have ended,
    ``cycles`` the cycles since the start. ``result`` and ``result_bytes`` are the fields of END;
    valid if the state is DONE.
    """

    def __init__(self, config):
        super().__init__({
            "state": 8, "error": 8, "job": 16, "cycles": 32, "result": VectorAddress(config),
            "result_bytes": 16,
        })


class NetworkInterface(wiring.Signature):
    """The ports of a `weft.hw.network_core.core.NetworkCore`, from its user's side; the core flips
    it.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    writes : Out, stream of `VectorWrite`
    reads : Out, stream of `VectorAddress`
        Address of the first vector of a read.
    read_valid : In, 1 bit
        The data of a read; in the order of ``reads``. It cannot wait.
    read_data : In, ``read_vectors`` vectors
        The vector at the address, and the ones after it.
    begin : Out, `ListBegin`
        Ignored while a list runs. After an abort the list waits until the core is ready for it.
    abort : Out, 1 bit
        Pulse: ends the running list.
    base, limit : Out
        The first word of each bank that a list may use, and the first word beyond.
    status : In, `NetworkStatus`
    finished : In, 1 bit
        Pulse: a list has ended; ``status`` is valid.
    program_base : Out, 32 bits; only with a program memory, as all that follow
        Address of its first byte: a multiple of the bytes of a beat.
    program_limit : Out
        The first word of each bank of the program memory that a list may not use.
    program_idle : In, 1 bit
        No list runs, and no transaction is open.
    axi : In, `weft.hw.dma.axi.Axi4`
        The master of the program memory.
    """

    def __init__(self, config):
        vector, word = 8 * config.array.depth, VectorAddress(config)["word"].width
        super().__init__({
            "writes": Out(stream.Signature(VectorWrite(config))),
            "reads": Out(stream.Signature(VectorAddress(config))),
            "read_valid": In(1),
            "read_data": In(data.ArrayLayout(vector, config.read_vectors)),
            "begin": Out(ListBegin(config)),
            "abort": Out(1),
            "base": Out(word),
            "limit": Out(word),
            "status": In(NetworkStatus(config)),
            "finished": In(1),
            **({
                "program_base": Out(32), "program_limit": Out(word), "program_idle": In(1),
                "axi": In(Axi4(data_bytes=config.beat_bytes)),
            } if config.program_words else {}),
        })
