"""The control and status registers (CSR) of an IP core, behind a register bus."""

import functools
import operator
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.bus.descriptor_regs import WORDS
from weft.hw.bus.fifo_ports import Level
from weft.hw.bus.interrupts import Interrupts
from weft.hw.bus.job_done import JobDone
from weft.hw.bus.register_bus import RegisterBus
from weft.register_map import fifo_ports, interrupts, registers
from weft.registers import REGISTERS

__all__ = ["DMA_ERRORS", "CsrBank"]

# Errors of a DMA engine, by the names of their interrupts.
DMA_ERRORS = "dma_read_error", "dma_write_error", "bad_descriptor", "bad_address"


@dataclass(frozen=True)
class _Stage:
    """The request in the bank.

    ``reads`` and ``writes`` have a select bit for each name; "core" is any of the core's registers.
    """

    valid: Signal
    addr: Signal  # of a word
    data: Signal
    done: Signal  # the last cycle of the request
    reads: dict[str, Signal]
    writes: dict[str, Signal]


class CsrBank(wiring.Component):
    """Answers a request in the next cycle, unless the request has to wait.

    Reads of the core's own registers wait for the core; other waits take a few cycles. With FIFO
    ports the next request may follow in the next cycle after any write, and after a read of
    RESULT_FIFO while ``next_valid``; otherwise it follows after two cycles or more. The ``ready``
    of a request comes directly from a flip-flop. A request is an error if no register has its
    address, if it writes a part of a word, if the register does not allow it, or on overflow or
    underflow of a FIFO; it then has no effect except on IRQ_STATUS. All addresses come from
    `weft.register_map`, by name.

    Parameters
    ----------
    ip : Ip

    Attributes
    ----------
    bus : In, `RegisterBus`
    reg_req : Out, 1 bit; reg_address : Out, 8 bits
        Request for a register of the core, by word address; both stay until ``reg_ack``.
    reg_ack : In, 1 bit
    reg_data : In, 32 bits; valid with ``reg_ack``
    busy, reset_busy : In, 1 bit each
        For STATUS. While ``reset_busy``, CMD_FIFO has no space.
    job_done : In, `JobDone`
        A job ended, with its tag and status; ``valid`` is a pulse.
    reset, abort : Out, 1 bit each
        Pulses of CONTROL.
    irq : Out, 1 bit
    commands : Out, stream of 32 bits; only with FIFO ports
        Words written to CMD_FIFO.
    cmd_free : In, 9 bits; only with FIFO ports
        Number of words that the FIFO of ``commands`` has space for.
    results : In, stream of 32 bits; next_valid : In, 1 bit; level : In, `Level`
        As in `weft.hw.bus.fifo_ports.RxFifo`; only with FIFO ports.
    dma_busy : In, 1 bit; only with DMA
        For STATUS.
    errors : In, one bit for each of `DMA_ERRORS`; only with DMA
        Pulses.
    descriptor : Out; descriptor_word : In, 32 bits; submitting : In, 1 bit
        As in `weft.hw.bus.descriptor_regs.DescriptorRegs`; only with DMA. Requests wait while
        ``submitting``.
    desc_free : In, 6 bits; only with DMA
        Number of descriptors that the queue has space for.
    dma_base, dma_limit : Out, 32 bits each; only with a window
        First and last address that the DMA may access. A soft reset does not change them.
    """

    def __init__(self, ip):
        self.ip = ip
        members = {
            "bus": In(RegisterBus()),
            "reg_req": Out(1), "reg_address": Out(8), "reg_ack": In(1), "reg_data": In(32),
            "busy": In(1), "reset_busy": In(1), "job_done": In(JobDone),
            "reset": Out(1), "abort": Out(1), "irq": Out(1),
        }
        if ip.has_fifo_ports:
            members |= {
                "commands": Out(stream.Signature(32)), "cmd_free": In(9),
                "results": In(stream.Signature(32)), "next_valid": In(1), "level": In(Level),
            }
        if ip.has_dma:
            members |= {
                "dma_busy": In(1), "errors": In(data.StructLayout(dict.fromkeys(DMA_ERRORS, 1))),
                "descriptor": Out(data.StructLayout({
                    "write": 1, "index": ceil_log2(WORDS), "data": 32, "submit": 1,
                })),
                "descriptor_word": In(32), "desc_free": In(6), "submitting": In(1),
            }
        if ip.window:
            members |= {"dma_base": Out(32), "dma_limit": Out(32, init=0xFFFFFFFF)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        wait = Signal()  # the request in the bank, if any, cannot be answered in this cycle
        s = self._stage(m, wait)
        m.submodules.interrupts = irqs = Interrupts(
            width=max(f.low for f in interrupts(self.ip)) + 1
        )
        values = {"core": self.reg_data, **self._values(m, irqs)}
        m.d.comb += [self.reg_req.eq(s.valid & s.reads["core"]), self.reg_address.eq(s.addr)]
        waits = [s.reads["core"] & ~self.reg_ack]
        overflow, underflow = Const(0), Const(0)  # a core has FIFO ports, DMA, or neither
        if self.ip.has_fifo_ports:
            overflow, underflow, values["result_fifo"] = self._fifo_ports(m, s, waits)
        if self.ip.has_dma:
            overflow = self._descriptor(m, s, waits)
        if self.ip.window:
            for name, register in (("dma_base", self.dma_base), ("dma_limit", self.dma_limit)):
                with m.If(s.done & s.writes[name]):
                    m.d.sync += register.eq(s.data)

        error = Signal()
        response = self.bus.response
        m.d.comb += [
            wait.eq(_any(waits)),
            error.eq(~_any([*s.reads.values(), *s.writes.values()]) | overflow | underflow),
            response.valid.eq(s.done),
            response.p.error.eq(error),
            response.p.data.eq(_any(
                Mux(selected, values[name], 0) for name, selected in s.reads.items()
            )),
        ]
        control = s.done & s.writes["control"]
        fields = _fields(self.ip, "control")
        m.d.comb += [
            self.reset.eq(control & s.data[fields["reset"].low]),
            self.abort.eq(control & s.data[fields["abort"].low]),
        ]
        self._interrupts(m, irqs, s, {
            "access_error": s.done & error,
            "overflow": s.done & overflow, "underflow": s.done & underflow,
        })
        return m

    def _stage(self, m, wait):
        """Accepts a request of the bus, and holds it until it is done."""
        request = self.bus.request
        valid, addr, word, done = Signal(), Signal(10), Signal(32), Signal()
        ready = Signal(init=1)  # the bank is empty, or its request is certain to end in this cycle
        m.d.comb += [request.ready.eq(ready), done.eq(valid & ~wait)]
        with m.If(ready):
            m.d.sync += [
                valid.eq(request.valid), addr.eq(request.p.addr), word.eq(request.p.data),
                ready.eq(~request.valid | self._never_waits(request.p)),
            ]
        with m.Elif(done):
            m.d.sync += [valid.eq(0), ready.eq(1)]
        return _Stage(valid, addr, word, done, *self._decode(m, request))

    def _never_waits(self, request):
        """Whether a request is certain to be done in the next cycle."""
        if not self.ip.has_fifo_ports:
            return Const(0)
        results = next(port for port in fifo_ports(self.ip) if port.name == "result_fifo")
        return request.write | (_within(request.addr, results) & self.next_valid)

    def _decode(self, m, request):
        """Registered select bits of all reads, and of all writes, by register name."""
        core = [r for r in registers(self.ip) if r.name in REGISTERS]
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
                        m.d.sync += selects[name].eq(hit & kind)
        return reads, writes

    def _values(self, m, irqs):
        """The words of all registers of the bank, by name."""
        jobs_done = Signal(32)
        last_job = Signal(JobDone)
        with m.If(self.job_done.valid):
            m.d.sync += [jobs_done.eq(jobs_done + 1), last_job.eq(self.job_done)]
        with m.If(self.reset):
            m.d.sync += [jobs_done.eq(0), last_job.eq(0)]
        busy = Signal()
        m.d.sync += busy.eq(self.busy | (self.commands.valid if self.ip.has_fifo_ports else 0))
        values = {
            "status": {"busy": busy, "reset_busy": self.reset_busy},
            "irq_status": {f.name: irqs.status[f.low] for f in interrupts(self.ip)},
            "irq_enable": {f.name: irqs.enable[f.low] for f in interrupts(self.ip)},
            "jobs_done": {"value": jobs_done},
            "last_job": {"tag": last_job.tag, "status": last_job.status},
        }
        if self.ip.has_fifo_ports:
            values |= {
                "cmd_fifo_free": {"value": Mux(self.reset_busy, 0, self.cmd_free)},
                "result_level": {
                    "words": self.level.words, "complete": self.level.complete,
                    "status": last_job.status[:2],
                },
                "result_tag": {"tag": last_job.tag},
            }
        if self.ip.has_dma:
            dma_busy = Signal()
            m.d.sync += dma_busy.eq(self.dma_busy)
            values["status"]["dma_busy"] = dma_busy
            values["desc_free"] = {"value": self.desc_free}
            values |= {f"descriptor_{n}": {"value": self.descriptor_word} for n in range(WORDS)}
        if self.ip.window:
            values |= {"dma_base": {"value": self.dma_base}, "dma_limit": {"value": self.dma_limit}}
        return {name: _word(self.ip, name, fields) for name, fields in values.items()}

    def _fifo_ports(self, m, s, waits):
        """CMD_FIFO and RESULT_FIFO; returns overflow, underflow, and the word of the latter."""
        level, results = self.level, self.results
        write, read = s.writes["cmd_fifo"], s.reads["result_fifo"]
        waits.append(read & level.nonempty & ~results.valid)
        m.d.comb += [
            self.commands.valid.eq(s.valid & write & ~self.reset_busy),
            self.commands.payload.eq(s.data),
            results.ready.eq(s.valid & read & level.nonempty),
        ]
        overflow = write & (self.reset_busy | ~self.commands.ready)
        return overflow, read & ~level.nonempty, Mux(level.nonempty, results.payload, 0)

    def _descriptor(self, m, s, waits):
        """DESCRIPTOR_n and DOORBELL; returns whether a descriptor finds no space."""
        first = next(r for r in registers(self.ip) if r.name == "descriptor_0").address // 4
        assert first % WORDS == 0
        submit = s.writes["doorbell"] & s.data[_fields(self.ip, "doorbell")["submit"].low]
        overflow = submit & (self.desc_free == 0)
        waits.append(self.submitting)
        write = _any(s.writes[f"descriptor_{n}"] for n in range(WORDS))
        m.d.comb += [
            self.descriptor.write.eq(s.done & write),
            self.descriptor.index.eq(s.addr),
            self.descriptor.data.eq(s.data),
            self.descriptor.submit.eq(s.done & submit & ~overflow),
        ]
        return overflow

    def _interrupts(self, m, irqs, s, events):
        events |= {
            "done": self.job_done.valid,
            "failed": self.job_done.valid & (self.job_done.status != 0),
        }
        if self.ip.has_dma:
            events |= {name: self.errors[name] for name in DMA_ERRORS}
        m.d.comb += [
            *(irqs.events[f.low].eq(events[f.name]) for f in interrupts(self.ip)),
            irqs.data.eq(s.data), irqs.clear_all.eq(self.reset),
            irqs.clear.eq(s.done & s.writes["irq_status"]),
            irqs.set.eq(s.done & s.writes["irq_enable"]),
            self.irq.eq(irqs.irq),
        ]


def _any(values):
    return functools.reduce(operator.or_, values)


def _within(addr, port):
    """Whether a word address lies in a FIFO port, which is aligned to its size."""
    assert port.size & (port.size - 1) == 0 and port.address % port.size == 0
    return addr[ceil_log2(port.size // 4):] == port.address // port.size


def _below(addr, limit):
    """``addr < limit``, without a carry chain."""
    return _any(addr[bit:] == (limit >> bit) - 1 for bit in range(len(addr)) if limit >> bit & 1)


def _fields(ip, name):
    """The fields of a register, by name."""
    register = next(r for r in registers(ip) if r.name == name)
    return {field.name: field for field in register.fields}


def _word(ip, name, values):
    """The word of a register, from the values of all its fields."""
    parts, end = [], 0
    for field in _fields(ip, name).values():
        value = Value.cast(values[field.name])
        width = min(field.width, len(value))
        parts += [Const(0, field.low - end), value[:width], Const(0, field.width - width)]
        end = field.low + field.width
    return Cat(parts)
