"""What the registers of an IP core do, access by access, after the register map."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal

from weft.register_map import fifo_ports, interrupts, registers
from weft.sim.formal.rules import Rules

__all__ = ["RegisterRules"]

TOLD = 3  # cycles that the core, a window or a descriptor take at most: cut short, for the proof


class RegisterRules(Rules):
    """`weft.hw.bus.csr_bank.CsrBank`, held against a model that is told what it is told.

    The model is of what can be seen: of IRQ_STATUS and IRQ_ENABLE, of what was counted, and of
    what an access does at the moment at which it is answered.

    Parameters
    ----------
    ip : Ip
    """

    PINS = {
        "bus_request_valid": 1, "bus_request_ready": 1, "bus_request_payload_addr": 10,
        "bus_request_payload_write": 1, "bus_request_payload_mask": 4,
        "bus_request_payload_data": 32, "bus_response_valid": 1, "bus_response_payload_data": 32,
        "bus_response_payload_error": 1,
        "reg_req": 1, "reg_address": 8, "reg_ack": 1, "reg_data": 32,
        "busy": 1, "reset_busy": 1, "job_done_valid": 1, "job_done_tag": 16, "job_done_status": 8,
        "reset": 1, "abort": 1, "irq": 1,
    }
    WINDOWS = {
        "commands_valid": 1, "commands_ready": 1, "commands_payload": 32,
        "results_valid": 1, "results_ready": 1, "results_payload": 32, "level_nonempty": 1,
        "next_valid": 1,
    }
    DMA = {
        "errors_dma_read_error": 1, "errors_dma_write_error": 1, "errors_bad_descriptor": 1,
        "errors_bad_address": 1,
        "descriptor_write": 1, "descriptor_index": 4, "descriptor_data": 32,
        "descriptor_submit": 1, "desc_free": 6, "submitting": 1,
    }
    RULES = {
        "answered_once": "an answer comes for each access, once, after it",
        "answered_soon": "an access is answered in bounded time",
        "refused_right": "what the register map does not allow is refused, and nothing else",
        "reset_right": "a soft reset begins with what is written to CONTROL, and never else",
        "abort_right": "an abort is given with what is written to CONTROL, and never else",
        "enable_right": "IRQ_ENABLE reads as what was last written there, and not refused",
        "status_right": "IRQ_STATUS has all that happened since it was cleared, and nothing else",
        "irq_right": "irq is high, a cycle late, while something has happened that is enabled",
        "ended_right": "JOBS_DONE is how many jobs have ended since a reset",
        "last_right": "LAST_JOB is the tag and the status of the latest of them",
    }
    COVERS = {
        "refused": "an access is refused", "write": "a write is not", "read": "a read is not",
        "irq": "irq rises", "kept": "what happens as it is cleared is kept",
        "reset": "a soft reset begins",
    }

    def __init__(self, ip):
        self.ip = ip
        self.PINS = {
            **self.PINS, **(self.WINDOWS if ip.has_fifo_ports else {}),
            **(self.DMA if ip.bus == "dma" else {}),
        }
        if ip.has_fifo_ports:
            self.RULES = self.RULES | {
                "command_right": "a word goes to the command stream as written, or is refused",
                "result_right": "a word read is the next of the results, or the read is refused",
            }
        if ip.bus == "dma":
            self.RULES = self.RULES | {
                "descriptor_right": "a descriptor's word is written, or queued, as it is asked for",
            }
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        self._access(m)
        self._promises(m)
        overflow, underflow = self._ways(m)
        refused = ~self._allowed() | overflow | underflow
        done = self.bus_response_valid
        wrote = done & self.a_write & ~self.bus_response_payload_error
        self.must(m, "refused_right", ~done | (self.bus_response_payload_error == refused))
        control = wrote & (self.a_addr == self._place("control"))
        self.must(m, "reset_right", self.reset == (control & self.a_data[0]))
        self.must(m, "abort_right", self.abort == (control & self.a_data[1]))
        happened = {
            "done": self.job_done_valid,
            "failed": self.job_done_valid & (self.job_done_status != 0),
            "access_error": done & refused,
            "overflow": done & overflow, "underflow": done & underflow,
        }
        if self.ip.bus == "dma":
            happened |= {
                name: getattr(self, f"errors_{name}")
                for name in ("dma_read_error", "dma_write_error", "bad_descriptor", "bad_address")
            }
        self._interrupts(m, happened, wrote)
        self._counts(m)
        self.happens(m, "refused", done & self.bus_response_payload_error)
        self.happens(m, "write", wrote)
        self.happens(m, "read", done & ~self.a_write & ~self.bus_response_payload_error)
        self.happens(m, "reset", self.reset)
        return m

    def _access(self, m):
        """The access at work: ``there`` from the cycle after it was taken to its answer."""
        access = "bus_request_payload_"
        self.there, self.a_addr, self.a_write = Signal(), Signal(10), Signal()
        self.a_mask, self.a_data = Signal(4), Signal(32)
        took = self.bus_request_valid & self.bus_request_ready
        with m.If(took):
            m.d.sync += [
                getattr(self, f"a_{name}").eq(getattr(self, access + name))
                for name in ("addr", "write", "mask", "data")
            ]
        m.d.sync += self.there.eq(took | (self.there & ~self.bus_response_valid))
        once = ~self.bus_response_valid | self.there
        self.must(m, "answered_once", once & ~(took & self.there & ~self.bus_response_valid))
        self.bounded(m, "answered_soon", self.there & ~self.bus_response_valid, 3 * TOLD)

    def _promises(self, m):
        """What answers a question does so soon, and no other."""
        waits = {"reg_ack": self.reg_req & ~self.reg_ack}
        self.promised(m, ~self.reg_ack | self.reg_req)
        if self.ip.has_fifo_ports:
            waits["results"] = self.level_nonempty & ~self.results_valid
            self.promised(m, ~self.past(m, self.next_valid) | self.results_valid)
        if self.ip.bus == "dma":  # a descriptor is filed after it was queued, and not for long
            since = Signal(range(TOLD + 1), init=TOLD)
            m.d.sync += since.eq(Mux(self.descriptor_submit, 0, since + (since != TOLD)))
            self.promised(m, ~(self.submitting & (since == TOLD)))
        for name, waiting in waits.items():
            late = Signal(range(TOLD + 1), name=f"{name}_late")
            m.d.sync += late.eq(Mux(waiting, late + 1, 0))
            self.promised(m, ~(waiting & (late == TOLD)))

    def _place(self, name):
        return next(r.address // 4 for r in registers(self.ip) if r.name == name)

    def _reads(self, name):
        """Whether the access that is answered reads a register."""
        return self.bus_response_valid & ~self.a_write & (self.a_addr == self._place(name))

    def _allowed(self):
        """Whether the map allows the access: to a place, in a way, of a whole word."""
        whole = self.a_write & (self.a_mask == 0b1111)
        allowed = Const(0)
        spans = [(r.address, 4, r.access) for r in registers(self.ip)]
        spans += [(w.address, w.size, w.access) for w in fifo_ports(self.ip)]
        for address, size, access in spans:
            first, end = address // 4, (address + size) // 4
            here = (self.a_addr >= first) & (self.a_addr < end)
            if "r" in access:
                allowed |= here & ~self.a_write
            if "w" in access:
                allowed |= here & whole
        return allowed

    def _ways(self, m):
        """What goes on to elsewhere, or is refused for want of room, or of a word."""
        done, none = self.bus_response_valid, Const(0)
        whole = self.a_write & (self.a_mask == 0b1111)
        if self.ip.has_fifo_ports:
            commands, results = (
                (self.a_addr >= w.address // 4) & (self.a_addr < (w.address + w.size) // 4)
                for w in fifo_ports(self.ip)
            )
            overflow = commands & whole & (self.reset_busy | ~self.commands_ready)
            underflow = results & ~self.a_write & ~self.level_nonempty
            goes = done & commands & whole & ~overflow
            comes = done & results & ~self.a_write & ~underflow
            self.must(m, "command_right", ((self.commands_valid & self.commands_ready) == goes)
                      & (~goes | (self.commands_payload == self.a_data)))
            self.must(m, "result_right", ((self.results_valid & self.results_ready) == comes)
                      & (~comes | (self.bus_response_payload_data == self.results_payload)))
            return overflow, underflow
        if self.ip.bus != "dma":
            return none, none
        first = self._place("descriptor_0")
        word = (self.a_addr >= first) & (self.a_addr < first + 16)
        submit = whole & (self.a_addr == self._place("doorbell")) & self.a_data[0]
        overflow = submit & (self.desc_free == 0)
        writes = done & word & whole
        self.must(m, "descriptor_right", (self.descriptor_submit == (done & submit & ~overflow))
                  & (self.descriptor_write == writes) & (~writes | (
                      (self.descriptor_index == self.a_addr[:4])
                      & (self.descriptor_data == self.a_data)
                  )))
        return overflow, none

    def _interrupts(self, m, happened, wrote):
        fields = interrupts(self.ip)
        status, enable = Signal(len(fields)), Signal(len(fields))
        written = Cat(self.a_data[f.low] for f in fields)
        events = Cat(happened[f.name] for f in fields)
        clears = wrote & (self.a_addr == self._place("irq_status"))
        sets = wrote & (self.a_addr == self._place("irq_enable"))
        cleared = Mux(clears, written, 0)
        m.d.sync += status.eq(Mux(self.reset, 0, (status & ~cleared) | events))
        with m.If(sets):
            m.d.sync += enable.eq(written)
        answer = self.bus_response_payload_data
        for rule, name, model in (
            ("enable_right", "irq_enable", enable), ("status_right", "irq_status", status),
        ):
            there = Cat(answer[f.low] for f in fields)
            rest = Cat(answer[n] for n in range(32) if n not in {f.low for f in fields})
            self.must(m, rule, ~self._reads(name) | ((there == model) & ~rest.any()))
        self.must(m, "irq_right", self.irq == self.past(m, (status & enable).any()))
        self.happens(m, "irq", self.irq)
        self.happens(m, "kept", (cleared & events & status).any())

    def _counts(self, m):
        ended, last = Signal(32), Signal(24)
        with m.If(self.job_done_valid):
            m.d.sync += [ended.eq(ended + 1), last.eq(Cat(self.job_done_tag, self.job_done_status))]
        with m.If(self.reset):
            m.d.sync += [ended.eq(0), last.eq(0)]
        answer = self.bus_response_payload_data
        self.must(m, "ended_right", ~self._reads("jobs_done") | (answer == ended))
        self.must(m, "last_right", ~self._reads("last_job") | (answer == last))
