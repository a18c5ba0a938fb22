"""The ports of a network core: access to its memory, start and abort of lists, status."""

from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth.hdl import Array, C, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import Axi4
from weft.hw.network_core.layouts import ColumnParameters, JobFields, ListLoadFields, VectorAddress
from weft.network_core.config import ADD_TABLE_WORDS
from weft.network_core.descriptors import BANK_BITS, WORD_BITS
from weft.network_core.register_map import REGISTERS, describe

__all__ = [
    "BufferRead", "JobPort", "LineRead", "ListBegin", "LoadPort", "MemoryWindow",
    "NetworkInterface", "NetworkStatus", "ReadPort", "ResultRead", "ScalePort", "StateRegisters",
    "TableRead", "VectorWrite", "choose_memory", "job_ports", "stream_by_memory",
]


class VectorWrite(data.StructLayout):
    """A write of a vector to the memory; ``enable`` has one bit a byte."""

    def __init__(self, config):
        super().__init__({
            "address": VectorAddress(config), "data": 8 * config.array.depth,
            "enable": config.array.depth,
        })


class ListBegin(data.StructLayout):
    """The start of a list: ``valid`` for one cycle, with the addresses of list and log.

    With a program memory, ``on_chip`` tells that both lie in the memory on the chip.
    """

    def __init__(self, config):
        super().__init__({
            "valid": 1, "list": VectorAddress(config), "log": VectorAddress(config),
            **({"on_chip": 1} if config.program_words else {}),
        })


class NetworkStatus(data.StructLayout):
    """The state of the core, and of its running or last list.

    ``state`` is a `weft.network_core.descriptors.NetworkState`, ``error`` a
    `weft.network_core.descriptors.ListError`, ``job`` the number of jobs that have ended,
    ``cycles`` the cycles since the start. ``result`` and ``result_bytes`` are the fields of END;
    valid if the state is DONE.
    """

    def __init__(self, config):
        super().__init__({
            "state": 8, "error": 8, "job": 16, "cycles": 32, "result": VectorAddress(config),
            "result_bytes": 16,
        })


class ReadPort(wiring.Signature):
    """Reads of a memory, from the side of the block that reads.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    request : Out, stream of `VectorAddress`
        Address of the first vector of a read.
    data_valid : In, 1 bit
        The data of a read come, in the order of the requests. They cannot wait.
    data : In, ``read_vectors`` vectors
        The vector at the address, and the ones after it; valid with ``data_valid``.
    """

    def __init__(self, config):
        super().__init__({
            "request": Out(stream.Signature(VectorAddress(config))),
            "data_valid": In(1),
            "data": In(data.ArrayLayout(8 * config.array.depth, config.read_vectors)),
        })


class MemoryWindow(wiring.Signature):
    """The words of each bank that a list may use; stable while the list runs.

    Parameters
    ----------
    bits : int
        Bits of a word number.

    Attributes
    ----------
    base : Out, ``bits`` bits
        The first word.
    limit : Out, ``bits`` bits
        The first word beyond.
    """

    def __init__(self, bits):
        super().__init__({"base": Out(bits), "limit": Out(bits)})

    @classmethod
    def of(cls, config):
        """The window whose word numbers are those of a `VectorAddress`."""
        return cls(VectorAddress(config)["word"].width)


class BufferRead(wiring.Signature):
    """Reads of a buffer that loads write, from the side of the block that reads.

    Parameters
    ----------
    address, data : shape

    Attributes
    ----------
    address : Out, shape ``address``
        The word that is read, in each cycle.
    data : In, shape ``data``
        The word, `weft.latencies.MEMORY_READ` cycles later.
    """

    def __init__(self, address, data):
        super().__init__({"address": Out(address), "data": In(data)})


class LineRead(BufferRead):
    """Reads of parameter lines: ``lanes`` `ColumnParameters` each."""

    def __init__(self, config):
        super().__init__(
            range(config.lines), data.ArrayLayout(ColumnParameters, config.array.lanes)
        )


class TableRead(BufferRead):
    """Reads of the ADD table: a word of 32 bits for each lane."""

    def __init__(self, config):
        lanes = config.array.lanes
        super().__init__(
            data.ArrayLayout(range(ADD_TABLE_WORDS), lanes), data.ArrayLayout(signed(32), lanes)
        )


class ScalePort(wiring.Signature):
    """Uses of the scaler of a lane, from the side of a block that is not the lane.

    Attributes
    ----------
    start : Out, 1 bit
        The values below are valid. Starts are at least ``scale_cycles`` cycles apart.
    acc : Out, 32 bits, signed
    multiplier : Out, 31 bits
    shift : Out, 8 bits, signed
        All three are stable for ``scale_cycles`` cycles.
    y : In, 32 bits, signed
        The scaled value, `weft.network_core.latencies.scale` cycles after ``start``.
    """

    def __init__(self):
        super().__init__({
            "start": Out(1), "acc": Out(signed(32)), "multiplier": Out(31), "shift": Out(signed(8)),
            "y": In(signed(32)),
        })


