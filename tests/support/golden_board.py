"""A board as docs/interfaces.md defines it, with a golden core; a subclass carries its bytes."""

import numpy as np
from golden_stream import GoldenStream

from weft.frames import MAX_PAYLOAD, FrameType
from weft.host.link import Frame
from weft.host.transport import TransportError, TransportTimeout

__all__ = ["GoldenBoard"]


class GoldenBoard:
    """Answers the frames of a host; `say` sends a frame to it.

    Attributes
    ----------
    core : GoldenStream
    last, results : int
        Sequence number of the last accepted COMMANDS frame, and of the next RESULTS frame.
    kept : bytes
        All commands that were accepted.
    full : bool
        Whether the board has no space for commands.
    """

    def __init__(self, config):
        self.core = GoldenStream(config)
        self.last, self.results = 0, 0
        self.kept, self.full = b"", False

    def act(self, frame):
        """Answer a frame, and send all results that are ready."""
        if frame.type == FrameType.READ:
            address, count = (int.from_bytes(frame.payload[n : n + 2], "little") for n in (0, 2))
            words = np.array(self.core.read(address, count, 0), "<u4").tobytes()
            self.say(Frame(FrameType.REGISTERS, frame.sequence, words))
        elif frame.type == FrameType.ABORT:
            self.core.abort(0)
            self.say(Frame(FrameType.ABORTED, frame.sequence))
        elif self.full:
            self.say(Frame(FrameType.ERROR, frame.sequence, b"room"))
        else:
            if frame.sequence == (self.last + 1) % 256:
                self.last = frame.sequence
                self.kept += frame.payload
                try:
                    self.core.send_words(frame.payload)
                except TransportError:  # a real core would take the bytes for an operand
                    pass
            self.say(Frame(FrameType.ACK, self.last))
        self.give()

    def give(self):
        """Send all results that are ready."""
        while True:
            try:
                packet = self.core.receive(0)
            except TransportTimeout:
                return
            starts = range(0, len(packet.data), MAX_PAYLOAD)
            for start in starts:
                last = packet.last and start == starts[-1]
                meta = packet.tag.to_bytes(2, "little") + bytes([last, packet.status * last])
                body = meta + packet.data[start : start + MAX_PAYLOAD]
                self.say(Frame(FrameType.RESULTS, self.results, body))
                self.results = (self.results + 1) % 256

    def say(self, frame):
        raise NotImplementedError
