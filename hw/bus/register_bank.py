"""The registers of an IP core, the part that all kinds of cores share; and their register bus."""

import functools
import operator
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.register_map import fifo_ports, interrupts, registers
from weft.registers import CORE_SPACE

__all__ = [
    "BankRequest", "Interrupts", "RegisterBank", "RegisterBus", "Request", "Response", "SoftReset",
    "any_of",
]

Request = data.StructLayout({
    "addr": 10,  # address of a 32-bit word
    "aligned": 1,  # the bus gave the address of the word; without it the access is an error
    "write": 1,
    "mask": 4,  # bytes to write
    "data": 32,  # `mask` and `data` are valid with `write`; without it they need not stay stable
})
Response = data.StructLayout({"data": 32, "error": 1})


class RegisterBus(wiring.Signature):
    """One response for each request, in the order of the requests.

    The responder answers in bounded time, at the earliest in the cycle after the request. It
    accepts the next request in the cycle of the response at the earliest, and in the cycle after
    it at the latest. The requester always accepts a response.

    Attributes
    ----------
    request : Out, stream of `Request`
    response : In, stream of `Response`; always ready
    """

    def __init__(self):
        super().__init__({
            "request": Out(stream.Signature(Request)),
            "response": In(stream.Signature(Response, always_ready=True)),
        })


