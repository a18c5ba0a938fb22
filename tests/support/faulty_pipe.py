"""A pipe between a host and a model of a board, which may damage the frames on it."""

import queue
import random

from weft.frames import MAX_WRITE, FrameType
from weft.host.link import Frame, FrameDecoder, FramingError

__all__ = ["FAULTS", "End", "Faults", "PipedBoard", "flip"]


class End:
    """The host's end of a pipe to a `Board`: reader and writer of a transport."""

    def __init__(self, board):
        self.board, self.pipe, self.ended = board, queue.SimpleQueue(), False
        board.end = self

    def read1(self, count):
        return self.pipe.get()

    read = read1

    def write(self, data):
        if self.ended:
            raise OSError("gone")
        if not self.board.dead:
            self.board.take(self.board.to_board(bytes(data)))
        return len(data)

    flush = staticmethod(lambda: None)

    def close(self):
        self.ended = True
        self.pipe.put(b"")


class PipedBoard:
    """The bytes of a board on a pipe; a subclass answers frames in ``act(frame)``.

    Written bytes take effect at once. ``to_board`` and ``to_host`` map the bytes of each frame to
    the bytes that arrive.
    """

    def __init__(self, *, to_board=lambda data: data, to_host=lambda data: data):
        self.to_board, self.to_host = to_board, to_host
        self.decoder = FrameDecoder(limit=MAX_WRITE)
        self.frames = []
        self.dead = False
        self.end = None

    def take(self, data):
        for item in self.decoder.feed(data):
            if isinstance(item, FramingError):
                # Outside of frames, hardware says nothing.
                if "CRC" in item.text:
                    self.say(Frame(FrameType.ERROR, 0, b"CRC "))
                continue
            self.frames.append(item)
            self.act(item)

    def say(self, frame):
        if data := self.to_host(frame.encode()):
            self.end.pipe.put(data)


class Faults:
    """Applies ``fault`` to the frames with numbers ``at``, and to others with a probability."""

    def __init__(self, fault, *, at=(), chance=0.0, kinds=None, seed=1):
        self.fault, self.at, self.chance, self.kinds = fault, set(at), chance, kinds
        self.rng = random.Random(seed)
        self.count = self.done = 0
        self.on = True

    def __call__(self, data):
        if not self.on or (self.kinds and data[2:3] not in [bytes([k]) for k in self.kinds]):
            return data
        self.count += 1
        if self.count in self.at or self.rng.random() < self.chance:
            self.done += 1
            return self.fault(self.rng, data)
        return data


def flip(rng, data):
    spoilt = bytearray(data)
    spoilt[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(spoilt)


def drop_a_byte(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + data[at + 1 :]


FAULTS = {
    "flip": flip,
    "drop a byte": drop_a_byte,
    "cut": lambda rng, data: data[: rng.randrange(len(data))],
    "lose": lambda rng, data: b"",
    "twice": lambda rng, data: data + data,
    "noise": lambda rng, data: rng.randbytes(30) + data,
}