class ResultRead(wiring.Signature):
    """Reads of the result buffer of the array, from the side of the output section.

    Parameters
    ----------
    config : NetworkCoreConfig
    buffer_rows : int
        Rows of the buffer.

    Attributes
    ----------
    row_written : In, 1 bit
        Pulse: the buffer has one more row, readable from the next cycle on.
    address : Out
        A row of the buffer.
    index : Out
        Position of a chunk in that row.
    sums : In, ``lanes`` x 32 bits
        The chunk, `weft.network_core.latencies.result_read` cycles later.
    pair_sum : In, 32 bits
        The pair sum of the row, in the same cycle; not used if the MAC cell is not corrected.
    second_sums, second_pair_sum : In; only with the option ``two_rows``
        Of the second row of the array in that row of the buffer. ``sums`` and ``pair_sum`` are
        those of the first one, or of the second one with ``index`` 1.
    """

    def __init__(self, config, buffer_rows):
        super().__init__({
            "row_written": In(1),
            "address": Out(ceil_log2(buffer_rows)),
            "index": Out(range(max(config.row_chunks, config.drained_rows))),
            "sums": In(data.ArrayLayout(signed(32), config.array.lanes)),
            "pair_sum": In(signed(32)),
            **({
                "second_sums": In(data.ArrayLayout(signed(32), config.array.lanes)),
                "second_pair_sum": In(signed(32)),
            } if config.two_rows else {}),
        })


class JobPort(wiring.Signature):
    """The running job, from the side of the list.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    fields : Out, `JobFields`
        Its addresses include the base. Stable from ``start`` to the end of the job.
    start : Out, 1 bit
        Pulse: the job starts.
    """

    def __init__(self, config):
        super().__init__({"fields": Out(JobFields(config)), "start": Out(1)})


def stream_by_memory(m, program, given, chip, other):
    """Connect a stream to the one of the memory on the chip, or to that of the program memory."""
    m.d.comb += [
        chip.payload.eq(given.payload), other.payload.eq(given.payload),
        chip.valid.eq(given.valid & ~program), other.valid.eq(given.valid & program),
        given.ready.eq(Mux(program, other.ready, chip.ready)),
    ]


def choose_memory(m, program, reads, chip, other):
    """Connect a `ReadPort` to the one of the memory on the chip, or to that of the program memory.

    ``program`` may change while no data are missing: answers of both memories would mix.
    """
    stream_by_memory(m, program, reads.request, chip.request, other.request)
    m.d.comb += [
        reads.data_valid.eq(Mux(program, other.data_valid, chip.data_valid)),
        reads.data.eq(Mux(program, other.data, chip.data)),
    ]


def job_ports(config) -> dict:
    """The ports of a block that accesses the maps of a job: the job, and the words that it may use.
    """
    return {"job": In(JobPort(config)), "window": In(MemoryWindow.of(config))}


class LoadPort(wiring.Signature):
    """Loads one after the other, from the side of the list.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    request : Out, stream of `ListLoadFields`
        ``source`` includes the base. The fields are checked, except for the addresses.
    done : In, 1 bit
        Pulse: the last write of the load. The next load may be taken in the same cycle.
    address_error : In, 1 bit
        Pulse: a read outside of the window was suppressed. The load never ends.
    """

    def __init__(self, config):
        super().__init__({
            "request": Out(stream.Signature(ListLoadFields(config))), "done": In(1),
            "address_error": In(1),
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
    reads : Out, `ReadPort`
    begin : Out, `ListBegin`
        Ignored while a list runs. After an abort the list waits until the core is ready for it.
    abort : Out, 1 bit
        Pulse: ends the running list.
    window : Out, `MemoryWindow`
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
        word = VectorAddress(config)["word"].width
        super().__init__({
            "writes": Out(stream.Signature(VectorWrite(config))),
            "reads": Out(ReadPort(config)),
            "begin": Out(ListBegin(config)),
            "abort": Out(1),
            "window": Out(MemoryWindow.of(config)),
            "status": In(NetworkStatus(config)),
            "finished": In(1),
            **({
                "program_base": Out(32), "program_limit": Out(word), "program_idle": In(1),
                "axi": In(Axi4(data_bytes=config.beat_bytes)),
            } if config.program_words else {}),
        })


class StateRegisters(wiring.Component):
    """The register at ``address``, `weft.network_core.register_map.LATENCY` cycles later.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    address : In, 8 bits
        Number of a register.
    status : In, `weft.hw.network_core.interface.NetworkStatus`
    value : Out, 32 bits
        0 if no such register exists.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({"address": In(8), "status": In(NetworkStatus(config)), "value": Out(32)})

    def elaborate(self, platform):
        m = Module()
        status, result, address = self.status, self.status.result, self.address
        unused = BANK_BITS - len(result.bank)
        values = [
            *(Const(word, 32) for word in describe(self.config)),
            Cat(status.state, status.error, status.job), status.cycles,
            Cat(result.bank, C(0, unused), result.word, C(0, WORD_BITS - len(result.word))),
            status.result_bytes,
        ]
        first_state = REGISTERS.index("net_status")
        # First the word of each group of registers, and the group; then the word of that group.
        bounds, masked = [*range(0, first_state, 16), first_state, len(values)], []
        # Where flip-flops are scarce the value is valid a cycle before LATENCY.
        domain = "comb" if self.config.array.family.serial_epilogue else "sync"
        for n, end in pairwise(bounds):
            word, mine = Signal(32, name=f"word_{n}"), Signal(name=f"is_group_{n}")
            m.d[domain] += [
                word.eq(Array(values[n:end])[(address - n)[: ceil_log2(end - n)]]),
                mine.eq((address < end) & (address >= n if n else 1)),
            ]
            masked.append(word & mine.replicate(32))
        m.d.sync += self.value.eq(reduce(or_, masked))
        return m
