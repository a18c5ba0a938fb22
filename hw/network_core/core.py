"""The network core: it executes whole networks, list by list; and its top with flat ports.

A core whose memory has one port is a `weft.hw.network_core.micro.core.MicroCore` instead.
"""

from amaranth.hdl import Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.network_core.array_section import ArraySection
from weft.hw.network_core.interface import NetworkInterface, choose_memory, stream_by_memory
from weft.hw.network_core.layouts import is_of_unit, region_of
from weft.hw.network_core.lists.list_reader import ListReader
from weft.hw.network_core.loads.loader import AddTables, ListLoader, LoadedBuffer
from weft.hw.network_core.memory.banked_memory import BankedMemory, ReadArbiter, WriteArbiter
from weft.hw.network_core.memory.program_memory import ProgramMemory
from weft.hw.network_core.micro.core import MicroCore
from weft.hw.network_core.output.output_section import OutputSection
from weft.hw.network_core.steps.map_reader import MapReader
from weft.hw.network_core.steps.step_sequencer import StepSequencer
from weft.hw.top import FlatTop
from weft.network_core.config import has_single_port
from weft.network_core.latencies import lead, map_read, result_rows, starts_steps

__all__ = ["NetworkCore", "NetworkTop", "network_core"]

def network_core(config):
    """Return the core of ``config``: with a microprogram if its memory has one port."""
    return (MicroCore if has_single_port(config.array) else NetworkCore)(config)


class NetworkTop(FlatTop):
    """`NetworkCore`, with a separate port for each member of its interface.

    Attributes
    ----------
    write_valid : In; write_ready : Out; write_address, write_data, write_enable : In
        Writes of the host; an address is ``Cat(bank, word)``.
    read_valid : In; read_ready : Out; read_address : In
        Reads of the host.
    data_valid : Out; data : Out, ``read_vectors`` vectors
        The data of reads.
    begin_valid, begin_list, begin_log : In
        Start of a list.
    list_abort, base, limit : In
    state, error, job, cycles, result, result_bytes : Out
        The members of `weft.hw.network_core.interface.NetworkStatus`.
    finished : Out
    begin_on_chip, program_base, program_limit : In; program_idle : Out; awvalid, ... : In or Out
        With a program memory: the pins of its master, with the names of AXI4 in small letters.
    """

    def __init__(self, config):
        core = network_core(config)
        write, status = core.writes.payload, core.status
        super().__init__(core, {
            "write_valid": (In, core.writes.valid),
            "write_ready": (Out, core.writes.ready),
            "write_address": (In, write.address.as_value()),
            "write_data": (In, write.data),
            "write_enable": (In, write.enable),
            "read_valid": (In, core.reads.request.valid),
            "read_ready": (Out, core.reads.request.ready),
            "read_address": (In, core.reads.request.payload.as_value()),
            "data_valid": (Out, core.reads.data_valid),
            "data": (Out, core.reads.data.as_value()),
            "begin_valid": (In, core.begin.valid),
            "begin_list": (In, core.begin.list.as_value()),
            "begin_log": (In, core.begin.log.as_value()),
            "list_abort": (In, core.abort),
            "base": (In, core.window.base),
            "limit": (In, core.window.limit),
            "state": (Out, status.state),
            "error": (Out, status.error),
            "job": (Out, status.job),
            "cycles": (Out, status.cycles),
            "result": (Out, status.result.as_value()),
            "result_bytes": (Out, status.result_bytes),
            "finished": (Out, core.finished),
            **(_program(core) if config.program_words else {}),
        })


def _program(core):
    """The ports of the program memory."""
    ports = {
        "program_base": (In, core.program_base), "program_limit": (In, core.program_limit),
        "program_idle": (Out, core.program_idle),
        "begin_on_chip": (In, core.begin.on_chip),
    }
    for name, flow in (("aw", Out), ("w", Out), ("b", In), ("ar", Out), ("r", In)):
        channel, answer = getattr(core.axi, name), In if flow == Out else Out
        ports |= {
            f"{name}valid": (flow, channel.valid), f"{name}ready": (answer, channel.ready),
            **{
                f"{name}{field}": (flow, Value.cast(channel.payload[field]))
                for field in channel.payload.shape().members
            },
        }
    return ports


