"""`MicroSequencer`: reads the instructions of a token once for each token, takes and emits tokens.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.language_core.control import Prompt
from weft.hw.language_core.micro.layouts import fields_of
from weft.language_core.config import GROUPS_OF_WORD
from weft.language_core.descriptors import CoreError
from weft.language_core.latencies import COIN_BITS
from weft.language_core.microcode import (
    INSTRUCTION_BITS,
    KIND_BITS,
    ROW_GROUPS,
    By,
    End,
    Load,
    Opcode,
)

__all__ = ["GROUP_BITS", "MicroSequencer"]

GROUP_BITS = 14  # of the address of a group


class MicroSequencer(wiring.Component):
    """Executes the instructions of a token for each position, from ``first_position`` on, below
    ``limit``: an instruction a cycle.

    What a token is, and where it ends, is as of `weft.hw.language_core.control.PassControl`. After
    an abort it executes no further instruction, and stops when no result is on its way.

    Attributes
    ----------
    start, list, first_position, limit, stop_token, run_abort, busy, error, position, cycles
        As of `PassControl`; ``list`` is a word of 16 groups. The error `CoreError.KIND` tells an
        unknown instruction.
    prompt : In, stream of `Prompt`
    tokens : Out, stream of 16 bits
    group : Out, 14 bits
        Group of the main memory to read.
    read_data : In, 64 bits
        A cycle later.
    valid : Out, 1 bit
        ``read_data`` is an instruction.
    loaded : Out, 1 bit
        ``read_data`` is a group that a `Load` reads.
    best : In, 9 bits
        The next token, at the end.
    """

    def __init__(self):
        super().__init__({
            "start": In(1), "list": In(12), "first_position": In(12), "limit": In(12),
            "stop_token": In(16), "run_abort": In(1),
            "busy": Out(1), "error": Out(CoreError), "position": Out(12), "cycles": Out(32),
            "prompt": In(stream.Signature(Prompt)), "tokens": Out(stream.Signature(16)),
            "group": Out(GROUP_BITS), "read_data": In(INSTRUCTION_BITS), "valid": Out(1),
            "loaded": Out(1), "best": In(9),
        })

    def elaborate(self, platform):
        m = Module()
        aborted, more_prompt = Signal(), Signal()
        token, elapsed = Signal(16), Signal(32)
        kind = self.read_data[:KIND_BITS]
        following = Signal(GROUP_BITS)
        loads, ends, wrong = (Signal(name=name) for name in ("loads", "ends", "wrong"))
        load, end = (fields_of(each, self.read_data) for each in (Load, End))
        row = Mux(load.by == By.TOKEN, token, self.position) * ROW_GROUPS
        m.d.comb += [
            loads.eq(self.valid & (kind == Opcode.LOAD)),
            ends.eq(self.valid & (kind == Opcode.END) & (more_prompt | ~end.within_prompt)),
            wrong.eq(self.valid & ((kind == 0) | (kind > Opcode.END))),
            self.group.eq(Mux(loads, load.group + row, following)),
        ]
        m.d.sync += [
            aborted.eq((aborted | self.run_abort) & self.busy), elapsed.eq(elapsed + 1),
            self.valid.eq(0), self.loaded.eq(loads),
        ]
        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                with m.If(self.start):
                    m.d.sync += [
                        self.position.eq(self.first_position), more_prompt.eq(1),
                        self.error.eq(CoreError.NONE),
                    ]
                    m.next = "TOKEN"
            with m.State("TOKEN"):
                m.d.comb += self.prompt.ready.eq(more_prompt & ~aborted)
                m.d.sync += [following.eq(self.list * GROUPS_OF_WORD), elapsed.eq(0)]
                with m.If(aborted):
                    self._stop(m, CoreError.ABORTED)
                with m.Elif(~more_prompt):
                    m.next = "RUN"
                with m.Elif(self.prompt.valid):
                    m.d.sync += [
                        token.eq(self.prompt.payload.token),
                        more_prompt.eq(~self.prompt.payload.last),
                    ]
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.sync += self.valid.eq(~loads & ~ends)
                with m.If(~loads):
                    m.d.sync += following.eq(following + 1)
                with m.If(aborted | wrong):
                    m.d.sync += [
                        self.valid.eq(0), elapsed.eq(0),
                        self.error.eq(Mux(aborted, CoreError.ABORTED, CoreError.KIND)),
                    ]
                    m.next = "DRAIN"
                with m.Elif(ends):
                    m.next = "END"
            with m.State("DRAIN"):  # a result, or the coin, may be on its way
                with m.If(elapsed == COIN_BITS):
                    m.next = "IDLE"
            with m.State("END"):
                m.d.sync += [elapsed.eq(elapsed), self.cycles.eq(elapsed)]
                self._end(m, token, more_prompt, aborted)
        return m

    def _stop(self, m, error):
        m.d.sync += self.error.eq(error)
        m.next = "IDLE"

    def _end(self, m, token, more_prompt, aborted):
        """Emit the token, and go on with the next position."""
        m.d.comb += [
            self.tokens.valid.eq(~more_prompt & ~aborted), self.tokens.payload.eq(self.best),
        ]
        following = (self.position + 1)[:12]
        with m.If(aborted):
            self._stop(m, CoreError.ABORTED)
        with m.Elif(more_prompt | self.tokens.ready):
            m.d.sync += self.position.eq(following)
            m.next = "TOKEN"
            with m.If(~more_prompt):
                m.d.sync += token.eq(self.best)
            stopped = ~more_prompt & (self.best == self.stop_token)
            with m.If((following == self.limit) | stopped):
                m.next = "IDLE"
