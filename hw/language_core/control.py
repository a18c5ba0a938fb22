"""`PassControl`: reads the list of passes once for each token, and takes and emits tokens."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline
from weft.hw.language_core.layouts import PassFields
from weft.language_core.descriptors import (
    LEVELS,
    Blocks,
    CoreError,
    Kind,
    OutPlace,
    ParameterPlace,
    Transfer,
)
from weft.language_core.latencies import (
    DECODED,
    FOLLOW,
    GROUP_OF_PRODUCT,
    LANES_OUT,
    PORT_B,
    REDUCED,
)

__all__ = ["PassControl", "Prompt"]

# Passes whose results are not all stored, at most: they start DECODED cycles apart or more, and the
# last result of a pass is stored so many cycles after its last step.
_OPEN = -(-(GROUP_OF_PRODUCT + LANES_OUT + REDUCED) // DECODED) + 1


class Prompt(data.Struct):
    """A token of a prompt."""

    token: 16
    last: 1


class PassControl(wiring.Component):
    """Executes a list of passes for each position, from ``first_position`` on, below ``limit``.

    The token of a position is the next one of the prompt, until its last one. Then it is the token
    that the position before has emitted. The passes of a position end before the first emitting
    pass while more of the prompt follows. It stops after the token ``stop_token``, and at
    ``limit``.

    A pass starts two cycles after the end of the one before: the descriptor comes meanwhile. With
    `Pass.follow` it starts so many cycles after the last step of the one before, whose results are
    still on their way. An abort waits for all of them.

    Parameters
    ----------
    transfers : bool
        The core has a program memory.
    int4 : bool
        The core unpacks weights.

    Attributes
    ----------
    start : In, 1 bit
        Pulse, while ``busy`` is 0. It needs a prompt of at least one token.
    list : In, 12 bits
        Word of the first descriptor.
    first_position, limit : In, 12 bits
    stop_token : In, 16 bits
    run_abort : In, 1 bit
        Pulse: the core stops after the pass that runs, with `CoreError.ABORTED`.
    busy : Out, 1 bit
    error : Out, `CoreError`
        From the end to the next start.
    position : Out, 12 bits
    token : Out, 16 bits
        Of the position.
    cycles : Out, 32 bits
        Of the passes of the latest position, without the waits for the prompt and the host.
    prompt : In, stream of `Prompt`
    tokens : Out, stream of 16 bits
    fetch, fetch_word : Out, 1 bit, 12 bits
        The main memory reads a descriptor.
    descriptor : In, `PassFields`
        PORT_B cycles later.
    job : Out, `PassFields`
        From ``pass_start`` to the one of the next pass.
    further : Out, 12 bits for each loop
        Its iterations less 1, at this position.
    parameter, out : Out, 16 bits, 12 bits
        First group of parameters and of results, at this position and of this token.
    pass_start : Out, 1 bit
        Pulse.
    steps_start : Out, 1 bit
        The same of a pass that has steps; a register, because so many others wait for it.
    steps_done : In, 1 bit
        Pulse: the last step of a pass that has steps.
    ends : In, 2 bits
        Number of passes that end in this cycle: their results are stored.
    best : In, 16 bits
        The next token, at the end of the list.
    fetches : Out, 1 bit, only with ``transfers``
        ``fetch`` may be 1: a shorter path, without its comparison.
    moved : Out, 12 bits, only with ``transfers``
        Words by which `OutPlace.KEYS` or `OutPlace.VALUES` moves the addresses at this position.
    failed : In, 1 bit, only with ``transfers``
        At the end of a pass: the core stops with `CoreError.MEMORY`.
    """

    def __init__(self, *, transfers=False, int4=False):
        self.transfers = transfers
        fields = PassFields(transfers=transfers, int4=int4)
        super().__init__({
            **({"fetches": Out(1), "moved": Out(12), "failed": In(1)} if transfers else {}),
            "start": In(1), "list": In(12), "first_position": In(12), "limit": In(12),
            "stop_token": In(16), "run_abort": In(1),
            "busy": Out(1), "error": Out(CoreError), "position": Out(12), "token": Out(16),
            "cycles": Out(32),
            "prompt": In(stream.Signature(Prompt)), "tokens": Out(stream.Signature(16)),
            "fetch": Out(1), "fetch_word": Out(12), "descriptor": In(fields),
            "job": Out(fields), "further": Out(data.ArrayLayout(12, LEVELS)),
            "parameter": Out(16), "out": Out(12),
            "pass_start": Out(1), "steps_start": Out(1), "steps_done": In(1), "ends": In(2),
            "best": In(16),
        })

    def elaborate(self, platform):
        m = Module()
        following = Signal(self.descriptor.shape(), reset_less=True)
        arrived = pipeline(m, self.fetch, PORT_B, "arrived")
        aborted, more_prompt, elapsed = Signal(), Signal(), Signal(32)
        open_, early = self._overlap(m)
        with m.If(arrived):
            m.d.sync += following.eq(self.descriptor)
        with m.If(self.fetch):
            m.d.sync += self.fetch_word.eq(self.fetch_word + 1)
        m.d.sync += [
            aborted.eq((aborted | self.run_abort) & self.busy), elapsed.eq(elapsed + 1),
        ]
        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            if self.transfers:
                m.d.comb += self.fetches.eq(fsm.ongoing("FETCH") | fsm.ongoing("START"))
            with m.State("IDLE"):
                with m.If(self.start):
                    m.d.sync += [
                        self.position.eq(self.first_position), more_prompt.eq(1),
                        self.error.eq(CoreError.NONE),
                    ]
                    m.next = "TOKEN"
            with m.State("TOKEN"):
                m.d.comb += self.prompt.ready.eq(more_prompt & ~aborted)
                m.d.sync += [self.fetch_word.eq(self.list), elapsed.eq(0)]
                with m.If(aborted):
                    self._stop(m, CoreError.ABORTED)
                with m.Elif(~more_prompt):
                    m.next = "FETCH"
                with m.Elif(self.prompt.valid):
                    m.d.sync += [
                        self.token.eq(self.prompt.payload.token),
                        more_prompt.eq(~self.prompt.payload.last),
                    ]
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.comb += self.fetch.eq(elapsed == 0)
                with m.If(arrived):
                    m.next = "DECODE"
            with m.State("DECODE"):
                unknown, skipped = ~following.kind.any(), following.emitting & more_prompt
                with m.If((unknown | skipped) & open_.any()):
                    pass  # the list ends after what is still on its way
                with m.Elif(unknown):
                    self._stop(m, CoreError.KIND)
                with m.Elif(skipped):
                    m.next = "END"
                with m.Else():
                    self._load(m, following)
                    m.d.sync += self.steps_start.eq(following.kind != Kind.SCALAR)
                    m.next = "START"
            with m.State("START"):
                m.d.comb += [self.pass_start.eq(1), self.fetch.eq(1)]
                m.d.sync += self.steps_start.eq(0)
                m.next = "RUN"
            with m.State("RUN"):
                with m.If(early & ~aborted):
                    m.next = "DECODE"
                with m.Elif(open_ == self.ends):
                    m.next = "DECODE"
                    with m.If(self.job.last):
                        m.next = "END"
                    with m.If(aborted):
                        self._stop(m, CoreError.ABORTED)
                    if self.transfers:
                        with m.If(self.failed):
                            self._stop(m, CoreError.MEMORY)
            with m.State("END"):
                m.d.sync += [elapsed.eq(elapsed), self.cycles.eq(elapsed)]
                self._end(m, more_prompt, aborted)
        return m

    def _overlap(self, m):
        """The number of passes whose results are not all stored; and whether the next pass may
        start before the end of the one that runs.
        """
        open_, follows = Signal(range(_OPEN + 1)), Signal()
        left = Signal(self.job.follow.shape(), reset_less=True)
        m.d.sync += [
            open_.eq(open_ + self.pass_start - self.ends), left.eq(left - 1),
            follows.eq((follows | self.steps_done) & ~self.pass_start),
        ]
        with m.If(self.steps_done):
            m.d.sync += left.eq(self.job.follow - FOLLOW)
        return open_, follows & (left == 0) & self.job.follow.any()

    def _stop(self, m, error):
        m.d.sync += self.error.eq(error)
        m.next = "IDLE"

    def _load(self, m, following):
        """The job, and what of it depends on the position and the token."""
        position, token = self.position, self.token
        m.d.sync += self.job.eq(following)
        for n in range(LEVELS):
            m.d.sync += self.further[n].eq(following[f"count_{n}"] - 1)
        for n in range(2):
            with m.Switch(following[f"blocks_{n}"]):
                with m.Case(Blocks.EIGHTHS):
                    m.d.sync += self.further[n].eq(position >> 3)
                with m.Case(Blocks.SIXTEENTHS):
                    m.d.sync += self.further[n].eq(position >> 4)
        moved = Signal(16)
        with m.Switch(following.parameter_place):
            with m.Case(ParameterPlace.POSITION):
                m.d.comb += moved.eq(position)
            with m.Case(ParameterPlace.ROW):
                rows = token[3:] << 4
                if self.transfers:
                    rows = Mux(following.transfer == Transfer.LOAD, 0, rows)
                m.d.comb += moved.eq(rows | (token[:3] << 1))
            with m.Case(ParameterPlace.TOKEN):
                m.d.comb += moved.eq(token >> 2)
        keys = following.out_place == OutPlace.KEYS
        values = following.out_place == OutPlace.VALUES
        word = Mux(keys, position >> 3, Mux(values, position >> 4, 0))
        m.d.sync += [
            self.parameter.eq(following.parameter + moved), self.out.eq(following.out + word),
        ]
        if self.transfers:
            m.d.sync += self.moved.eq(word)

    def _end(self, m, more_prompt, aborted):
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
                m.d.sync += self.token.eq(self.best)
            stopped = ~more_prompt & (self.best == self.stop_token)
            with m.If((following == self.limit) | stopped):
                m.next = "IDLE"


