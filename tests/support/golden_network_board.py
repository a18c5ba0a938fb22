"""A board with a network core as docs/network-core.md defines it, with the golden runner."""

import struct
import zlib

import numpy as np
from faulty_pipe import PipedBoard

from weft.frames import MAX_CHECK, MAX_DATA, MAX_WRITE, WRITE_FIELDS, FrameType
from weft.golden.network_core import NetworkCoreBuffers, run_list, write_pixels
from weft.host.link import Frame
from weft.network_core.descriptors import ListError, NetworkState, join
from weft.network_core.register_map import REGISTERS, describe

__all__ = ["GoldenNetworkBoard", "PipedNetworkBoard"]

CYCLES = 1234  # of every list: the golden runner does not count them


class GoldenNetworkBoard:
    """Answers the frames of a host; `say` sends a frame to it.

    A list ends when it starts, or when `finish` is called if ``busy``.

    Attributes
    ----------
    memory : array of uint8
    last : int
        Sequence number of the last accepted WRITE or START.
    accepted : list of Frame
    busy : bool
    full : bool
        Whether the board has no space for frames.
    aborts : int
    fails : (ListError, int) or None
        Error and job with which the next lists end.
    clock : MovedClock or None
        Of the SDRAM that is the program memory, if it can move.
    """

    start_bytes = 8  # of the payload of START

    def __init__(self, config):
        self.config, self.fails, self.clock = config, None, None
        self.memory = np.full(config.memory_bytes, 0x5A, np.uint8)
        self.program = np.full(config.program_bytes, 0x5A, np.uint8)
        self.place = lambda numbers: numbers  # of vectors of the program memory
        self.kept = lambda numbers, vectors: vectors  # what it keeps of vectors
        self.full = self.busy = False
        self.reset()

    def reset(self):
        """The state after a reset; the memory stays."""
        self.buffers = NetworkCoreBuffers(self.config)
        self.last, self.accepted, self.aborts = 0, [], 0
        self.running = None  # START frame of the running list
        self.state, self.error, self.jobs, self.result = NetworkState.IDLE, ListError.NONE, 0, b""
        self.address = 0  # of the result

    def act(self, frame):
        """Answer a frame."""
        kind, payload = frame.type, frame.payload
        sizes = {FrameType.READ: 4, FrameType.READ_MEMORY: 8, FrameType.START: self.start_bytes,
                 FrameType.ABORT: 0, FrameType.WRITE: len(payload)}
        if kind not in sizes:
            self.say(Frame(FrameType.ERROR, frame.sequence, b"type"))
        elif len(payload) != sizes[kind] or len(payload) > MAX_WRITE:
            self.say(Frame(FrameType.ERROR, frame.sequence, b"size"))
        elif kind == FrameType.READ:
            address, count = struct.unpack("<HH", payload)
            words = (self.registers() + [0] * 256)[address : address + count]
            self.say(Frame(FrameType.REGISTERS, frame.sequence, struct.pack(f"<{count}I", *words)))
        elif kind == FrameType.READ_MEMORY:
            address, count = struct.unpack("<II", payload)
            if count >> 31:
                assert count & ~(1 << 31) <= MAX_CHECK
                crc = zlib.crc32(self.bytes_at(address, count & ~(1 << 31)))
                data = crc.to_bytes(4, "little")
            else:
                assert count <= MAX_DATA
                data = self.bytes_at(address, count)
            self.say(Frame(FrameType.DATA, frame.sequence, data))
        elif kind == FrameType.ABORT:
            self.abort()
            self.say(Frame(FrameType.ABORTED, frame.sequence))
        elif self.full:
            self.say(Frame(FrameType.ERROR, frame.sequence, b"room"))
        else:
            self.take_ordered(frame)

    def take_ordered(self, frame):
        """Execute a WRITE or START frame, if its number follows."""
        accepted = frame.sequence == (self.last + 1) % 256
        if accepted:
            self.last = frame.sequence
            self.accepted.append(frame)
        self.say(Frame(FrameType.ACK, self.last))
        if accepted and frame.type == FrameType.WRITE and len(frame.payload) > WRITE_FIELDS:
            self.write(frame.payload)
        elif accepted and frame.type == FrameType.START:
            if self.running:
                self.say(Frame(FrameType.ERROR, frame.sequence, b"busy"))
                return
            self.running, self.state = frame, NetworkState.RUNNING
            if not self.busy:
                self.finish()

    def write(self, payload):
        """Store the pixels of a WRITE frame."""
        address, run, pitch, pixels, row_step = struct.unpack_from("<IBBHI", payload)
        if address >> 31:
            assert not (run or pitch or pixels or row_step)
            self.write_program(address & ~(1 << 31), payload[WRITE_FIELDS:])
            return
        first, step = (join(a, self.config.banks) for a in (address, row_step))
        write_pixels(
            self.memory.reshape(-1, self.config.array.depth), first, payload[WRITE_FIELDS:],
            run=run,
            pitch=pitch, pixels=pixels, row_step=step,
        )

    def write_program(self, address, data):
        """Store whole vectors in the program memory."""
        depth = self.config.array.depth
        data += bytes(-len(data) % depth)
        first = join(address, self.config.banks)
        if depth * first >= len(self.program):
            if self.clock:
                self.clock.step()
            return
        numbers = np.arange(first, first + len(data) // depth)
        vectors = self.kept(numbers, np.frombuffer(data, np.uint8).reshape(-1, depth))
        memory = self.program.reshape(-1, depth)
        for number, vector in zip(self.place(numbers), vectors, strict=True):
            memory[number] = vector

    def finish(self):
        """End the running list."""
        frame, self.running = self.running, None
        addresses = struct.unpack("<II", frame.payload)
        outcome = run_list(
            self.config, self.memory, *addresses, buffers=self.buffers, program=self.program
        )
        self.error, self.jobs, self.result = outcome.error, outcome.jobs, outcome.result
        self.address = outcome.address
        if self.fails:
            (self.error, self.jobs), self.result = self.fails, b""
        self.state = NetworkState.ERROR if self.error else NetworkState.DONE
        words = struct.pack("<II", *self.registers()[-4:-2])
        self.say(Frame(FrameType.DONE, frame.sequence, words + self.result))

    def abort(self):
        """End the running list without DONE."""
        self.aborts += 1
        self.buffers = NetworkCoreBuffers(self.config)
        if self.running:
            self.running, self.state = None, NetworkState.ABORTED
            self.error = ListError.ABORTED

    def registers(self):
        """All registers."""
        status = self.state | self.error << 8 | self.jobs << 16
        words = [*describe(self.config), status, CYCLES, self.address, len(self.result)]
        assert len(words) == len(REGISTERS)
        return words

    def bytes_at(self, address, count):
        """Bytes of a memory; 0 beyond it."""
        depth = self.config.array.depth
        if address >> 31:
            first = join(address & ~(1 << 31), self.config.banks)
            if depth * first >= len(self.program):
                return self.clock.register(count) if self.clock else bytes(count)
            numbers = self.place(np.arange(first, first + -(-count // depth)))
            found = self.program.reshape(-1, depth)[numbers]
            return (self.clock.arrive(found) if self.clock else found).tobytes()[:count]
        first = join(address, self.config.banks) * depth
        return self.memory[first : first + count].tobytes().ljust(count, b"\0")

    def say(self, frame):
        raise NotImplementedError


class PipedNetworkBoard(PipedBoard, GoldenNetworkBoard):
    """A board with a network core on a pipe."""

    def __init__(self, config, **faults):
        PipedBoard.__init__(self, **faults)
        GoldenNetworkBoard.__init__(self, config)
