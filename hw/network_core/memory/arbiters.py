"""The arbiters of the memory's side port: one for reads, one for writes."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.interface import ReadPort, VectorWrite
from weft.hw.network_core.layouts import VectorAddress
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.hw.stream.skid_buffer import SkidBuffer
from weft.network_core.latencies import DELIVERY, SIDE_READ, WRITE

__all__ = ["ReadArbiter", "WriteArbiter"]


class ReadArbiter(wiring.Component):
    """Passes the reads of its clients to the memory; the first client has the highest priority.

    A client gets its vectors in the order of its reads, and cannot delay them. They arrive
    LATENCY cycles after the read was accepted, or later if the memory was not ready. At most
    IN_FLIGHT reads of all clients are accepted whose vectors have not arrived.

    An abort must not reset it, since reads of the host may be in flight. Vectors of the other
    clients arrive IN_FLIGHT cycles after their reset, or later if the memory was not ready.

    Parameters
    ----------
    config : NetworkCoreConfig
    clients : int

    Attributes
    ----------
    reads : In, `ReadPort` for each client
    memory : Out, `ReadPort`
        The data follow `weft.network_core.latencies.SIDE_READ` cycles after the request was
        accepted.
    read_bank : Out, 1 bit for each bank
        The bank of the request to the memory, one-hot.
    """

    def __init__(self, config, clients):
        self.config = config
        self.clients = clients
        self.LATENCY = SkidBuffer.LATENCY + SIDE_READ + DELIVERY
        self.IN_FLIGHT = 2 + SIDE_READ + DELIVERY  # 2: in the skid buffer
        super().__init__({
            "reads": In(ReadPort(config)).array(clients),
            "memory": Out(ReadPort(config)),
            "read_bank": Out(config.banks),
        })

    def elaborate(self, platform):
        m = Module()
        granted = data.StructLayout({
            "address": VectorAddress(self.config), "bank": self.config.banks, "client":
            self.clients,
        })
        m.submodules.skid = skid = SkidBuffer(granted)
        requests = [client.request for client in self.reads]
        grant, masked = Signal(self.clients), []
        for n, request in enumerate(requests):
            earlier = Cat(other.valid for other in requests[:n]).any() if n else 0
            bank, address = request.payload.bank, request.payload.as_value()
            m.d.comb += [
                request.ready.eq(skid.i.ready & ~earlier), grant[n].eq(request.valid & ~earlier),
            ]
            # Decoded before the selection: both need the same time.
            value = Cat(address, (bank == number for number in range(self.config.banks)))
            masked.append(value & grant[n].replicate(len(value)))
        m.d.comb += [
            skid.i.valid.eq(Cat(request.valid for request in requests).any()),
            Cat(skid.i.payload.address, skid.i.payload.bank).eq(reduce(or_, masked)),
            skid.i.payload.client.eq(grant),
        ]
        # One bit a client, for each cycle that the memory takes.
        stages = [Signal(self.clients, name=f"client_{n}") for n in range(SIDE_READ)]
        m.d.comb += [
            self.memory.request.valid.eq(skid.o.valid),
            self.memory.request.payload.eq(skid.o.payload.address),
            self.read_bank.eq(skid.o.payload.bank),
            skid.o.ready.eq(self.memory.request.ready),
        ]
        m.d.sync += stages[0].eq(skid.o.payload.client)  # anything, while no read is accepted
        m.d.sync += [new.eq(old) for old, new in zip(stages[:-1], stages[1:], strict=True)]
        # A register for clients that are far from the memory, and from each other.
        vectors = Signal(self.memory.data.shape())
        m.d.sync += vectors.eq(self.memory.data)
        for n, client in enumerate(self.reads):
            m.d.sync += client.data_valid.eq(self.memory.data_valid & stages[-1][n])
            m.d.comb += client.data.eq(vectors)
        return m


class WriteArbiter(wiring.Component):
    """Passes writes to the memory: of the map store, else of the log, else of the host.

    The map store never waits; the others wait until ``ready``. The host waits in the cycle after a
    read had to wait: so its writes delay the reads of a list, but never keep them from the memory.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    store : In, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
    log : In, stream of `weft.hw.network_core.interface.VectorWrite`
    host : In, stream of `weft.hw.network_core.interface.VectorWrite`
    read_waits : In, 1 bit
        A read is valid at the memory, and the memory is not ready.
    write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
        To the memory, LATENCY cycles after the write of the client.
    """

    LATENCY = WRITE

    def __init__(self, config):
        write = stream.Signature(VectorWrite(config))
        super().__init__({
            "read_waits": In(1), "store": In(MemoryWrite(config)),
            "log": In(write), "host": In(write), "write": Out(MemoryWrite(config)),
        })

    def elaborate(self, platform):
        m = Module()
        read_waited, write = Signal(), Signal.like(self.write)
        free = ~self.store.valid
        m.d.sync += [read_waited.eq(self.read_waits), self.write.eq(write)]
        m.d.comb += [
            self.log.ready.eq(free),
            self.host.ready.eq(free & ~self.log.valid & ~read_waited),
            write.eq(self.store),
        ]
        for source in (self.host, self.log):
            with m.If(source.valid & source.ready):
                m.d.comb += write.valid.eq(1)
                for name, _ in source.payload.shape():
                    m.d.comb += write[name].eq(source.payload[name])
        return m