class Interrupts(wiring.Component):
    """``status <= (status & ~cleared) | events``; an event in the cycle of its clear is kept.

    Parameters
    ----------
    width : int
        Number of events.

    Attributes
    ----------
    events : In, ``width`` bits
        Pulses.
    data : In, ``width`` bits; valid with ``clear`` or ``set``
    clear : In, 1 bit
        Clears the bits of ``status`` that are 1 in ``data``.
    set : In, 1 bit
        Writes ``data`` to ``enable``.
    clear_all : In, 1 bit
        Clears ``status``, and drops the events of this cycle.
    status, enable : Out, ``width`` bits each
    irq : Out, 1 bit
        An enabled bit of ``status`` was set in the cycle before.
    """

    def __init__(self, *, width):
        super().__init__({
            "events": In(width), "data": In(width),
            "clear": In(1), "set": In(1), "clear_all": In(1),
            "status": Out(width), "enable": Out(width), "irq": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        cleared = Mux(self.clear, self.data, 0)
        m.d.sync += [
            self.status.eq((self.status & ~cleared) | self.events),
            self.irq.eq((self.status & self.enable).any()),
        ]
        with m.If(self.clear_all):
            m.d.sync += self.status.eq(0)
        with m.If(self.set):
            m.d.sync += self.enable.eq(self.data)
        return m


class SoftReset(wiring.Component):
    """Stops the DMA engine, then resets the core and flushes its surroundings.

    A reset of the bus starts the sequence too, without the stop.

    Attributes
    ----------
    start : In, 1 bit
        Pulse: starts a soft reset; ignored while ``reset_busy``.
    stop : Out, 1 bit
        Request to finish all transfers; stays high until ``idle``.
    idle : In, 1 bit
        No transfer is in progress.
    reset : Out, 1 bit
        Resets the core; stays high until ``reset_ack``.
    reset_ack : In, 1 bit
        The core has been reset; must fall after ``reset``.
    reset_busy : Out, 1 bit
        A soft reset is in progress.
    flush : Out, 1 bit
        Resets the surroundings of the core; high from ``reset`` until the end of the sequence.
    """

    def __init__(self):
        super().__init__({
            "start": In(1), "stop": Out(1), "idle": In(1, init=1),
            "reset": Out(1, init=1), "reset_ack": In(1),
            "reset_busy": Out(1, init=1), "flush": Out(1, init=1),
        })

    def elaborate(self, platform):
        m = Module()
        with m.If(self.start & ~self.reset_busy):
            m.d.sync += [self.reset_busy.eq(1), self.stop.eq(1)]
        with m.If(self.stop & self.idle):
            m.d.sync += [self.stop.eq(0), self.reset.eq(1), self.flush.eq(1)]
        with m.If(self.reset & self.reset_ack):
            m.d.sync += self.reset.eq(0)
        with m.If(self.flush & ~self.reset & ~self.reset_ack):
            m.d.sync += [self.flush.eq(0), self.reset_busy.eq(0)]
        return m


@dataclass(frozen=True)
class BankRequest:
    """The request in the bank.

    ``reads`` and ``writes`` have a select bit for each name; "core" is any of the core's registers.
    """

    valid: Signal
    addr: Signal  # of a word
    data: Signal
    done: Signal  # the last cycle of the request
    reads: dict[str, Signal]
    writes: dict[str, Signal]


class RegisterBank(wiring.Component):
    """Answers a request in the next cycle, unless the request has to wait.

    Reads of the core's own registers wait for the core; other waits take a few cycles. With FIFO
    ports the next request may follow in the next cycle after any write, and after a read of a FIFO
    while ``next_valid``; otherwise it follows after two cycles or more. The ``ready`` of a request
    comes directly from a flip-flop. A request is an error if no register has its address, if it is
    not aligned, if it writes a part of a word, if the register does not allow it, or on overflow or
    underflow of a FIFO; it then has no effect except on IRQ_STATUS. All addresses come from
    `weft.register_map`, by name.

    Subclasses define `stored`, `values`, `events` and `connect_ports`. With FIFO ports they have a
    member ``next_valid``: the FIFO to read has a word in the next cycle.

    Parameters
    ----------
    ip : Ip or NetworkIp
    members : dict
        The ports of the subclass.

    Attributes
    ----------
    bus : In, `RegisterBus`
    reg_req : Out, 1 bit; reg_address : Out, 8 bits
        Request for a register of the core, by word address; both stay until ``reg_ack``.
    reg_ack : In, 1 bit
    reg_data : In, 32 bits; valid with ``reg_ack``
    reset_busy : In, 1 bit
        For STATUS. Meanwhile no word can be written to a FIFO.
    reset, abort : Out, 1 bit each
        Pulses of CONTROL.
    irq : Out, 1 bit
    """

    def __init__(self, ip, members):
        self.ip = ip
        super().__init__({
            "bus": In(RegisterBus()),
            "reg_req": Out(1), "reg_address": Out(8), "reg_ack": In(1), "reg_data": In(32),
            "reset_busy": In(1), "reset": Out(1), "abort": Out(1), "irq": Out(1), **members,
        })

    def elaborate(self, platform):
        m = Module()
        wait = Signal()  # the request in the bank, if any, cannot be answered in this cycle
        s = self._stage(m, wait)
        m.submodules.interrupts = irqs = Interrupts(
            width=max(f.low for f in interrupts(self.ip)) + 1
        )
        values = {name: self._word(name, fields) for name, fields in {
            "irq_status": {f.name: irqs.status[f.low] for f in interrupts(self.ip)},
            "irq_enable": {f.name: irqs.enable[f.low] for f in interrupts(self.ip)},
            **self.values(m, s),
        }.items()}
        m.d.comb += [self.reg_req.eq(s.valid & s.reads["core"]), self.reg_address.eq(s.addr)]
        waits = [s.reads["core"] & ~self.reg_ack]
        overflow, underflow, words = self.connect_ports(m, s, waits)
        values |= {"core": self.reg_data, **self.stored(), **words}
        for name, register in self.stored().items():
            with m.If(s.done & s.writes[name]):
                m.d.sync += register.eq(s.data)

        error = Signal()
        response = self.bus.response
        m.d.comb += [
            wait.eq(any_of(waits)),
            error.eq(~any_of([*s.reads.values(), *s.writes.values()]) | overflow | underflow),
            response.valid.eq(s.done),
            response.p.error.eq(error),
            response.p.data.eq(any_of(
                Mux(selected, values[name], 0) for name, selected in s.reads.items()
            )),
        ]
        for name, field in self.fields("control").items():
            m.d.comb += getattr(self, name).eq(s.done & s.writes["control"] & s.data[field.low])
        self._interrupts(m, irqs, s, {
            "access_error": s.done & error,
            "overflow": s.done & overflow, "underflow": s.done & underflow,
        })
        return m

    def stored(self):
        """The registers that only hold what software wrote, by name."""
        raise NotImplementedError

    def values(self, m, s):
        """The values of all fields of the other registers, by register and field.

        IRQ_STATUS and IRQ_ENABLE are not among them.
        """
        raise NotImplementedError

    def events(self, m, s):
        """The events of IRQ_STATUS that only this kind of core has, by name."""
        raise NotImplementedError

    def connect_ports(self, m, s, waits):
        """Connect the ports of data; returns overflow, underflow, and the words of FIFO ports.

        Conditions for which a request waits are added to ``waits``.
        """
        raise NotImplementedError

    def never_waits(self, request):
        """Whether a request is certain to be done in the next cycle; only with FIFO ports."""
        if not fifo_ports(self.ip):
            return Const(0)
        _, to_read = fifo_ports(self.ip)
        return request.write | (_within(request.addr, to_read) & self.next_valid)

    def connect_fifos(self, m, s, waits, written, taken, nonempty):
        """Let writes of a FIFO port go to the stream ``written``, and reads take from ``taken``.

        ``nonempty`` says that the FIFO behind ``taken`` has a word, or gets one soon. Returns as
        `connect_ports`.
        """
        to_write, to_read = (port.name for port in fifo_ports(self.ip))
        write, read = s.writes[to_write], s.reads[to_read]
        waits.append(read & nonempty & ~taken.valid)
        m.d.comb += [
            written.valid.eq(s.valid & write & ~self.reset_busy), written.payload.eq(s.data),
            taken.ready.eq(s.valid & read & nonempty),
        ]
        overflow = write & (self.reset_busy | ~written.ready)
        return overflow, read & ~nonempty, {to_read: Mux(nonempty, taken.payload, 0)}

    def _stage(self, m, wait):
        """Accepts a request of the bus, and holds it until it is done."""
        request = self.bus.request
        valid, addr, word, done = Signal(), Signal(10), Signal(32), Signal()
        ready = Signal(init=1)  # the bank is empty, or its request is certain to end in this cycle
        m.d.comb += [request.ready.eq(ready), done.eq(valid & ~wait)]
        with m.If(ready):
            m.d.sync += [
                valid.eq(request.valid), addr.eq(request.p.addr), word.eq(request.p.data),
                ready.eq(~request.valid | self.never_waits(request.p)),
            ]
        with m.Elif(done):
            m.d.sync += [valid.eq(0), ready.eq(1)]
        return BankRequest(valid, addr, word, done, *self._decode(m, request))

    def _decode(self, m, request):
        """Registered select bits of all reads, and of all writes, by register name."""
        core = [r for r in registers(self.ip) if r.address < CORE_SPACE]
        assert [r.address // 4 for r in core] == list(range(len(core)))
        spans = {"core": (_below(request.p.addr, len(core)), "ro")}
        for register in registers(self.ip)[len(core):]:
            spans[register.name] = request.p.addr == register.address // 4, register.access
        for port in fifo_ports(self.ip):
            spans[port.name] = _within(request.p.addr, port), port.access
        reads, writes = {}, {}
        whole_word = request.p.write & request.p.mask.all()
        for name, (hit, allowed) in spans.items():
            for access, selects, kind in (
                ("ro", reads, ~request.p.write), ("wo", writes, whole_word),
            ):
                if allowed in (access, "rw"):
                    selects[name] = Signal(name=f"{'reads' if access == 'ro' else 'writes'}_{name}")
                    with m.If(request.ready):
                        m.d.sync += selects[name].eq(hit & kind & request.p.aligned)
        return reads, writes

    def _interrupts(self, m, irqs, s, events):
        events |= self.events(m, s)
        m.d.comb += [
            *(irqs.events[f.low].eq(events[f.name]) for f in interrupts(self.ip)),
            irqs.data.eq(s.data), irqs.clear_all.eq(self.reset),
            irqs.clear.eq(s.done & s.writes["irq_status"]),
            irqs.set.eq(s.done & s.writes["irq_enable"]),
            self.irq.eq(irqs.irq),
        ]

    def fields(self, name):
        """The fields of a register, by name."""
        register = next(r for r in registers(self.ip) if r.name == name)
        return {field.name: field for field in register.fields}

    def _word(self, name, values):
        """The word of a register, from the values of all its fields."""
        parts, end = [], 0
        for field in self.fields(name).values():
            value = Value.cast(values[field.name])
            width = min(field.width, len(value))
            parts += [Const(0, field.low - end), value[:width], Const(0, field.width - width)]
            end = field.low + field.width
        return Cat(parts)


def any_of(values):
    """The bitwise or of all values."""
    return functools.reduce(operator.or_, values)


def _within(addr, port):
    """Whether a word address lies in a FIFO port, which is aligned to its size."""
    assert port.size & (port.size - 1) == 0 and port.address % port.size == 0
    return addr[ceil_log2(port.size // 4):] == port.address // port.size


def _below(addr, limit):
    """``addr < limit``, without a carry chain."""
    return any_of(addr[bit:] == (limit >> bit) - 1 for bit in range(len(addr)) if limit >> bit & 1)
