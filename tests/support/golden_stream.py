"""The golden core behind a command stream: it takes words, as hardware does."""

from weft.commands import HEADER_BYTES, VERSION, Job, Load, Opcode
from weft.host.emulated import GoldenTransport

__all__ = ["GoldenStream", "decoded"]


class CommandDecoder:
    """Splits the words of a command stream into commands.

    It skips a header that is not valid: such words are no command.
    """

    def __init__(self, core):
        self._core, self._size = core, max(HEADER_BYTES, core._config.bytes_in)
        self._stream = bytearray()

    def feed(self, words):
        """Add words; return the commands that they complete."""
        self._stream += words
        found = []
        while len(self._stream) >= self._size:
            header, end = bytes(self._stream[:HEADER_BYTES]), self._size
            if header[1] == VERSION and header[0] == Opcode.JOB:
                found.append((Job.unpack(header), b""))
            elif header[1] == VERSION and header[0] == Opcode.LOAD:
                load = Load.unpack(header)
                if self._core.is_valid(load):
                    end += self._core.payload_bytes(load)
                    if len(self._stream) < end:
                        break
                found.append((load, bytes(self._stream[self._size : end])))
            else:
                found.append((None, header))
            del self._stream[:end]
        return found


class GoldenStream(GoldenTransport):
    """A golden core that also takes the words of the command stream."""

    def __init__(self, config):
        super().__init__(config)
        self._decoder = CommandDecoder(self)
        self._partial = 0

    def send_words(self, words):
        """Take words; a command takes effect when it is complete."""
        before = self._counters["words_in"] + (self._partial + len(words)) // self._config.bytes_in
        self._partial = (self._partial + len(words)) % self._config.bytes_in
        try:
            self.send(self._decoder.feed(words))
        finally:
            self._counters["words_in"] = before


def decoded(config, words):
    """The complete commands in the words of a command stream."""
    return CommandDecoder(GoldenTransport(config)).feed(words)