_CLIENTS = ("added", "unit", "list", "loads", "host")  # of the read arbiter, by priority
_FROM_PROGRAM = ("list", "loads")  # clients of the program memory, if the core has one


class NetworkCore(wiring.Component):
    """Memory, array and control of a network core; ``docs/network-core.md`` describes it.

    With a program memory, a `ProgramMemory` has lists with their logs, and sources of loads. Each
    list and each load tells whether it reads that memory or the one on the chip.

    With ``resident`` there is no loader: the host's writes reach the buffers of weights, of
    parameters and of ADD, by their addresses.

    While no list runs, all blocks except the memory, its arbiters and the list reader are reset,
    RESET cycles late. So an abort ends a list in any state. The array has no reset: the next list
    waits until it is empty, and until no read of these blocks is in flight.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    writes, reads, begin, abort, window, status, finished
        The ports of `weft.hw.network_core.interface.NetworkInterface`, flipped.
    program_base, program_limit, program_idle, axi
        Its other ports, with a program memory only.
    """

    RESET = 2  # cycles to the last register that is reset

    def __init__(self, config):
        self.config = config
        self.buffer_rows = result_rows(config)
        super().__init__(NetworkInterface(config).flip())

    def elaborate(self, platform):
        m = Module()
        m.submodules.list_reader = list_reader = ListReader(self.config)
        m.submodules.memory = memory = BankedMemory(self.config)
        absent = {"unit": not self.config.has_units, "loads": self.config.resident}
        names = [name for name in _CLIENTS if not absent.get(name)]
        m.submodules.read_arbiter = reads = ReadArbiter(self.config, clients=len(names))
        m.submodules.write_arbiter = writes = WriteArbiter(self.config)
        program = self._program(m, list_reader) if self.config.program_words else None
        clients = dict(zip(names, reads.reads, strict=True))
        # Two registers share the many loads. They differ in time: equal ones would be merged.
        reset, late_reset = Signal(init=1), Signal(init=1)
        m.d.sync += [reset.eq(list_reader.halt), late_reset.eq(reset)]
        early, late = ResetInserter(reset), ResetInserter(late_reset)
        sequencer, map_reader = self._steps(m, early, list_reader, memory)
        if self.config.resident:
            b, lines, table = self._resident(m, writes)
        else:
            b, lines, table = self._loads(m, late, list_reader, clients["loads"])
        array = self._array(m, late_reset, sequencer, map_reader, b)
        output = self._output(m, late, list_reader, sequencer, array, lines, table, clients)

        if program:
            self._both_memories(m, list_reader, clients, program, writes)
        else:
            connect(m, list_reader.reads, clients["list"])
            connect(m, list_reader.writes, writes.log)
        connect(m, flipped(self.reads), clients["host"])
        connect(m, reads.memory, memory.reads)
        m.d.comb += memory.read_bank.eq(reads.read_bank)
        if not self.config.resident:
            connect(m, flipped(self.writes), writes.host)
        m.d.comb += [
            writes.store.eq(output.write), memory.write.eq(writes.write),
            writes.read_waits.eq(memory.reads.request.valid & ~memory.reads.request.ready),
            list_reader.abort.eq(self.abort),
            list_reader.job_done.eq(output.done | sequencer.done),
            self.status.eq(list_reader.status), self.finished.eq(list_reader.finished),
        ]
        if self.config.two_rows:
            m.d.comb += [
                writes.second.eq(output.second_write), memory.second.eq(writes.second_write),
            ]
        if self.config.early:
            m.d.comb += [
                list_reader.address_error.eq(output.address_error),
                list_reader.step_error.eq(map_reader.address_error),
                map_reader.follows.eq(list_reader.follows), map_reader.frontier.eq(output.frontier),
            ]
        else:
            # The error of the last store must not come after the end of its job.
            read_error = Signal()
            m.d.sync += read_error.eq(map_reader.address_error)
            m.d.comb += list_reader.address_error.eq(read_error | output.address_error)
        connect(m, flipped(self.window), list_reader.window, map_reader.window, output.window)
        self._begin(m, list_reader, reads, array)
        return m

    def _program(self, m, list_reader):
        """The program memory, and its errors."""
        m.submodules.program = program = ProgramMemory(self.config)
        connect(m, program.axi, flipped(self.axi))
        m.d.comb += [
            list_reader.program_limit.eq(self.program_limit),
            program.base.eq(self.program_base), program.halt.eq(list_reader.halt),
            self.program_idle.eq(program.idle),
            list_reader.read_error.eq(
                program.read_error & program.reads[_FROM_PROGRAM.index("list")].data_valid
            ),
            list_reader.load_read_error.eq(
                program.read_error & program.reads[_FROM_PROGRAM.index("loads")].data_valid
            ),
            list_reader.stored.eq(program.stored),
            list_reader.store_error.eq(program.store_error),
            list_reader.timed_out.eq(program.timed_out), list_reader.written.eq(program.written),
        ]
        return program

    def _both_memories(self, m, list_reader, clients, program, writes):
        """Connect the list reader and the loader to both memories; the log goes with the list."""
        loader = m.submodules["loader"]
        for name, reader, on_chip in (
            ("list", list_reader, list_reader.on_chip), ("loads", loader, loader.on_chip),
        ):
            choose_memory(
                m, ~on_chip, reader.reads, clients[name], program.reads[_FROM_PROGRAM.index(name)]
            )
        stream_by_memory(m, ~list_reader.on_chip, list_reader.writes, writes.log, program.writes)

    def _begin(self, m, list_reader, reads, array):
        """Begin a list when nothing of an aborted list is in flight."""
        waiting, empty = Signal.like(self.begin), Signal(init=1)
        in_flight = Signal(range(reads.IN_FLIGHT + 1))
        cycles_left = Signal(range(self.RESET + array.FLUSH + 1))
        with m.If(~list_reader.halt):
            m.d.sync += [cycles_left.eq(self.RESET + array.FLUSH), empty.eq(0)]
        with m.Elif(cycles_left != 0):
            m.d.sync += cycles_left.eq(cycles_left - 1)
        with m.Else():
            m.d.sync += empty.eq(~in_flight.any())
        accepted, arrived = 0, 0
        for port in list(reads.reads)[:-1]:  # all but the host's
            accepted |= port.request.valid & port.request.ready
            arrived |= port.data_valid
        m.d.sync += in_flight.eq(in_flight + accepted - arrived)
        m.d.comb += list_reader.begin.eq(Mux(waiting.valid, waiting, self.begin))
        with m.If(~empty):
            m.d.comb += list_reader.begin.valid.eq(0)
            with m.If(self.begin.valid & list_reader.halt):
                m.d.sync += waiting.eq(self.begin)
        with m.Else():
            m.d.sync += waiting.valid.eq(0)
        with m.If(self.abort):
            m.d.sync += waiting.valid.eq(0)

    def _steps(self, m, resets, list_reader, memory):
        """A job -> the steps of the array, and the vectors of A from the memory."""
        sequencer = StepSequencer(self.config, buffer_rows=self.buffer_rows)
        map_reader = MapReader(self.config)
        m.submodules.sequencer = resets(sequencer)
        m.submodules.map_reader = resets(map_reader)
        connect(m, map_reader.panel, sequencer.panel)
        m.d.comb += [
            map_reader.step.eq(sequencer.step),
            memory.rows.eq(map_reader.rows), map_reader.row_data.eq(memory.row_data),
            memory.outside.eq(list_reader.job.fields.outside),
        ]
        if self.config.int16:
            m.d.comb += memory.outside_odd.eq(list_reader.job.fields.outside_odd)
        if self.config.has_units:  # their jobs have no steps
            job = list_reader.job
            for block in (sequencer, map_reader):
                m.d.comb += [
                    block.job.fields.eq(job.fields),
                    block.job.start.eq(job.start & ~is_of_unit(self.config, job.fields)),
                ]
        else:
            connect(m, list_reader.job, sequencer.job, map_reader.job)
        return sequencer, map_reader

    def _loads(self, m, resets, list_reader, client):
        """Loads -> the buffers of B, of parameters and of ADD, which a reset leaves as they are.
        """
        config = self.config
        loader = ListLoader(config)
        m.submodules.loader = resets(loader)
        connect(m, list_reader.load, loader.load)
        if not config.program_words:
            connect(m, loader.reads, client)
        buffers = self._buffers(m)
        for name, buffer in buffers.items():
            m.d.comb += buffer.write.eq(getattr(loader, name))
        connect(m, flipped(self.window), loader.window)
        if config.program_words:
            m.d.comb += loader.program_limit.eq(self.program_limit)
        return buffers.values()

    def _buffers(self, m):
        """The memories of B, of parameters and of ADD, in the order of `LoadTarget`."""
        config = self.config
        buffers = {
            "b": LoadedBuffer(config, vectors=config.array.cols, words=config.b_words),
            "lines": LoadedBuffer(config, vectors=config.line_vectors, words=config.lines),
            "table": AddTables(config),
        }
        for name, buffer in buffers.items():
            m.submodules[f"buffer_{name}"] = buffer
        return buffers

    def _resident(self, m, writes):
        """The same memories without a loader: the host writes them, vector by vector."""
        config, host = self.config, self.writes
        place, region = region_of(config, host.payload.address)
        m.d.comb += [
            writes.host.payload.eq(host.payload),
            writes.host.valid.eq(host.valid & (region == 0)),
            host.ready.eq(writes.host.ready | (region != 0)),
        ]
        buffers = list(self._buffers(m).values())
        for number, buffer in enumerate(buffers, 1):
            write = buffer.write
            in_word = ceil_log2(len(write.enable))  # bits of a vector's place in its word
            m.d.comb += [
                write.enable.eq(
                    (host.valid & (region == number)) << (place[:in_word] if in_word else 0)
                ),
                write.word.eq(place >> in_word),
                *(vector.eq(host.payload.data) for vector in write.data),
            ]
        return buffers

    def _array(self, m, reset, sequencer, map_reader, b):
        """Steps, A and B -> sums."""
        array = ArraySection(
            self.config, step=sequencer.step.shape(), a_latency=map_read(self.config),
            buffer_rows=self.buffer_rows,
        )
        m.submodules.array = array
        m.d.comb += [
            array.reset.eq(reset), array.step.eq(sequencer.step), array.a.eq(map_reader.a),
        ]
        connect(m, array.b, b.read)
        return array

    def _output(self, m, resets, list_reader, sequencer, array, lines, table, clients):
        """Tiles and sums -> the output map."""
        output = OutputSection(self.config, buffer_rows=self.buffer_rows)
        m.submodules.output = resets(output)
        connect(m, output.reads, clients["added"])
        if self.config.has_units:
            connect(m, output.unit_reads, clients["unit"])
        if starts_steps(self.config):
            connect(m, list_reader.output_job, output.job)
            ending = sequencer.ending
            if lead(self.config):
                ending = output.ending | ending
            m.d.comb += list_reader.job_ending.eq(ending)
        else:
            connect(m, list_reader.job, output.job)
        m.d.comb += [
            output.tiles.eq(sequencer.tiles),
            sequencer.release.eq(output.release),
            lines.read.address.eq(output.lines.address),
            output.lines.data.as_value().eq(lines.read.data.as_value()),
        ]
        connect(m, output.table, table.read)
        connect(m, output.rows, array.results)
        return output
