"""The host port of a language core on a board: executes the frames of a link, and answers them."""

from amaranth.hdl import Array, C, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.frames import CHECK_BITS, FrameType
from weft.hw.buffers.bank import Bank
from weft.hw.language_core.control import Prompt
from weft.hw.serial.frame_answers import FrameAnswers
from weft.hw.serial.frame_receiver import LANGUAGE_FRAMES
from weft.hw.serial.link import HostFrames
from weft.language_core.config import GROUP_BYTES, TEXT_TOKENS
from weft.language_core.host_memory import PLACE_BITS, UNIT_BYTES, WRITE_FIELDS, Memory
from weft.language_core.latencies import SELECTED
from weft.language_core.register_map import (
    LATENCY,
    REGISTERS,
    STATE,
    describe,
    describe_program,
)

__all__ = ["LanguageHostPort", "HostWrite", "TextMemory", "TextStart"]

_HEADER, _START = 6, 12  # bytes of a header without SYNC, and of START's payload


class TextStart(data.Struct):
    """The payload of START.

    The tokens of the positions ``first_position`` to ``last_prompt`` are in the text memory, and
    ``first_position <= last_prompt < limit``.
    """

    first_position: 16
    last_prompt: 16
    limit: 16
    stop_token: 16
    seed: 32


class HostWrite(data.Struct):
    """A write to a memory; ``data`` has a unit in its lowest bytes."""

    memory: Memory
    place: PLACE_BITS
    data: 8 * GROUP_BYTES


