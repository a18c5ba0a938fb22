"""The rules of the registers of an IP core: each access against the register map."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal

from verif.formal.rules import Rules
from weft.register_map import fifo_ports, interrupts, registers

__all__ = ["MAX_WAIT", "BankRules", "RegisterRules"]

# Cycles for which the core, a FIFO or a descriptor may delay a request: short, for the proof.
MAX_WAIT = 3


class BankRules(Rules):
    """The rules of a `weft.hw.bus.register_bank.RegisterBank`.

    The model has IRQ_STATUS and IRQ_ENABLE, and the effect of each request in the cycle of its
    response. Subclasses define `effects`, `events`, `waits` and `check_state`.

    Parameters
    ----------
    ip : Ip or NetworkIp
    """

    PINS = {
        "bus_request_valid": 1, "bus_request_ready": 1, "bus_request_payload_addr": 10,
        "bus_request_payload_aligned": 1,
        "bus_request_payload_write": 1, "bus_request_payload_mask": 4,
        "bus_request_payload_data": 32, "bus_response_valid": 1, "bus_response_payload_data": 32,
        "bus_response_payload_error": 1,
        "reg_req": 1, "reg_address": 8, "reg_ack": 1, "reg_data": 32,
        "reset_busy": 1, "reset": 1, "abort": 1, "irq": 1,
    }
    RULES = {
        "answered_once": "each request has one response, in a later cycle",
        "answered_soon": "an access is answered in bounded time",
        "error": "an access is an error exactly if the register map does not allow it",
        "reset": "a soft reset starts exactly with a write to CONTROL that asks for it",
        "abort": "an abort starts exactly with a write to CONTROL that asks for it",
        "irq_enable": "IRQ_ENABLE reads as the last word written to it",
        "irq_status": "IRQ_STATUS has exactly the events since it was cleared",
        "irq": "irq is high, a cycle late, exactly while an enabled bit of IRQ_STATUS is set",
    }
    FIFO_RULES = {
        "command": "a word goes to the command stream as written, or the write is an error",
        "result": "a word read is the next of the results, or the read is an error",
    }
    COVERS = {
        "error_response": "an access is answered by an error",
        "write": "a write is answered without an error",
        "read": "a read is answered without an error",
        "irq_rises": "irq rises", "kept": "an event in the cycle of its clear is kept",
        "reset_starts": "a soft reset starts",
    }

    def __init__(self, ip):
        self.ip = ip
        super().__init__()
        # The request in the bank.
        self.pending = Signal()
        self.addr, self.aligned, self.write = Signal(10), Signal(), Signal()
        self.mask, self.data = Signal(4), Signal(32)

    def elaborate(self, platform):
        m = Module()
        self._request(m)
        self._assume_responders(m)
        done, said_error = self.bus_response_valid, self.bus_response_payload_error
        overflow, underflow = self.effects(m)
        error = ~self._allowed() | overflow | underflow
        written = done & self.write & ~said_error
        self.check(m, "error", ~done | (said_error == error))
        control = written & (self.addr == self.addr_of("control"))
        self.check(m, "reset", self.reset == (control & self.data[0]))
        self.check(m, "abort", self.abort == (control & self.data[1]))
        self.check_state(m, written)
        self._interrupts(m, {
            "access_error": done & error,
            "overflow": done & overflow, "underflow": done & underflow, **self.events(),
        }, written)
        self.cover(m, "error_response", done & said_error)
        self.cover(m, "write", written)
        self.cover(m, "read", done & ~self.write & ~said_error)
        self.cover(m, "reset_starts", self.reset)
        return m

    def effects(self, m):
        """Checks what accesses of data do; returns overflow and underflow."""
        raise NotImplementedError

    def events(self):
        """The events of IRQ_STATUS that only this kind of core has, by name."""
        raise NotImplementedError

    def waits(self, m):
        """Conditions in which a request waits for something that answers soon, by name."""
        raise NotImplementedError

    def check_state(self, m, written):
        """Checks the state that only this kind of core has; ``written``: a write is done."""
        raise NotImplementedError

    def fifos(self, m, to_write, was_read, nonempty, expected=1):
        """Checks the FIFO ports; both are (valid, ready, payload). Returns overflow, underflow.

        ``expected`` says whether a written word is for anybody.
        """
        done = self.bus_response_valid
        whole_word = self.write & (self.mask == 0b1111)
        write_port, read_port = (
            self.aligned & (self.addr >= p.address // 4) & (self.addr < (p.address + p.size) // 4)
            for p in fifo_ports(self.ip)
        )
        overflow = write_port & whole_word & (self.reset_busy | ~(to_write[1] & expected))
        underflow = read_port & ~self.write & ~nonempty
        push = done & write_port & whole_word & ~overflow
        pop = done & read_port & ~self.write & ~underflow
        self.check(m, "command", ((to_write[0] & to_write[1]) == push)
                   & (~push | (to_write[2] == self.data)))
        self.check(m, "result", ((was_read[0] & was_read[1]) == pop)
                   & (~pop | (self.bus_response_payload_data == was_read[2])))
        return overflow, underflow

    def _request(self, m):
        """Captures the request; ``pending`` from the cycle after it to its response."""
        fire, done = self.bus_request_valid & self.bus_request_ready, self.bus_response_valid
        with m.If(fire):
            m.d.sync += [
                getattr(self, name).eq(getattr(self, f"bus_request_payload_{name}"))
                for name in ("addr", "aligned", "write", "mask", "data")
            ]
        m.d.sync += self.pending.eq(fire | (self.pending & ~done))
        once = ~done | self.pending
        self.check(m, "answered_once", once & ~(fire & self.pending & ~done))
        self.check_bound(m, "answered_soon", self.pending & ~done, 3 * MAX_WAIT)

    def _assume_responders(self, m):
        """The core and other parts answer soon, and only if asked."""
        self.assume(m, ~self.reg_ack | self.reg_req)
        for name, wait in {"reg_ack": self.reg_req & ~self.reg_ack, **self.waits(m)}.items():
            waited = Signal(range(MAX_WAIT + 1), name=f"{name}_waited")
            m.d.sync += waited.eq(Mux(wait, waited + 1, 0))
            self.assume(m, ~(wait & (waited == MAX_WAIT)))

    def addr_of(self, name):
        """The word address of a register."""
        return next(r.address // 4 for r in registers(self.ip) if r.name == name)

    def reads(self, name):
        """Whether the response belongs to a read of a register."""
        hit = self.aligned & (self.addr == self.addr_of(name))
        return self.bus_response_valid & ~self.write & hit

    def _allowed(self):
        """Whether the register map allows the access; a write must be of a whole, aligned word."""
        whole_word = self.write & (self.mask == 0b1111)
        allowed = Const(0)
        spans = [(r.address, 4, r.access) for r in registers(self.ip)]
        spans += [(port.address, port.size, port.access) for port in fifo_ports(self.ip)]
        for address, size, access in spans:
            first, end = address // 4, (address + size) // 4
            hit = self.aligned & (self.addr >= first) & (self.addr < end)
            if "r" in access:
                allowed |= hit & ~self.write
            if "w" in access:
                allowed |= hit & whole_word
        return allowed

    def _interrupts(self, m, events, written):
        fields = interrupts(self.ip)
        status, enable = Signal(len(fields)), Signal(len(fields))
        word = Cat(self.data[f.low] for f in fields)
        event_bits = Cat(events[f.name] for f in fields)
        clear = written & (self.addr == self.addr_of("irq_status"))
        cleared = Mux(clear, word, 0)
        m.d.sync += status.eq(Mux(self.reset, 0, (status & ~cleared) | event_bits))
        with m.If(written & (self.addr == self.addr_of("irq_enable"))):
            m.d.sync += enable.eq(word)
        response = self.bus_response_payload_data
        for name, model in (("irq_enable", enable), ("irq_status", status)):
            bits = Cat(response[f.low] for f in fields)
            others = Cat(response[n] for n in range(32) if n not in {f.low for f in fields})
            self.check(m, name, ~self.reads(name) | ((bits == model) & ~others.any()))
        self.check(m, "irq", self.irq == self.past(m, (status & enable).any()))
        self.cover(m, "irq_rises", self.irq)
        self.cover(m, "kept", (cleared & event_bits & status).any())


class RegisterRules(BankRules):
    """`weft.hw.bus.csr_bank.CsrBank` agrees with a model that has the same inputs.

    The model has JOBS_DONE and LAST_JOB too.

    Parameters
    ----------
    ip : Ip
    """

    FIFO_PINS = {
        "commands_valid": 1, "commands_ready": 1, "commands_payload": 32,
        "results_valid": 1, "results_ready": 1, "results_payload": 32, "level_nonempty": 1,
        "next_valid": 1,
    }
    DMA_PINS = {
        "errors_dma_read_error": 1, "errors_dma_write_error": 1, "errors_bad_descriptor": 1,
        "errors_bad_address": 1,
        "descriptor_write": 1, "descriptor_index": 4, "descriptor_data": 32,
        "descriptor_submit": 1, "desc_free": 6, "submitting": 1,
    }
    RULES = BankRules.RULES | {
        "jobs_done": "JOBS_DONE is the number of jobs that ended since a reset",
        "last_job": "LAST_JOB has the tag and the status of the job that ended last",
    }

    def __init__(self, ip):
        self.PINS = {
            **self.PINS, "busy": 1,
            "job_done_valid": 1, "job_done_tag": 16, "job_done_status": 8,
            **(self.FIFO_PINS if ip.has_fifo_ports else {}),
            **(self.DMA_PINS if ip.has_dma else {}),
        }
        if ip.has_fifo_ports:
            self.RULES = self.RULES | self.FIFO_RULES
        if ip.has_dma:
            self.RULES = self.RULES | {
                "descriptor":
                    "a word of a descriptor is written, or the descriptor submitted, as asked",
            }
        super().__init__(ip)

    def events(self):
        """The events of IRQ_STATUS that only this kind of core has, by name."""
        events = {
            "done": self.job_done_valid,
            "failed": self.job_done_valid & (self.job_done_status != 0),
        }
        if self.ip.has_dma:
            events |= {
                name: getattr(self, f"errors_{name}")
                for name in ("dma_read_error", "dma_write_error", "bad_descriptor", "bad_address")
            }
        return events

    def waits(self, m):
        """FIFOs and descriptor registers answer soon."""
        waits = {}
        if self.ip.has_fifo_ports:
            waits["results"] = self.level_nonempty & ~self.results_valid
            self.assume(m, ~self.past(m, self.next_valid) | self.results_valid)
        if self.ip.has_dma:  # `submitting` only for some cycles after `descriptor_submit`
            since = Signal(range(MAX_WAIT + 1), init=MAX_WAIT)
            m.d.sync += since.eq(Mux(self.descriptor_submit, 0, since + (since != MAX_WAIT)))
            self.assume(m, ~(self.submitting & (since == MAX_WAIT)))
        return waits

    def effects(self, m):
        """Checks the FIFO ports and the descriptor; returns overflow and underflow."""
        none = Const(0)
        if self.ip.has_fifo_ports:
            return self.fifos(
                m, (self.commands_valid, self.commands_ready, self.commands_payload),
                (self.results_valid, self.results_ready, self.results_payload),
                self.level_nonempty,
            )
        if not self.ip.has_dma:
            return none, none
        done = self.bus_response_valid
        whole_word = self.write & (self.mask == 0b1111)
        first = self.addr_of("descriptor_0")
        whole_word &= self.aligned
        word = (self.addr >= first) & (self.addr < first + 16)
        submit = whole_word & (self.addr == self.addr_of("doorbell")) & self.data[0]
        overflow = submit & (self.desc_free == 0)
        write = done & word & whole_word
        self.check(m, "descriptor", (self.descriptor_submit == (done & submit & ~overflow))
                   & (self.descriptor_write == write) & (~write | (
                       (self.descriptor_index == self.addr[:4])
                       & (self.descriptor_data == self.data)
                   )))
        return overflow, none

    def check_state(self, m, written):
        """Checks JOBS_DONE and LAST_JOB."""
        jobs_done, last_job = Signal(32), Signal(24)
        with m.If(self.job_done_valid):
            m.d.sync += [
                jobs_done.eq(jobs_done + 1),
                last_job.eq(Cat(self.job_done_tag, self.job_done_status)),
            ]
        with m.If(self.reset):
            m.d.sync += [jobs_done.eq(0), last_job.eq(0)]
        for name, model in (("jobs_done", jobs_done), ("last_job", last_job)):
            self.check(m, name, ~self.reads(name) | (self.bus_response_payload_data == model))
