"""The memory of a network core: banks, and the arbiters of its side port."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.bank import DualPortBank
from weft.hw.delay import pipeline
from weft.hw.network_core.interface import ReadPort, VectorWrite
from weft.hw.network_core.layouts import VectorAddress
from weft.hw.stream.fifo import SkidBuffer
from weft.network_core.latencies import DELIVERY, ROW_READ, SIDE_READ, WRITE

__all__ = ["BankSelect", "BankedMemory", "MemoryWrite", "ReadArbiter", "RowRead", "WriteArbiter"]


class BankSelect(wiring.Component):
    """``selected[n] = words[bank]`` of the bank whose bit in ``select[n]`` is 1; 0 without a bit.

    Two banks share a LUT for each bit, and its register; an OR of these registers follows. So
    ``selected`` is combinational: a register should follow it. LATENCY cycles.

    Parameters
    ----------
    width, banks, readers : int

    Attributes
    ----------
    words : In, ``banks`` words of ``width`` bits
    select : In, 1 bit for each bank, for each of ``readers``
        One-hot, or 0.
    selected : Out, ``readers`` words
    """

    LATENCY = 1

    def __init__(self, *, width, banks, readers):
        self.width = width
        self.banks = banks
        super().__init__({
            "words": In(data.ArrayLayout(width, banks)),
            "select": In(data.ArrayLayout(banks, readers)),
            "selected": Out(data.ArrayLayout(width, readers)),
        })

    def elaborate(self, platform):
        m = Module()
        for reader, selected in enumerate(self.selected):
            select = self.select[reader]
            masked = [self.words[n] & select[n].replicate(self.width) for n in range(self.banks)]
            pairs = []
            for n in range(0, self.banks, 2):
                pairs.append(Signal(self.width, name=f"pair_{reader}_{n}", reset_less=True))
                m.d.sync += pairs[-1].eq(reduce(or_, masked[n : n + 2]))
            m.d.comb += selected.eq(reduce(or_, pairs))
        return m


class RowRead(data.StructLayout):
    """A request of a row of the array: the vector at ``address`` if ``valid``, else 0.

    With ``outside``, and without ``valid``, the row gets the value outside the map.
    """

    def __init__(self, config):
        super().__init__({"valid": 1, "outside": 1, "address": VectorAddress(config)})


class MemoryWrite(data.StructLayout):
    """A `weft.hw.network_core.interface.VectorWrite` in the cycles in which ``valid`` is 1."""

    def __init__(self, config):
        write = VectorWrite(config)
        super().__init__({"valid": 1, **{name: write[name].shape for name in write.members}})


class BankedMemory(wiring.Component):
    """``config.banks`` banks of vectors; ``docs/network-core.md`` tells which vector lies where.

    Port A of each bank serves the row of the array that reads it. The rows read different banks:
    otherwise the data of these rows are undefined. Port B writes, or reads for the side port.

    A write that is on ``write`` in cycle t blocks its bank in cycle t + 1: ``reads`` is not ready
    then for a read of this bank. Reads that are accepted in cycle t + 1 or later see the write,
    and so do rows that are requested in cycle t + 2 or later.

    The memory has no reset.

    The last registers before the blocks, and before the selection of their words, do nothing else.
    So place and route may have copies of them near the blocks, which can be far apart.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    rows : In, `RowRead` for each row of the array
    row_data : Out, a vector for each row
        ROW_LATENCY cycles later. Combinational: a register should follow.
    outside : In, int8
        Each byte of a vector outside the map. Stable while such vectors are read, and 2 cycles
        before.
    outside_odd : In, int8; only with ``int16``
        The same for its odd bytes; ``outside`` is for the even ones.
    reads : In, `weft.hw.network_core.interface.ReadPort`
        The data follow READ_LATENCY cycles after the request was accepted.
    read_bank : In, 1 bit for each bank
        The bank of the request, one-hot.
    write : In, `MemoryWrite`
    second : In, `MemoryWrite`; only with the option ``two_rows``
        A write to another bank, in the same cycle.
    """

    ROW_LATENCY = ROW_READ  # the address, its copies, DualPortBank, BankSelect
    READ_LATENCY = SIDE_READ  # and a register

    def __init__(self, config):
        self.config = config
        vector = 8 * config.array.depth
        super().__init__({
            "rows": In(data.ArrayLayout(RowRead(config), config.array.rows)),
            "row_data": Out(data.ArrayLayout(vector, config.array.rows)),
            "outside": In(signed(8)),
            **({"outside_odd": In(signed(8))} if config.int16 else {}),
            "reads": In(ReadPort(config)),
            "read_bank": In(config.banks),
            "write": In(MemoryWrite(config)),
            **({"second": In(MemoryWrite(config))} if config.two_rows else {}),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        banks = [
            DualPortBank(width=8 * config.array.depth, depth=config.words,
            target=config.array.target) for _ in range(config.banks)
        ]
        for n, bank in enumerate(banks):
            m.submodules[f"bank_{n}"] = bank
        self._rows(m, banks)
        self._side_port(m, banks)
        return m

    def _rows(self, m, banks):
        """Port A: each bank takes the word address of the row that reads it."""
        config = self.config
        m.submodules.row_select = select = BankSelect(  # the value outside is one more bank
            width=8 * config.array.depth, banks=config.banks + 1, readers=config.array.rows
        )
        hits = Signal(select.select.shape())  # the banks that each row reads
        for row, hit in zip(self.rows, hits, strict=True):
            m.d.comb += hit.eq(Cat(
                *(row.valid & (row.address.bank == n) for n in range(config.banks)), row.outside
            ))
        for n, bank in enumerate(banks):
            words = [
                row.address.word[: len(bank.a_addr)] & hit[n].replicate(len(bank.a_addr))
                for row, hit in zip(self.rows, hits, strict=True)
            ]
            r_word = Signal.like(bank.a_addr, name=f"row_word_{n}", reset_less=True)
            m.d.sync += r_word.eq(reduce(or_, words))
            m.d.comb += [
                bank.a_addr.eq(pipeline(m, r_word, 1, f"row_address_{n}")),
                select.words[n].eq(bank.a_data),
            ]
        values = [pipeline(m, self.outside, 2, "outside")]
        if config.int16:
            values.append(pipeline(m, self.outside_odd, 2, "outside_odd"))
        m.d.comb += [
            select.words[config.banks].eq(
                Cat(*values).replicate(config.array.depth // len(values))
            ),
            select.select.eq(pipeline(m, hits, 2 + DualPortBank.LATENCY, "row_banks")),
            self.row_data.eq(select.selected),
        ]

    def _side_port(self, m, banks):
        """Port B: the write of two cycles before, or a read."""
        config, request, read = self.config, self.reads.request, self.reads.request.payload
        writes = [self.write, *([self.second] if config.two_rows else [])]
        r_writes = [Signal.like(write, name="r_write") for write in writes]
        blocked = Signal(config.banks)  # bit n: a read that begins in bank n needs a write's bank
        m.d.sync += [late.eq(write) for write, late in zip(writes, r_writes, strict=True)]
        m.d.sync += [
            bit.eq(reduce(or_, (
                write.valid & Cat(
                    write.address.bank == (first + k) % config.banks
                    for k in range(config.read_vectors)
                ).any()
                for write in writes
            )))
            for first, bit in enumerate(blocked)
        ]
        fire, next_word = Signal(), Signal.like(read.word)
        # the bank of each vector
        hits = Signal(data.ArrayLayout(config.banks, config.read_vectors))
        m.d.comb += [
            next_word.eq(read.word + 1),
            *(
                hits[k].eq(Cat(self.read_bank[n - k] for n in range(config.banks)))
                for k in range(config.read_vectors)
            ),
        ]
        written = []  # for each bank, whether each write goes there
        for n, bank in enumerate(banks):
            addr = Signal.like(bank.b_addr, name=f"side_addr_{n}", reset_less=True)
            enable = Signal.like(bank.b_write_en, name=f"side_enable_{n}")
            # A read goes on in bank 0 after the last bank, with the next word.
            word = Mux(read.bank > n, next_word, read.word) if n < len(banks) - 1 else read.word
            enables, of_bank = [], []
            for r_write in r_writes:
                of_bank.append(Signal(name=f"writes_{n}"))
                m.d.comb += of_bank[-1].eq(r_write.valid & (r_write.address.bank == n))
                word = Mux(of_bank[-1], r_write.address.word, word)
                enables.append(r_write.enable & of_bank[-1].replicate(len(enable)))
            m.d.sync += [addr.eq(word), enable.eq(reduce(or_, enables))]
            written.append(of_bank)
            near_enable = Signal.like(enable)
            m.d.sync += near_enable.eq(enable)
            m.d.comb += [
                bank.b_addr.eq(pipeline(m, addr, 1, f"side_address_{n}")),
                bank.b_write_en.eq(near_enable),
            ]
        write_data = self._write_data(m, r_writes, written)
        m.d.comb += [
            *(bank.b_write_data.eq(word) for bank, word in zip(banks, write_data, strict=True)),
            request.ready.eq(~(blocked & self.read_bank).any()),
            fire.eq(request.valid & request.ready),
        ]
        self._read_data(m, banks, fire, hits)

    def _write_data(self, m, writes, written):
        """What each bank writes, 2 cycles later: one write for all, or the choice of two."""
        if len(writes) == 1:
            return [pipeline(m, writes[0].data, 2, "write_data")] * len(written)
        first, second = (
            pipeline(m, write.data, 1, f"write_data_{n}") for n, write in enumerate(writes)
        )
        return [
            pipeline(
                m, Mux(pipeline(m, of_bank[1], 1, f"second_{n}"), second, first), 1,
                f"bank_data_{n}",
            )
            for n, of_bank in enumerate(written)
        ]

    def _read_data(self, m, banks, fire, hits):
        """The vectors of a read, in their order."""
        config = self.config
        m.submodules.read_select = select = BankSelect(
            width=8 * config.array.depth, banks=config.banks, readers=config.read_vectors
        )
        valids = Signal(self.READ_LATENCY)  # delay line
        m.d.comb += [
            *(select.words[n].eq(bank.b_data) for n, bank in enumerate(banks)),
            select.select.eq(pipeline(m, hits, 2 + DualPortBank.LATENCY, "read_banks")),
            self.reads.data_valid.eq(valids[-1]),
        ]
        m.d.sync += [valids.eq(Cat(fire, valids)), self.reads.data.eq(select.selected)]


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
    second : In, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
        A second write of the map store; only with the option ``two_rows``.
    log : In, stream of `weft.hw.network_core.interface.VectorWrite`
    host : In, stream of `weft.hw.network_core.interface.VectorWrite`
    read_waits : In, 1 bit
        A read is valid at the memory, and the memory is not ready.
    write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
        To the memory, LATENCY cycles after the write of the client.
    second_write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
        ``second``, as late; only with the option ``two_rows``.
    """

    LATENCY = WRITE

    def __init__(self, config):
        self.config = config
        write = stream.Signature(VectorWrite(config))
        super().__init__({
            "read_waits": In(1), "store": In(MemoryWrite(config)),
            "log": In(write), "host": In(write), "write": Out(MemoryWrite(config)),
            **({
                "second": In(MemoryWrite(config)), "second_write": Out(MemoryWrite(config)),
            } if config.two_rows else {}),
        })

    def elaborate(self, platform):
        m = Module()
        read_waited, write = Signal(), Signal.like(self.write)
        free = ~self.store.valid
        if self.config.two_rows:  # a first pixel outside the window is not stored
            free &= ~self.second.valid
            m.d.sync += self.second_write.eq(self.second)
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
