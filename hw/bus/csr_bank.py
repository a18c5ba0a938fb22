"""The control: what each access to the register space does, after `weft.register_map`."""

import functools
import operator

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.bus.descriptor_regs import WORDS
from weft.hw.bus.fifo_ports import Level
from weft.hw.bus.interrupts import Interrupts
from weft.hw.bus.register_bus import RegisterBus
from weft.register_map import fifo_ports, interrupts, registers
from weft.registers import REGISTERS

__all__ = ["ERRORS", "CsrBank", "Ended"]

# What a DMA engine reports, by the names of the interrupts.
ERRORS = "dma_read_error", "dma_write_error", "bad_descriptor", "bad_address"
Ended = data.StructLayout({"valid": 1, "tag": 16, "status": 8})


class CsrBank(wiring.Component):
    """Takes the accesses of a register bus: an answer follows its access in the next cycle.

    Reads of the core's own registers take as long as the core does, others that have to wait a few
    cycles. Windows are written an access a cycle, and read so while words follow each other; any
    other access takes two. ``ready`` is a register. A refused access has no effect but on
    IRQ_STATUS. What addresses mean is all taken from the register map, by name.

    Parameters
    ----------
    ip : Ip

    Attributes
    ----------
    port : In, `RegisterBus`
    asks, address : Out, told, value : In
        The core's register at ``address`` is ``value`` in the cycle of ``told``.
    busy, reset_busy : In
        For STATUS.
    ended : In, `Ended`
        A job has ended.
    reset, abort : Out
        Pulses: what was written to CONTROL.
    irq : Out
    commands : Out, stream of 32 bits; room : In
    results : In, stream of 32 bits; follows, level : In
        Of an Ip with windows: as of `weft.hw.bus.fifo_ports`.
    dma_busy : In; errors : In; descriptor : Out; descriptor_word, desc_free, filing : In
        Of an Ip with DMA: as of `weft.hw.bus.descriptor_regs.DescriptorRegs`; while it is
        ``filing``, accesses wait.
    base, limit : Out
        Of an Ip with a window: its first and its last address. A soft reset leaves them.
    """

    def __init__(self, ip):
        self.ip = ip
        members = {
            "port": In(RegisterBus()),
            "asks": Out(1), "address": Out(8), "told": In(1), "value": In(32),
            "busy": In(1), "reset_busy": In(1), "ended": In(Ended),
            "reset": Out(1), "abort": Out(1), "irq": Out(1),
        }
        if ip.has_fifo_ports:
            members |= {
                "commands": Out(stream.Signature(32)), "room": In(9),
                "results": In(stream.Signature(32)), "follows": In(1), "level": In(Level),
            }
        if ip.bus == "dma":
            errors = dict.fromkeys(ERRORS, 1)
            members |= {
                "dma_busy": In(1), "errors": In(data.StructLayout(errors)),
                "descriptor": Out(data.StructLayout({
                    "write": 1, "index": ceil_log2(WORDS), "data": 32, "submit": 1,
                })),
                "descriptor_word": In(32), "desc_free": In(6), "filing": In(1),
            }
        if ip.window:
            members |= {"base": Out(32), "limit": Out(32, init=0xFFFFFFFF)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        access, answer = self.port.access, self.port.answer
        s_valid = Signal()
        s_address = Signal(10)
        s_data = Signal(32)
        waits = Signal()  # the access at work has no answer yet
        ready = Signal(init=1)  # no access is at work that may have to wait
        acts = Signal()  # in the last cycle of an access
        m.d.comb += [access.ready.eq(ready), acts.eq(s_valid & ~waits)]
        with m.If(ready):
            m.d.sync += [
                s_valid.eq(access.valid), s_address.eq(access.p.address), s_data.eq(access.p.data),
                ready.eq(~access.valid | self._quick(access.p)),
            ]
        with m.Elif(acts):
            m.d.sync += [s_valid.eq(0), ready.eq(1)]
        reads, writes = self._select(m, access)
        m.d.comb += [
            self.asks.eq(s_valid & reads["core"]), self.address.eq(s_address),
        ]
        must_wait = [reads["core"] & ~self.told]
        values = {"core": self.value, **self._status(m)}
        known = [*reads.values(), *writes.values()]
        overflow, underflow = Const(0), Const(0)
        if self.ip.has_fifo_ports:
            level, results = self.level, self.results
            overflow = writes["cmd_fifo"] & (self.reset_busy | ~self.commands.ready)
            underflow = reads["result_fifo"] & ~level.some
            must_wait.append(reads["result_fifo"] & level.some & ~results.valid)
            m.d.comb += [
                self.commands.valid.eq(s_valid & writes["cmd_fifo"] & ~self.reset_busy),
                self.commands.payload.eq(s_data),
                results.ready.eq(s_valid & reads["result_fifo"] & level.some),
            ]
            values["result_fifo"] = Mux(level.some, results.payload, 0)
        if self.ip.bus == "dma":
            overflow = self._descriptors(m, writes, acts, s_address, s_data, must_wait)
        if self.ip.window:
            for name, register in (("dma_base", self.base), ("dma_limit", self.limit)):
                with m.If(acts & writes[name]):
                    m.d.sync += register.eq(s_data)

        refused = Signal()
        m.d.comb += [
            waits.eq(_any(must_wait)),
            refused.eq(~_any(known) | overflow | underflow),
            answer.valid.eq(acts),
            answer.p.refused.eq(refused),
            answer.p.data.eq(_any(
                Mux(chosen, values[name], 0) for name, chosen in reads.items()
            )),
        ]
        pulses = acts & writes["control"]
        fields = _fields(self.ip, "control")
        m.d.comb += [
            self.reset.eq(pulses & s_data[fields["reset"].low]),
            self.abort.eq(pulses & s_data[fields["abort"].low]),
        ]
        self._interrupts(m, {
            "done": self.ended.valid, "failed": self.ended.valid & (self.ended.status != 0),
            "access_error": acts & refused,
            "overflow": acts & overflow, "underflow": acts & underflow,
            **({name: self.errors[name] for name in self.errors.shape().members}
               if self.ip.bus == "dma" else {}),
        }, acts, writes, s_data)
        return m

    def _quick(self, access):
        """Whether an access is sure to be answered in the next cycle, and another may come."""
        if not self.ip.has_fifo_ports:
            return Const(0)
        results = next(w for w in fifo_ports(self.ip) if w.name == "result_fifo")
        return access.write | (_within(access.address, results) & self.follows)

    def _select(self, m, access):
        """Registers: whether the access at work reads, or writes, what has the name."""
        core = [r for r in registers(self.ip) if r.name in REGISTERS]
        assert [r.address // 4 for r in core] == list(range(len(core)))
        spans = {"core": (_below(access.p.address, len(core)), "ro")}
        for register in registers(self.ip)[len(core):]:
            spans[register.name] = access.p.address == register.address // 4, register.access
        for window in fifo_ports(self.ip):
            spans[window.name] = _within(access.p.address, window), window.access
        reads, writes = {}, {}
        whole = access.p.write & access.p.mask.all()
        for name, (here, allowed) in spans.items():
            for way, found, kind in (("ro", reads, ~access.p.write), ("wo", writes, whole)):
                if allowed in (way, "rw"):
                    found[name] = Signal(name=f"{'reads' if way == 'ro' else 'writes'}_{name}")
                    with m.If(access.ready):
                        m.d.sync += found[name].eq(here & kind)
        return reads, writes

    def _status(self, m):
        """What registers that nothing else keeps read as, each a field at its place."""
        ended = Signal(32)
        last = Signal(Ended)
        with m.If(self.ended.valid):
            m.d.sync += [ended.eq(ended + 1), last.eq(self.ended)]
        with m.If(self.reset):
            m.d.sync += [ended.eq(0), last.eq(0)]
        m.submodules.interrupts = self.interrupts = Interrupts(
            width=max(f.low for f in interrupts(self.ip)) + 1
        )
        busy = Signal()
        m.d.sync += busy.eq(self.busy | (self.commands.valid if self.ip.has_fifo_ports else 0))
        held = {
            "status": {"busy": busy, "reset_busy": self.reset_busy},
            "irq_status": {f.name: self.interrupts.status[f.low] for f in interrupts(self.ip)},
            "irq_enable": {f.name: self.interrupts.enable[f.low] for f in interrupts(self.ip)},
            "jobs_done": {"value": ended},
            "last_job": {"tag": last.tag, "status": last.status},
        }
        if self.ip.has_fifo_ports:
            held |= {
                "cmd_fifo_free": {"value": Mux(self.reset_busy, 0, self.room)},
                "result_level": {
                    "words": self.level.words, "complete": self.level.complete,
                    "status": last.status[:2],
                },
                "result_tag": {"tag": last.tag},
            }
        if self.ip.bus == "dma":
            dma_busy = Signal()
            m.d.sync += dma_busy.eq(self.dma_busy)
            held["status"]["dma_busy"] = dma_busy
            held["desc_free"] = {"value": self.desc_free}
            held |= {f"descriptor_{n}": {"value": self.descriptor_word} for n in range(WORDS)}
        if self.ip.window:
            held |= {"dma_base": {"value": self.base}, "dma_limit": {"value": self.limit}}
        return {name: _word(self.ip, name, fields) for name, fields in held.items()}

    def _descriptors(self, m, writes, acts, s_address, s_data, must_wait):
        """The registers of a descriptor, which lie elsewhere; whether one is queued in vain."""
        first = next(r for r in registers(self.ip) if r.name == "descriptor_0").address // 4
        assert first % WORDS == 0
        go = writes["doorbell"] & s_data[_fields(self.ip, "doorbell")["submit"].low]
        vain = go & (self.desc_free == 0)
        must_wait.append(self.filing)
        m.d.comb += [
            self.descriptor.write.eq(acts & _any(writes[f"descriptor_{n}"] for n in range(WORDS))),
            self.descriptor.index.eq(s_address),
            self.descriptor.data.eq(s_data),
            self.descriptor.submit.eq(acts & go & ~vain),
        ]
        return vain

    def _interrupts(self, m, events, acts, writes, s_data):
        irqs = self.interrupts
        m.d.comb += [
            *(irqs.events[f.low].eq(events[f.name]) for f in interrupts(self.ip)),
            irqs.data.eq(s_data), irqs.forget.eq(self.reset),
            irqs.clear.eq(acts & writes["irq_status"]), irqs.set.eq(acts & writes["irq_enable"]),
            self.irq.eq(irqs.irq),
        ]


def _any(values):
    return functools.reduce(operator.or_, values)


def _within(address, window):
    """Whether the address of a word lies in a window, which lies at a multiple of its size."""
    assert window.size & (window.size - 1) == 0 and window.address % window.size == 0
    return address[ceil_log2(window.size // 4):] == window.address // window.size


def _below(address, limit):
    """Whether an address is less than that, without a carry."""
    return _any(
        address[bit:] == (limit >> bit) - 1 for bit in range(len(address)) if limit >> bit & 1
    )


def _fields(ip, name):
    register = next(r for r in registers(ip) if r.name == name)
    return {field.name: field for field in register.fields}


def _word(ip, name, values):
    """A register's word of the values of its fields, all of which must be given."""
    parts, end = [], 0
    for field in _fields(ip, name).values():
        value = Value.cast(values[field.name])
        width = min(field.width, len(value))
        parts += [Const(0, field.low - end), value[:width], Const(0, field.width - width)]
        end = field.low + field.width
    return Cat(parts)
