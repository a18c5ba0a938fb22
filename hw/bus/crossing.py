"""The path between a bus wrapper and its core: in one clock domain, or between two.

`AsyncFifo` and `PulseHandshake` are what passes from one clock domain to another.
"""

from amaranth.hdl import Cat, DomainRenamer, Module, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.interface import CoreInterface
from weft.hw.output.stream_packer import Result
from weft.registers import LATENCY

__all__ = ["RESET_CYCLES", "AsyncCrossing", "AsyncFifo", "PulseHandshake", "SyncCrossing", "Timer"]


class AsyncFifo(wiring.Component):
    """Words leave in the order of their arrival; the pointers cross the domains in Gray code.

    Both domains must be reset, and the two resets must overlap. The reset of the writer must be
    released last. It is not `amaranth.lib.fifo.AsyncFIFOBuffered`: that one is reset by its write
    domain alone, and decodes the Gray counts for its levels.

    Parameters
    ----------
    shape : shape
        Shape of a word.
    depth : int
        Words of the memory: a power of two, at least 4.
    write_domain, read_domain : str

    Attributes
    ----------
    i : In, stream of ``shape``; in the write domain
    o : Out, stream of ``shape``; in the read domain
        Its payload comes from a register.
    nonempty : Out, 1 bit; in the write domain
        The memory may still hold words.
    next_valid : Out, 1 bit; in the read domain
        The memory holds words behind the offered one.

    Source: C. Cummings, Simulation and Synthesis Techniques for Asynchronous FIFO Design, 2002.
    """

    def __init__(self, shape, *, depth, write_domain, read_domain):
        self.shape = shape
        self.depth = depth
        self.write_domain = write_domain
        self.read_domain = read_domain
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
            "nonempty": Out(1), "next_valid": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.shape, depth=self.depth, init=[])
        write = memory.write_port(domain=self.write_domain)
        read = memory.read_port(domain="comb")
        # Counts have one bit more than addresses: a full memory differs from an empty one.
        w_count, r_count = Signal(range(2 * self.depth)), Signal(range(2 * self.depth))
        w_gray, r_gray = Signal.like(w_count), Signal.like(r_count)
        w_r_gray, r_w_gray = Signal.like(w_gray), Signal.like(r_gray)  # synchronized copies
        m.submodules.w_cross = FFSynchronizer(w_gray, r_w_gray, o_domain=self.read_domain)
        m.submodules.r_cross = FFSynchronizer(r_gray, w_r_gray, o_domain=self.write_domain)

        full = 3 << ceil_log2(self.depth) - 1  # the Gray codes of a full memory differ in two bits
        m.d.comb += [
            self.i.ready.eq(w_gray != w_r_gray ^ full),
            write.en.eq(self.i.valid & self.i.ready), write.addr.eq(w_count),
            write.data.eq(self.i.payload), self.nonempty.eq(w_gray != w_r_gray),
        ]
        w_next = Signal.like(w_count)
        m.d.comb += w_next.eq(w_count + write.en)
        m.d[self.write_domain] += [w_count.eq(w_next), w_gray.eq(w_next ^ w_next >> 1)]

        r_next = Signal.like(r_count)
        advance = ~self.o.valid | self.o.ready
        m.d.comb += [
            self.next_valid.eq(r_gray != r_w_gray), read.addr.eq(r_count),
            r_next.eq(r_count + (advance & self.next_valid)),
        ]
        m.d[self.read_domain] += [r_count.eq(r_next), r_gray.eq(r_next ^ r_next >> 1)]
        with m.If(advance):
            m.d[self.read_domain] += [
                self.o.valid.eq(self.next_valid), self.o.payload.eq(read.data),
            ]
        return m