class TextMemory(wiring.Component):
    """The tokens of a text by their positions: first of the prompt, then what the core emits.

    The token of the prompt at position p is at place p. The token that the core emits after it has
    computed position p replaces it. So the memory never waits for the host.

    Parameters
    ----------
    target : str
        As in the Config.

    Attributes
    ----------
    write, place, token : In, 1 bit, 10 bits, 16 bits
        A token of the host, while the core is not busy.
    busy, position : In, 1 bit, 12 bits
        Of the core.
    last_prompt : In, 16 bits
        Position of the last token of the prompt.
    prompt : Out, stream of `weft.hw.language_core.control.Prompt`
    emitted : In, stream of 16 bits
        Always ready.
    read : In, 1 bit
        Read the token at ``read_place``; both are stable until ``read_done``.
    read_place : In, 10 bits
    read_done : Out, 1 bit
        Pulse: ``read_token`` is valid.
    read_token : Out, 16 bits
    """

    def __init__(self, *, target):
        self.target = target
        place = ceil_log2(TEXT_TOKENS)
        super().__init__({
            "write": In(1), "place": In(place), "token": In(16),
            "busy": In(1), "position": In(12), "last_prompt": In(16),
            "prompt": Out(stream.Signature(Prompt)), "emitted": In(stream.Signature(16)),
            "read": In(1), "read_place": In(place), "read_done": Out(1), "read_token": Out(16),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Bank(width=16, depth=TEXT_TOKENS, target=self.target)
        m.d.comb += [
            self.emitted.ready.eq(1),
            bank.write_en.eq(self.write | self.emitted.valid),
            bank.write_addr.eq(Mux(self.emitted.valid, self.position, self.place)),
            bank.write_data.eq(Mux(self.emitted.valid, self.emitted.payload, self.token)),
            self.read_token.eq(bank.read_data),
        ]
        wait, for_prompt = Signal(range(bank.LATENCY + 1)), Signal()
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    wait.eq(bank.LATENCY), for_prompt.eq(self.prompt.ready),
                    bank.read_addr.eq(Mux(self.prompt.ready, self.position, self.read_place)),
                ]
                with m.If(self.prompt.ready | self.read):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.d.sync += [
                        self.prompt.payload.token.eq(bank.read_data),
                        self.prompt.payload.last.eq(self.position == self.last_prompt),
                    ]
                    m.next = "PROMPT"
                    with m.If(~for_prompt):
                        m.d.comb += self.read_done.eq(1)
                        m.next = "READ_END"
            with m.State("PROMPT"):
                m.d.comb += self.prompt.valid.eq(1)
                with m.If(self.prompt.ready | ~self.busy):  # an aborted core takes no token
                    m.next = "IDLE"
            with m.State("READ_END"):  # ``read`` falls
                m.next = "IDLE"
        return m


class HostReader(wiring.Component):
    """Reads bytes of the main memory, or of the text.

    It waits until the core is not busy before it reads the main memory.

    Attributes
    ----------
    start, address, length, idle, bytes
        As of `weft.hw.network_core.host.memory_port.MemoryBytes`. ``address`` is
        ``Cat(place, memory)``. The memory is `Memory.TEXT`, or else the main memory.
    group : Out, 16 bits
        Of the main memory.
    group_data : In, 64 bits
        SELECTED cycles later.
    busy : In, 1 bit
    text, text_place : Out, 1 bit, 10 bits
        ``read`` and ``read_place`` of `TextMemory`.
    text_done, text_token : In, 1 bit, 16 bits
        ``read_done`` and ``read_token`` of it.
    """

    def __init__(self):
        self.length_bits = CHECK_BITS
        super().__init__({
            "start": In(1), "address": In(32), "length": In(self.length_bits), "idle": Out(1),
            "bytes": Out(stream.Signature(8)),
            "group": Out(PLACE_BITS), "group_data": In(8 * GROUP_BYTES), "busy": In(1),
            "text": Out(1), "text_place": Out(ceil_log2(TEXT_TOKENS)), "text_done": In(1),
            "text_token": In(16),
        })

    def elaborate(self, platform):
        m = Module()
        of_text, bytes_left = Signal(), Signal(self.length_bits)
        unit, index, wait = Signal(8 * GROUP_BYTES), Signal(3), Signal(range(SELECTED + 1))
        m.d.comb += [
            self.bytes.payload.eq(unit[:8]), self.text_place.eq(self.group),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += [
                    self.group.eq(self.address[:PLACE_BITS]), bytes_left.eq(self.length),
                    of_text.eq(self.address[PLACE_BITS:] == Memory.TEXT),
                ]
                with m.If(self.start & (self.length != 0)):
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += wait.eq(SELECTED)
                m.d.comb += self.text.eq(of_text)
                with m.If(of_text):
                    m.d.sync += [
                        unit.eq(self.text_token), index.eq(UNIT_BYTES[Memory.TEXT] - 1),
                    ]
                    with m.If(self.text_done):
                        m.next = "BYTES"
                with m.Elif(~self.busy):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.sync += [
                    wait.eq(wait - 1), unit.eq(self.group_data), index.eq(GROUP_BYTES - 1),
                ]
                with m.If(wait == 0):
                    m.next = "BYTES"
            with m.State("BYTES"):
                m.d.comb += self.bytes.valid.eq(1)
                with m.If(self.bytes.ready):
                    m.d.sync += [
                        unit.eq(unit >> 8), index.eq(index - 1), bytes_left.eq(bytes_left - 1),
                    ]
                    with m.If(bytes_left == 1):
                        m.next = "IDLE"
                    with m.Elif(index == 0):
                        m.d.sync += self.group.eq(self.group + 1)
                        m.next = "READ"
        return m


class LanguageCommands(wiring.Component):
    """Writes the data of WRITE frames, and begins texts.

    Attributes
    ----------
    commands : In, stream of 8 bits
        Frames: type, sequence number, length (32 bits), payload.
    idle : Out, 1 bit
        The last byte of a frame was executed, and no frame has begun.
    busy : In, 1 bit
        Of the core: writes wait for its end.
    write : Out, 1 bit
        Pulse.
    written : Out, `HostWrite`
    text : Out, stream of `TextStart`
        A text to begin. The payload stays until the next frame.
    sequence : Out, 8 bits
        Sequence number of the START frame on ``text``.
    """

    commands: In(stream.Signature(8))
    idle: Out(1)
    busy: In(1)
    write: Out(1)
    written: Out(HostWrite)
    text: Out(stream.Signature(TextStart))
    sequence: Out(8)

    def elaborate(self, platform):
        m = Module()
        commands, written = self.commands, self.written
        last = Signal(8 * _START)  # the last bytes: header, fields of the payload, or data
        frame_type, length = Signal(8), Signal(16)  # length: bytes of the payload to come
        missing = Signal(range(GROUP_BYTES + 1))  # bytes until the field, or the unit, is complete
        unit, fire = Signal.like(missing), Signal()
        m.d.comb += [
            fire.eq(commands.valid & commands.ready), self.text.payload.eq(last),
            unit.eq(GROUP_BYTES), written.data.eq(last[-8 * GROUP_BYTES:]),
        ]
        for memory, size in UNIT_BYTES.items():
            with m.If(written.memory == memory):
                m.d.comb += [unit.eq(size), written.data.eq(last[-8 * size:])]
        with m.If(fire):
            m.d.sync += [
                last.eq(Cat(last, commands.payload)[8:]), missing.eq(missing - 1),
                length.eq(length - 1),
            ]
        m.d.sync += self.write.eq(0)
        with m.If(self.write):
            m.d.sync += written.place.eq(written.place + 1)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~commands.valid & ~self.write)
                m.d.sync += missing.eq(_HEADER)
                with m.If(commands.valid):
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += commands.ready.eq(missing != 0)
                with m.If(missing == 0):
                    header = last[-8 * _HEADER:]
                    m.d.sync += [
                        frame_type.eq(header[:8]), self.sequence.eq(header[8:16]),
                        length.eq(header[16:32]),
                        missing.eq(Mux(header[:8] == FrameType.START, _START, WRITE_FIELDS)),
                    ]
                    m.next = "FIELDS"
            with m.State("FIELDS"):  # without a payload, the frame has no effect
                m.d.comb += commands.ready.eq((missing != 0) & (length != 0))
                with m.If(missing == 0):
                    m.next = "ADDRESS"
                    with m.If(frame_type == FrameType.START):
                        m.next = "BEGIN"
                with m.Elif(length == 0):
                    m.next = "IDLE"
            with m.State("ADDRESS"):
                address = last[-8 * WRITE_FIELDS:]
                m.d.sync += [
                    written.place.eq(address[:PLACE_BITS]),
                    written.memory.eq(address[PLACE_BITS:]),
                ]
                with m.If(~self.busy):
                    m.next = "UNIT"
            with m.State("UNIT"):
                m.d.sync += missing.eq(unit)
                m.next = "DATA"
                with m.If(length == 0):
                    m.next = "IDLE"
            with m.State("DATA"):
                m.d.comb += commands.ready.eq((missing != 0) & (length != 0))
                with m.If(missing == 0):
                    m.d.sync += self.write.eq(1)
                    m.next = "UNIT"
                with m.Elif(length == 0):  # a part of a unit has no effect
                    m.next = "IDLE"
            with m.State("BEGIN"):
                m.d.comb += self.text.valid.eq(1)
                with m.If(self.text.ready):
                    m.next = "IDLE"
        return m


class LanguageAnswers(FrameAnswers):
    """The `weft.hw.serial.frame_answers.FrameAnswers` of a language core.

    Parameters
    ----------
    config : LanguageCoreConfig

    Attributes
    ----------
    state : In, registers of 32 bits
        Those of `weft.language_core.register_map.STATE`.
    others
        The ports of `HostReader` to the memories, and of `FrameAnswers`.
    """

    REGISTER_LATENCY = LATENCY
    STATUS = REGISTERS.index("text_status")
    _MEMORY = "group", "group_data", "busy", "text", "text_place", "text_done", "text_token"

    def __init__(self, config):
        self.config = config
        self.memory = HostReader()
        members = self.memory.signature.members
        super().__init__(LANGUAGE_FRAMES, {
            "state": In(data.ArrayLayout(32, len(STATE))),
            **{name: members[name] for name in self._MEMORY},
        }, checks=True)

    def reader(self, m):
        m.submodules.memory = memory = self.memory
        for name in self._MEMORY:
            inner, outer = getattr(memory, name), getattr(self, name)
            is_input = memory.signature.members[name].flow == In
            m.d.comb += inner.eq(outer) if is_input else outer.eq(inner)
        return memory

    def registers(self, m, address):
        values = [*(Const(word, 32) for word in describe(self.config)), *(
            self.state[n] for n in range(len(STATE))
        )]
        values += [Const(word, 32) for word in describe_program(self.config)]
        value = Signal(32)
        m.d.sync += value.eq(Mux(address < len(values), Array(values)[address], 0))
        return value

    def address(self, value):
        return value


class LanguageHostPort(wiring.Component):
    """Translates between frames (``docs/language-core.md``) and the ports of a `LanguageCore`.

    Parameters
    ----------
    config : LanguageCoreConfig
    core : weft.hw.language_core.core.LanguageCore
        A submodule of the one that has this port.

    Attributes
    ----------
    frames : In, `weft.hw.serial.link.HostFrames`
    """

    def __init__(self, config, core):
        self.config = config
        self.core = core
        super().__init__({"frames": In(HostFrames())})

    def elaborate(self, platform):
        m = Module()
        frames, core = self.frames, self.core
        m.submodules.commands = commands = LanguageCommands()
        m.submodules.answers = answers = LanguageAnswers(self.config)
        m.submodules.text = text = TextMemory(target=self.config.target)
        connect(m, flipped(frames.commands), commands.commands)
        connect(m, flipped(frames.request), answers.request)
        connect(m, flipped(frames.ack), answers.ack)
        connect(m, answers.frame, flipped(frames.frame))
        connect(m, answers.payload, flipped(frames.payload))
        busy, was_busy, executed, started = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            busy.eq(core.busy), commands.busy.eq(busy), answers.busy.eq(busy),
            answers.executed.eq(executed),
        ]
        m.d.sync += [was_busy.eq(busy), executed.eq(commands.idle & ~frames.pending)]
        begin = commands.text
        start = answers.begin_runs(
            m, begin, commands.sequence, executed, was_busy & ~busy, ~busy & ~was_busy
        )
        begins = start & ~answers.abort
        with m.If(begins):
            m.d.sync += started.eq(1)
        self._connect_core(m, commands, answers, text, begins)
        self._state(m, answers, begins, started)
        return m

    def _connect_core(self, m, commands, answers, text, begins):
        """The memories, and the stream of tokens."""
        core, begin, written = self.core, commands.text.payload, commands.written
        write = {each: commands.write & (written.memory == each) for each in Memory}
        m.d.comb += [
            core.start.eq(begins), core.run_abort.eq(answers.abort), core.list.eq(0),
            core.write.eq(write[Memory.MAIN] | write[Memory.TABLES]),
            core.table.eq(written.memory == Memory.TABLES), core.write_data.eq(written.data),
            core.group.eq(Mux(commands.write, written.place, answers.group)),
            answers.group_data.eq(core.read_data),
            text.write.eq(write[Memory.TEXT]), text.place.eq(written.place),
            text.token.eq(written.data), text.busy.eq(core.busy), text.position.eq(core.position),
            text.read.eq(answers.text), text.read_place.eq(answers.text_place),
            answers.text_done.eq(text.read_done), answers.text_token.eq(text.read_token),
            core.prompt_valid.eq(text.prompt.valid), text.prompt.ready.eq(core.prompt_ready),
            core.prompt_token.eq(text.prompt.payload.token),
            core.prompt_last.eq(text.prompt.payload.last),
            text.emitted.valid.eq(core.token_valid), core.token_ready.eq(text.emitted.ready),
            text.emitted.payload.eq(core.token),
        ]
        fields = Signal(TextStart)  # ``begin`` has them only until the next frame
        with m.If(begins):
            m.d.sync += fields.eq(begin)
        m.d.comb += [
            core.first_position.eq(begin.first_position), core.seed.eq(fields.seed),
            core.limit.eq(fields.limit),
            core.stop_token.eq(fields.stop_token), text.last_prompt.eq(fields.last_prompt),
        ]

    def _state(self, m, answers, begins, started):
        """The registers."""
        core, cycles = self.core, Signal(32)
        with m.If(begins):
            m.d.sync += cycles.eq(0)
        with m.Elif(core.busy):
            m.d.sync += cycles.eq(cycles + 1)
        status = Signal(32)
        m.d.sync += [
            status.eq(Cat(
                core.busy | begins, started | begins, C(0, 6), core.error,
                C(0, 8 - len(core.error)), core.position,
            )),
        ]
        m.d.comb += answers.state.eq(Cat(status, cycles, core.cycles))
