"""A word behind the program memory, by which the host moves the clock of an SDRAM."""

from dataclasses import replace

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from weft.hw.dma.axi import Axi4, AxiResponse
from weft.sdram import SdramPhase

__all__ = ["PhaseRegister", "connect_controller"]

# Cycles of the pulse of a step, and of the pause after it: an EHXPLLL wants 5 ns of each.
_PULSE = 4
_OPEN = 8  # bits that count open bursts: no master has 255 of them


def connect_controller(m, config, memory, controller, first: SdramPhase):
    """Connect the port ``memory`` of an accelerator to an SDRAM controller; the `PhaseRegister`.

    ``config`` is that of the accelerator: the register lies behind its program memory.
    """
    m.submodules.phase = register = PhaseRegister(
        data_bytes=controller.data_bytes, place=SdramPhase.place(config.program_bytes), first=first
    )
    connect(m, memory, register.master)
    connect(m, register.memory, controller.axi)
    m.d.comb += controller.again.eq(register.moved)
    return register


class PhaseRegister(wiring.Component):
    """Passes bursts on to a memory, but for those of one half of the addresses.

    The address bit ``place`` is 0 for the memory. In the other half each 32 bits of a beat that is
    read are an `SdramPhase`. A write there makes the clock of the chip a step later, whatever its
    data are. It is answered after the step.

    A burst of the register waits until those of the memory are answered, and holds up those behind
    it. The memory takes no data of a write before its address.

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat: 4 or more.
    place : int
    first : `SdramPhase`
        At the start.

    Attributes
    ----------
    master, memory : In, Out, `Axi4`
    step : Out, 1 bit
        Its falling edge makes the clock a step later.
    moved : Out, 1 bit
        Pulse: the chip must be set up again.
    phase : Out
        `SdramPhase.phase`.
    """

    def __init__(self, *, data_bytes, place, first):
        self.place = place
        self.first = first
        axi = Axi4(data_bytes=data_bytes)
        super().__init__({
            "master": In(axi), "memory": Out(axi), "step": Out(1), "moved": Out(1),
            "phase": Out(range(first.steps), init=first.phase),
        })

    def elaborate(self, platform):
        m = Module()
        master, memory = self.master, self.memory
        passes = Signal()  # bursts of the memory go on
        ends = {
            "aw": memory.b.valid & memory.b.ready,
            "ar": memory.r.valid & memory.r.ready & memory.r.payload.last,
        }
        asked = {name: self._addresses(m, name, passes, end) for name, end in ends.items()}
        waits = {name: ours for name, (ours, _) in asked.items()}
        idle = ~(asked["aw"][1] | asked["ar"][1])
        reading, left = Signal(), Signal(8)  # the register is read; beats after this one
        word = Signal(32)
        beat = word.replicate(len(master.r.payload.data) // 32)
        m.d.comb += [
            word.eq(replace(self.first, phase=0).word | self.phase),
            memory.w.payload.eq(master.w.payload),
            master.r.payload.data.eq(Mux(reading, beat, memory.r.payload.data)),
            master.r.payload.resp.eq(Mux(reading, AxiResponse.OKAY, memory.r.payload.resp)),
            master.r.payload.last.eq(Mux(reading, left == 0, memory.r.payload.last)),
            master.b.payload.eq(memory.b.payload),
            # In every state: the memory has no answer while the register does, and a state before
            # these two would lie on the longest path, from the master's FIFO to the memory's.
            memory.r.ready.eq(master.r.ready),
            memory.b.ready.eq(master.b.ready),
        ]
        m.d.sync += self.moved.eq(0)
        with m.FSM():
            with m.State("MEMORY"):
                m.d.comb += passes.eq(1)
                self._connect(m)
                with m.If(waits["aw"] | waits["ar"]):
                    m.next = "DRAIN"
            with m.State("DRAIN"):
                self._connect(m)
                m.d.sync += left.eq(master.ar.payload.len)
                with m.If(idle & waits["aw"]):
                    m.d.comb += master.aw.ready.eq(1)
                    m.next = "DATA"
                with m.Elif(idle):
                    m.d.comb += master.ar.ready.eq(1)
                    m.d.sync += reading.eq(1)
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += master.r.valid.eq(1)
                with m.If(master.r.ready):
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 0):
                        m.d.sync += reading.eq(0)
                        m.next = "MEMORY"
            with m.State("DATA"):
                m.d.comb += master.w.ready.eq(1)
                with m.If(master.w.valid & master.w.payload.last):
                    m.next = "STEP"
            with m.State("STEP"):
                self._step(m)
            with m.State("ANSWER"):
                m.d.comb += [
                    master.b.valid.eq(1), master.b.payload.resp.eq(AxiResponse.OKAY),
                ]
                with m.If(master.b.ready):
                    m.next = "MEMORY"
        return m

    def _addresses(self, m, name, passes, answered):
        """Pass bursts of the memory on; whether one of the register waits, and whether any is open.
        """
        given, sent = getattr(self.master, name), getattr(self.memory, name)
        mine, open_ = given.payload.addr[self.place], Signal(_OPEN, name=f"{name}_open")
        m.d.comb += [
            sent.payload.eq(given.payload), sent.valid.eq(given.valid & passes & ~mine),
        ]
        with m.If(passes & ~mine):
            m.d.comb += given.ready.eq(sent.ready)
        m.d.sync += open_.eq(open_ + (sent.valid & sent.ready) - answered)
        return given.valid & mine, open_.any()

    def _connect(self, m):
        """Connect the channels without addresses."""
        master, memory = self.master, self.memory
        m.d.comb += [
            memory.w.valid.eq(master.w.valid), master.w.ready.eq(memory.w.ready),
            master.b.valid.eq(memory.b.valid), master.r.valid.eq(memory.r.valid),
        ]

    def _step(self, m):
        """The state that makes a step."""
        time, last = Signal(range(2 * _PULSE)), self.first.steps - 1
        m.d.sync += [time.eq(time + 1), self.step.eq(time < _PULSE)]
        with m.If(time == 2 * _PULSE - 1):
            m.d.sync += [
                time.eq(0), self.moved.eq(1),
                self.phase.eq(Mux(self.phase == last, 0, self.phase + 1)),
            ]
            m.next = "ANSWER"