class PulseHandshake(wiring.Component):
    """Carries one request at a time from domain ``src`` to ``dst``, and its acknowledge back.

    A reset of either domain may duplicate a request but never loses one. It is not
    `amaranth.lib.cdc.PulseSynchronizer`, which has no acknowledge.

    Parameters
    ----------
    src, dst : str
        Domains.

    Attributes
    ----------
    src_req : In, 1 bit; in ``src``
        Request; must stay high until the cycle of ``src_ack``.
    src_ack : Out, 1 bit; in ``src``
        Pulse: ``dst`` acknowledged the request.
    dst_req : Out, 1 bit; in ``dst``
        Request; stays high until the cycle of ``dst_ack``.
    dst_ack : In, 1 bit; in ``dst``; valid with ``dst_req``
        Acknowledge.
    """

    def __init__(self, *, src, dst):
        self.src = src
        self.dst = dst
        super().__init__({
            "src_req": In(1), "src_ack": Out(1), "dst_req": Out(1), "dst_ack": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        # Two-phase signalling: a request is pending while the two toggles differ.
        req_toggle, ack_toggle = Signal(), Signal()
        src_ack_toggle, dst_req_toggle = Signal(), Signal()  # synchronized copies
        pending = Signal()
        m.submodules.req_sync = FFSynchronizer(req_toggle, dst_req_toggle, o_domain=self.dst)
        m.submodules.ack_sync = FFSynchronizer(ack_toggle, src_ack_toggle, o_domain=self.src)
        m.d.comb += [
            self.src_ack.eq(pending & (src_ack_toggle == req_toggle)),
            self.dst_req.eq(dst_req_toggle != ack_toggle),
        ]
        with m.If(self.src_ack):
            m.d[self.src] += pending.eq(0)
        with m.Elif(self.src_req & ~pending & (src_ack_toggle == req_toggle)):
            m.d[self.src] += [pending.eq(1), req_toggle.eq(~req_toggle)]
        with m.If(self.dst_req & self.dst_ack):
            m.d[self.dst] += ack_toggle.eq(dst_req_toggle)
        return m


RESET_CYCLES = 16  # minimum length of the core's reset, in cycles of its clock


def members(config):
    """The ports of both crossings."""
    return {
        "commands": In(stream.Signature(8 * config.bytes_in)),
        "results": Out(stream.Signature(Result(bytes_out=config.bytes_out))),
        "abort": In(1),
        "reg_req": In(1), "reg_address": In(8), "reg_ack": Out(1), "reg_data": Out(32),
        "busy": Out(1),
        "reset": In(1), "reset_ack": Out(1), "flush": In(1),
        "core": Out(CoreInterface(config)), "core_reset": Out(1),
    }


class Timer(wiring.Component):
    """``done`` pulses ``cycles`` cycles after ``run`` rises.

    If ``run`` stays high, the timer starts again in the cycle after the pulse.
    """

    def __init__(self, cycles):
        self.cycles = cycles
        super().__init__({"run": In(1), "done": Out(1)})

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(self.cycles))
        m.d.sync += [
            count.eq(count + 1), self.done.eq(self.run & ~self.done & (count == self.cycles - 1))
        ]
        with m.If(~self.run | self.done):
            m.d.sync += count.eq(0)
        return m


class SyncCrossing(wiring.Component):
    """Connects a core that has the clock of the bus.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    commands : In, stream of ``8 * bytes_in`` bits
    results : Out, stream of `weft.hw.output.stream_packer.Result`
    abort : In, 1 bit
        Pulse: aborts the running job.
    reg_req : In, 1 bit; reg_address : In, 8 bits
        Request for a register of the core. Both must stay until ``reg_ack``.
    reg_ack : Out, 1 bit
        Pulse: ``reg_data`` is valid in this cycle.
    reg_data : Out, 32 bits; valid with ``reg_ack``
    busy : Out, 1 bit
        The core is busy, or a command is between the bus and the core.
    reset : In, 1 bit
        Resets the core; must stay until ``reset_ack``.
    reset_ack : Out, 1 bit
        The core has been in reset for `RESET_CYCLES` cycles of its clock.
    flush : In, 1 bit
        Drops all words between bus and core.
    core : Out, `weft.hw.interface.CoreInterface`
    core_reset : Out, 1 bit
    """

    def __init__(self, config):
        super().__init__(members(config))

    def elaborate(self, platform):
        m = Module()
        core = self.core
        connect(m, flipped(self.commands), flipped(core.commands))
        connect(m, flipped(core.results), flipped(self.results))
        m.submodules.reg_timer = reg_timer = Timer(LATENCY)
        m.submodules.reset_timer = reset_timer = Timer(RESET_CYCLES)
        m.d.comb += [
            core.abort.eq(self.abort), self.busy.eq(core.activity.busy),
            core.reg_address.eq(self.reg_address), self.reg_data.eq(core.reg_data),
            reg_timer.run.eq(self.reg_req), self.reg_ack.eq(reg_timer.done),
            self.core_reset.eq(self.reset),
            reset_timer.run.eq(self.reset), self.reset_ack.eq(reset_timer.done),
        ]
        return m


class AsyncCrossing(wiring.Component):
    """Connects a core whose clock has no relation to the clock of the bus.

    Streams cross in FIFOs; register reads and aborts cross as handshakes. Domains: ``sync`` is the
    bus, ``core`` is the core, ``core_clk`` has the clock of the core and the reset of the bus: a
    soft reset does not reset it.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    The ports of `SyncCrossing`.
    """

    DEPTH = 16  # words of each FIFO

    def __init__(self, config):
        self.config = config
        super().__init__(members(config))

    def elaborate(self, platform):
        m = Module()
        core = self.core
        commands = AsyncFifo(
            self.commands.payload.shape(), depth=self.DEPTH,
            write_domain="sync", read_domain="core",
        )
        results = AsyncFifo(
            self.results.payload.shape(), depth=self.DEPTH,
            write_domain="core", read_domain="sync",
        )
        with_flush = ResetInserter({"sync": self.flush})
        m.submodules.commands, m.submodules.results = with_flush(commands), with_flush(results)
        connect(m, flipped(self.commands), commands.i)
        connect(m, commands.o, flipped(core.commands))
        connect(m, flipped(core.results), results.i)
        connect(m, results.o, flipped(self.results))
        self._reset(m)
        self._registers(m)
        self._abort(m)
        self._busy(m, commands)
        return m

    def _reset(self, m):
        """``reset`` to the core, and ``reset_ack`` back."""
        c_reset, c_ack = Signal(init=1), Signal()
        m.submodules.reset_sync = FFSynchronizer(self.reset, c_reset, o_domain="core_clk", init=1)
        m.submodules.reset_ack_sync = FFSynchronizer(c_ack, self.reset_ack)
        timer = Timer(RESET_CYCLES)
        m.submodules.reset_timer = DomainRenamer("core_clk")(timer)
        m.d.comb += [self.core_reset.eq(c_reset), timer.run.eq(c_reset)]
        m.d.core_clk += c_ack.eq(c_reset & (c_ack | timer.done))

    def _registers(self, m):
        """``reg_req`` to the core; the register is stable until ``reg_ack``."""
        m.submodules.reg_handshake = handshake = PulseHandshake(src="sync", dst="core_clk")
        timer = Timer(LATENCY)
        m.submodules.reg_timer = DomainRenamer("core_clk")(timer)
        c_data = Signal(32)
        with m.If(timer.done):
            m.d.core_clk += c_data.eq(self.core.reg_data)
        m.d.comb += [
            handshake.src_req.eq(self.reg_req), self.core.reg_address.eq(self.reg_address),
            timer.run.eq(handshake.dst_req), handshake.dst_ack.eq(timer.done),
            self.reg_ack.eq(handshake.src_ack), self.reg_data.eq(c_data),
        ]

    def _abort(self, m):
        """``abort`` to the core; pulses that arrive before the acknowledge become one."""
        m.submodules.abort_handshake = handshake = PulseHandshake(src="sync", dst="core_clk")
        pending = Signal()
        m.d.sync += pending.eq(self.abort | (pending & ~handshake.src_ack))
        m.d.comb += [
            handshake.src_req.eq(pending), handshake.dst_ack.eq(1),
            self.core.abort.eq(handshake.dst_req),
        ]

    def _busy(self, m, commands):
        """``busy``: of the command FIFO, and some cycles longer, until the core's arrives."""
        c_busy, core_busy, history = Signal(), Signal(), Signal(3)
        m.submodules.busy_sync = FFSynchronizer(c_busy, core_busy)
        m.d.core_clk += c_busy.eq(
            self.core.activity.busy | commands.o.valid | commands.next_valid
        )
        m.d.sync += history.eq(Cat(commands.nonempty, history))
        m.d.comb += self.busy.eq(core_busy | commands.nonempty | history.any())
