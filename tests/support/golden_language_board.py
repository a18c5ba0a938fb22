"""A board with a language core as docs/language-core.md defines it, with the golden model."""

import struct

import numpy as np
from faulty_pipe import PipedBoard
from golden_network_board import GoldenNetworkBoard

from weft.frames import FrameType
from weft.golden.language import IntegerModel
from weft.golden.language.sampling import GREEDY, sample
from weft.host.link import Frame
from weft.language_core.descriptors import CoreError, Kind, Transfer, field_shapes
from weft.language_core.register_map import REGISTERS, describe, describe_program

__all__ = ["PipedLanguageBoard"]

CYCLES = 100  # of a position: the golden model does not count them
_UNITS = 8, 4, 2  # bytes of a unit of each memory


class PipedLanguageBoard(PipedBoard, GoldenNetworkBoard):
    """A board with a language core on a pipe.

    Its model is that of ``weights``, and it chooses tokens by ``how``, whatever its memory has. It
    computes ``pace`` positions before each answer with its state.

    Attributes
    ----------
    memories : list of array of uint8
        The main memory, the tables, and the text.
    program : array of uint8
        The words of the program memory, [words, 128]. A list of one load or store is executed, as a
        text of one token.
    damaged : bool
        The memory keeps no bytes.
    forgetful : bool
        The program memory keeps no bytes.
    lines, kept : callable
        Of the program memory: the numbers of the words that it finds, and what it keeps of words.
    clock : MovedClock or None
        As of `GoldenNetworkBoard`.
    stuck : bool
        It computes no further position.
    how : Sampling
    """

    start_bytes = 12

    def __init__(self, config, weights, *, pace=3, **faults):
        PipedBoard.__init__(self, **faults)
        self.config, self.weights, self.pace, self.how = config, weights, pace, GREEDY
        self.memories = [np.full(size, 0x5A, np.uint8) for size in (128 * config.words, 4096, 2048)]
        self.program = np.full((config.program_words, 128), 0xA5, np.uint8)
        self.lines = self.kept = lambda values: values
        self.clock = None
        self.full = self.damaged = self.stuck = self.started = self.forgetful = False
        self.reset()

    def reset(self):
        """The state after a reset; the memories stay."""
        self.last, self.accepted, self.aborts = 0, [], 0
        self.running, self.started = None, False
        self.error, self.position, self.cycles = CoreError.NONE, 0, 0

    def take_ordered(self, frame):
        """Execute a WRITE or START frame, if its number follows."""
        accepted = frame.sequence == (self.last + 1) % 256
        if accepted:
            self.last = frame.sequence
            self.accepted.append(frame)
        self.say(Frame(FrameType.ACK, self.last))
        if accepted and frame.type == FrameType.WRITE and frame.payload:
            self.write(frame.payload)
        elif accepted and frame.type == FrameType.START:
            assert not self.running
            self.running, self.started = frame, True
            fields = struct.unpack("<4HI", frame.payload)
            first, self.end_of_prompt, self.limit, self.stop, self.random = fields
            if (moved := self.transfer()) is not None:
                self.position, self.running, self.error = 1, None, moved
                return
            if first == 0:
                self.model = IntegerModel(self.weights)
            assert first == self.model.position
            self.position, self.cycles, self.error = first, 0, CoreError.NONE
            self.token = None

    def write(self, payload):
        """Store the units of a WRITE frame."""
        address, data = int.from_bytes(payload[:4], "little"), payload[4:]
        memory, place = address >> 16, address & 0xFFFF
        assert len(data) % _UNITS[memory] == 0
        assert not self.running
        first = place * _UNITS[memory]
        if not self.damaged:
            self.memories[memory][first : first + len(data)] = np.frombuffer(data, np.uint8)

    def transfer(self):
        """Execute the transfer of word 0, if it has one; its error."""
        number, fields = int.from_bytes(self.memories[0][:64].tobytes(), "little"), {}
        for name, (bits, _) in field_shapes(transfers=True).items():
            number, fields[name] = number >> bits, number & ((1 << bits) - 1)
        kind, transfer, count = (fields[name] for name in ("kind", "transfer", "count_0"))
        moves = kind == Kind.SCALAR and transfer in (Transfer.LOAD, Transfer.STORE)
        if not moves or not fields["last"]:
            return None
        assert fields["main_0"] == fields["count_1"] == self.limit == 1
        main = self.memories[0].reshape(-1, 128)[fields["main"] :][:count]
        assert fields["main"] > 0 and len(main) == count
        if self.clock and fields["program"] >= len(self.program):
            if transfer == Transfer.LOAD:
                main[:] = np.frombuffer(self.clock.register(main.size), np.uint8).reshape(-1, 128)
            else:
                self.clock.step()
            return CoreError.NONE
        if fields["program"] + count > len(self.program):
            return CoreError.MEMORY
        numbers = self.lines(np.arange(fields["program"], fields["program"] + count))
        if transfer == Transfer.LOAD:
            found = self.program[numbers]
            main[:] = self.clock.arrive(found) if self.clock else found
        elif not self.forgetful:
            self.program[numbers] = self.kept(main)
        return CoreError.NONE

    def step(self):
        """Compute a position."""
        text = self.memories[2].view("<u2")
        if self.position <= self.end_of_prompt:
            self.token = int(text[self.position])
        logits = self.model.step(np.array([[self.token]]))[0, -1]
        emits = self.position >= self.end_of_prompt
        if emits:
            self.token, self.random = sample(logits, self.how, self.random)
            text[self.position] = self.token
        self.position += 1
        self.cycles += CYCLES
        if self.position == self.limit or (emits and self.token == self.stop):
            self.finish()

    def finish(self):
        """End the text."""
        frame, self.running = self.running, None
        words = struct.pack("<II", *self.state())
        self.say(Frame(FrameType.DONE, frame.sequence, words))

    def abort(self):
        """End the text without DONE."""
        self.aborts += 1
        if self.running:
            self.running, self.error = None, CoreError.ABORTED

    def state(self):
        """The registers of the state but the last one."""
        status = bool(self.running) | self.started << 1 | self.error << 8 | self.position << 16
        return status, self.cycles

    def registers(self):
        """All registers."""
        for _ in range(0 if self.stuck else self.pace):
            if self.running:
                self.step()
        words = [*describe(self.config), *self.state(), CYCLES]
        assert len(words) == len(REGISTERS)
        return [*words, *describe_program(self.config)]

    def bytes_at(self, address, count):
        """Bytes of the main memory, or of the text."""
        memory = address >> 16
        first = (address & 0xFFFF) * _UNITS[memory]
        return self.memories[memory][first : first + count].tobytes().ljust(count, b"\0")
