"""The control and status registers (CSR) of an IP core for products, behind a register bus."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.bus.fifo_ports import JobDone, Level
from weft.hw.bus.register_bank import RegisterBank, any_of
from weft.register_map import registers

__all__ = ["DMA_ERRORS", "WORDS", "CsrBank", "DescriptorRegs"]


WORDS = 16


class DescriptorRegs(wiring.Component):
    """Holds the words of the next descriptor; ``submit`` sends a copy of them in order.

    After a reset it writes 0 to all words.

    Attributes
    ----------
    write : In, 1 bit
        Writes ``data`` to word ``index``; not while ``submitting``.
    index : In, ``range(WORDS)``
    data : In, 32 bits; valid with ``write``
    word : Out, 32 bits
        Word ``index``; valid while not ``submitting``.
    submit : In, 1 bit
        Pulse: sends all words; not while ``submitting``.
    submitting : Out, 1 bit
        The words are being sent, or cleared after a reset.
    o : Out, stream of 32 bits
    """

    def __init__(self):
        super().__init__({
            "write": In(1), "index": In(range(WORDS)), "data": In(32), "word": Out(32),
            "submit": In(1), "submitting": Out(1, init=1), "o": Out(stream.Signature(32)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=32, depth=WORDS, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        clearing = Signal(init=1)
        count = Signal(range(WORDS))
        advance = self.submitting & (clearing | self.o.ready)
        m.d.comb += [
            write.en.eq(self.write | clearing),
            write.addr.eq(Mux(clearing, count, self.index)),
            write.data.eq(Mux(clearing, 0, self.data)),
            read.addr.eq(Mux(self.submitting, count, self.index)),
            self.word.eq(read.data), self.o.payload.eq(read.data),
            self.o.valid.eq(self.submitting & ~clearing),
        ]
        m.d.sync += count.eq(count + advance)
        with m.If(advance & (count == WORDS - 1)):
            m.d.sync += [self.submitting.eq(0), clearing.eq(0)]
        with m.If(self.submit):
            m.d.sync += self.submitting.eq(1)
        return m


# Errors of a DMA engine, by the names of their interrupts.
DMA_ERRORS = "dma_read_error", "dma_write_error", "bad_descriptor", "bad_address"


class CsrBank(RegisterBank):
    """The `RegisterBank` of a product core.

    Parameters
    ----------
    ip : Ip

    Attributes
    ----------
    busy : In, 1 bit
        For STATUS.
    job_done : In, `JobDone`
        A job ended, with its tag and status; ``valid`` is a pulse.
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
        As in `weft.hw.bus.csr_bank.DescriptorRegs`; only with DMA. Requests wait while
        ``submitting``.
    desc_free : In, 6 bits; only with DMA
        Number of descriptors that the queue has space for.
    dma_base, dma_limit : Out, 32 bits each; only with a window
        First and last address that the DMA may access. A soft reset does not change them.
    others
        The ports of `RegisterBank`.
    """

    def __init__(self, ip):
        members = {"busy": In(1), "job_done": In(JobDone)}
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
        super().__init__(ip, members)

    def stored(self):
        """The registers that only hold what software wrote, by name."""
        return {"dma_base": self.dma_base, "dma_limit": self.dma_limit} if self.ip.window else {}

    def values(self, m, s):
        """The values of all fields of the other registers, by register and field."""
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
        return values

    def connect_ports(self, m, s, waits):
        """FIFO ports or descriptors; returns overflow, underflow, and the words of FIFO ports."""
        if self.ip.has_dma:
            return self._descriptor(m, s, waits), Const(0), {}
        if not self.ip.has_fifo_ports:
            return Const(0), Const(0), {}
        return self.connect_fifos(m, s, waits, self.commands, self.results, self.level.nonempty)

    def _descriptor(self, m, s, waits):
        """DESCRIPTOR_n and DOORBELL; returns whether a descriptor finds no space."""
        first = next(r for r in registers(self.ip) if r.name == "descriptor_0").address // 4
        assert first % WORDS == 0
        submit = s.writes["doorbell"] & s.data[self.fields("doorbell")["submit"].low]
        overflow = submit & (self.desc_free == 0)
        waits.append(self.submitting)
        write = any_of(s.writes[f"descriptor_{n}"] for n in range(WORDS))
        m.d.comb += [
            self.descriptor.write.eq(s.done & write),
            self.descriptor.index.eq(s.addr),
            self.descriptor.data.eq(s.data),
            self.descriptor.submit.eq(s.done & submit & ~overflow),
        ]
        return overflow

    def events(self, m, s):
        """The events of IRQ_STATUS that only this kind of core has, by name."""
        events = {
            "done": self.job_done.valid,
            "failed": self.job_done.valid & (self.job_done.status != 0),
        }
        if self.ip.has_dma:
            events |= {name: self.errors[name] for name in DMA_ERRORS}
        return events
