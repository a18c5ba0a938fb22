"""The driver of a language core on a board: its memories, and the texts that it writes."""

import contextlib
import struct
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from weft.design import LANGUAGE
from weft.frames import MAX_CHECK, MAX_DATA, PROGRAM_BIT, FrameType
from weft.host.board import BoardTransport
from weft.host.network_frames import NetworkFrames
from weft.host.opening import open_transport
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError
from weft.language_core.config import (
    GROUP_BYTES,
    GROUPS_OF_WORD,
    PROGRAM_BITS,
    TEXT_TOKENS,
    WORD_BYTES,
    LanguageCoreConfig,
)
from weft.language_core.descriptors import CoreError, Kind, Pass, Transfer
from weft.language_core.host_memory import UNIT_BYTES, WRITE_BYTES, Memory, address
from weft.language_core.register_map import PROGRAM_WORDS, REGISTERS, STATE, TextState, decode
from weft.sdram import SdramPhase

__all__ = ["NO_TOKEN", "LanguageDriver"]

NO_TOKEN = 0xFFFF  # stops no text
_MOST_MOVED = 4095  # words of a transfer: its pass counts them in 12 bits
_READ = struct.Struct("<II")  # payload of READ_MEMORY: address, bytes
_START = struct.Struct("<4HI")  # of START: first position, end of the prompt, limit, stop, seed


class LanguageDriver:
    """Writes the memories of a language core, starts texts, and reads their tokens.

    The driver uses the core exclusively until it is closed. It is also a context manager that
    closes the transport at its end, after an abort of a text that is not over. Threads may share
    it: calls wait for each other.

    After a `TransportError` or an interrupt (Ctrl-C) the next call restarts the connection, which
    ends a running text.

    Parameters
    ----------
    transport : BoardTransport or str
        Connection to the core, or its name: a serial port, ``usb`` or ``tcp://host:port``.
    config : LanguageCoreConfig, optional
        Expected LanguageCoreConfig; by default the one in the core's registers is accepted.
    timeout : float
        Maximum seconds without progress in each wait for the core.

    Attributes
    ----------
    config : LanguageCoreConfig
        Of the core.
    sent, found : int
        Bytes that `write_main` and `write_program` have sent, and that they have found.

    Raises
    ------
    AcceleratorError
        If the core is no language core, or has not the expected LanguageCoreConfig.
    TransportError
        If the connection fails, or the named transport cannot be opened.
    ValueError
        If ``transport`` is a name of another form.
    """

    def __init__(
        self, transport: BoardTransport | str, config: LanguageCoreConfig | None = None, *,
        timeout: float = 10.0,
    ):
        self._lock = threading.RLock()
        self._timeout = timeout
        self._needs_restart = True
        self._running = False  # a text was started, and its end was not seen
        self.sent = self.found = 0
        with contextlib.ExitStack() as undo:
            opened = open_transport(transport) if isinstance(transport, str) else transport
            if isinstance(transport, str):
                undo.callback(opened.close)
            if not isinstance(opened, NetworkFrames):
                raise ValueError(
                    "a language core must be at a serial port, usb or tcp://host:port, not"
                    f" {transport}"
                )
            # The netlist of a core, which a test simulates, has the same calls as a board, without
            # those that recover a connection.
            self._transport = cast(BoardTransport, opened)
            self.config = self._identify(config)
            undo.pop_all()

    def __enter__(self) -> "LanguageDriver":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> None:
        """End a text that is not over, and close the transport."""
        with self._lock:
            if self._running:
                with contextlib.suppress(Exception):  # the link may be what has failed
                    self.abort()
            self._transport.close()

    def write_main(
        self, first: int, data: bytes, watch: Callable[[int], None] = lambda size: None
    ) -> None:
        """Write groups of the main memory from group ``first`` on, unless it has them.

        The CRC of each piece of at most 64 KiB is compared first. A piece that the memory has is
        not sent. So a call that follows a broken one goes on where that has ended. A piece that
        was sent is compared, too. After each piece ``watch`` is called with its bytes.

        Raises
        ------
        ValueError
            If the groups are not in the memory.
        AcceleratorError
            If the memory does not keep what is written.
        TransportError
            If the connection failed.
        """
        self._check_main(first, len(data))
        with self._transaction():
            for start in range(0, len(data), MAX_CHECK):
                piece, place = data[start : start + MAX_CHECK], first + start // GROUP_BYTES
                if self._has(place, piece):
                    self.found += len(piece)
                else:
                    self._write(Memory.MAIN, place, piece)
                    self.sent += len(piece)
                    if not self._has(place, piece):
                        raise AcceleratorError(
                            "the main memory does not keep what is written: groups"
                            f" {place:,}..{place + len(piece) // GROUP_BYTES - 1:,} are wrong;"
                            " weft selftest tests the memory"
                        )
                watch(len(piece))

    def write_program(
        self, first: int, data: bytes, free: tuple[int, int],
        watch: Callable[[int], None] = lambda size: None,
    ) -> None:
        """Write words of the program memory from word ``first`` on, unless it has them.

        A list of one pass moves them through the main memory, a piece at once. ``free`` is its
        place there: the first word and the number of words that may be overwritten. Word 0 of the
        main memory has the list; it is restored at the end. What the program memory has in the
        place of a piece is loaded and compared first, and again if something was sent. After each
        piece ``watch`` is called with its bytes.

        Raises
        ------
        ValueError
            If the words are not in the program memory.
        AcceleratorError
            If the memory fails, or does not keep what is written.
        TransportError
            If the connection failed.
        """
        self._check_program(first, data)
        place, words = free
        head = self.read_main(0, WORD_BYTES)
        for start in range(0, len(data), words * WORD_BYTES):
            piece = data[start : start + words * WORD_BYTES]
            moved = {"main": place, "program": first + start // WORD_BYTES}
            self._move(Transfer.LOAD, len(piece), **moved)
            before = self.sent
            self.write_main(place * GROUPS_OF_WORD, piece)  # sends what is not as in ``data``
            if self.sent > before:
                self._move(Transfer.STORE, len(piece), **moved)
                self._move(Transfer.LOAD, len(piece), **moved)
                self._compare(place * GROUPS_OF_WORD, piece, moved["program"])
            watch(len(piece))
        with self._transaction():
            self._write(Memory.MAIN, 0, head)

    def store_program(self, first: int, data: bytes) -> None:
        """Write words of the program memory from word ``first`` on; nothing is compared.

        They move through the main memory, whose contents are lost. Raises as `write_program`.
        """
        for number, piece in self._through_main(first, data):
            with self._transaction():
                self._write(Memory.MAIN, GROUPS_OF_WORD, piece)
            self._move(Transfer.STORE, len(piece), main=1, program=number)

    def read_program(self, first: int, count: int = 1) -> bytes:
        """Return ``count`` words of the program memory; the contents of the main memory are lost.

        Raises as `write_program`.
        """
        found = []
        for number, piece in self._through_main(first, bytes(count * WORD_BYTES)):
            self._move(Transfer.LOAD, len(piece), main=1, program=number)
            found.append(self.read_main(GROUPS_OF_WORD, len(piece)))
        return b"".join(found)

    def program_has(self, first: int, data: bytes) -> bool:
        """Return whether words of the program memory have these bytes, at most 64 KiB.

        Their CRC is compared. The contents of the main memory are lost. Raises as `write_program`.
        """
        equal = True
        for number, piece in self._through_main(first, data):
            self._move(Transfer.LOAD, len(piece), main=1, program=number)
            with self._transaction():
                equal &= self._has(GROUPS_OF_WORD, piece)
        return equal

    def move_sdram_phase(self, steps: int) -> SdramPhase | None:
        """Make the clock of a board's SDRAM later by 0 or 1 steps, and return its phase.

        Words 0 and 1 of the main memory are lost, and after a step the contents of the SDRAM may
        be. None, with 0 steps, if the clock cannot move. Raises TransportError if the connection
        failed.
        """
        register = (1 << SdramPhase.place(self.config.program_bytes)) // WORD_BYTES
        if register >> PROGRAM_BITS:  # behind all addresses of the core
            return None
        if steps:
            self._move(Transfer.STORE, WORD_BYTES, main=1, program=register)
        try:
            self._move(Transfer.LOAD, WORD_BYTES, main=1, program=register)
        except AcceleratorError:  # nothing is behind the memory
            return None
        word = self.read_main(GROUPS_OF_WORD, WORD_BYTES)
        if word != word[:4] * (WORD_BYTES // 4):
            return None
        return SdramPhase.of_word(int.from_bytes(word[:4], "little"))

    def _through_main(self, first, data):
        """Parts of words of the program memory, as large as the main memory behind the list."""
        self._check_program(first, data)
        size = min(self.config.words - 1, _MOST_MOVED) * WORD_BYTES
        for start in range(0, len(data), size):
            yield first + start // WORD_BYTES, data[start : start + size]

    def _check_program(self, first, data):
        last = first + len(data) // WORD_BYTES - 1
        if not 0 <= first <= last < self.config.program_words or len(data) % WORD_BYTES:
            raise ValueError(
                "words of the program memory must be whole, and in"
                f" 0..{self.config.program_words - 1}, not {first}..{last} with {len(data)} bytes"
            )

    def _move(self, transfer, size, **words):
        """Execute a list of one transfer, and wait for its end."""
        each = Pass(
            kind=Kind.SCALAR, transfer=transfer, count_0=size // WORD_BYTES, main_0=1, last=1,
            **words,
        )
        with self._transaction():
            self._write(Memory.MAIN, 0, each.pack())
        self.start([0], first_position=0, limit=1)
        deadline = time.monotonic() + self._timeout
        while (state := self.state()).running:
            if time.monotonic() > deadline:
                raise TransportError(
                    f"the program memory did not answer within {self._timeout:g} s"
                )
        if state.error != CoreError.NONE:
            raise AcceleratorError(
                f"the program memory failed at word {words['program']:,}: it answers with an error,"
                " or not in time"
            )

    def _compare(self, group, data, program):
        """Raise AcceleratorError if a piece that was moved is not in the main memory."""
        with self._transaction():
            for start in range(0, len(data), MAX_CHECK):
                piece = data[start : start + MAX_CHECK]
                if not self._has(group + start // GROUP_BYTES, piece):
                    word = program + start // WORD_BYTES
                    raise AcceleratorError(
                        "the program memory does not keep what is written: words"
                        f" {word:,}..{word + len(piece) // WORD_BYTES - 1:,} are wrong"
                    )

    def read_main(self, first: int, count: int) -> bytes:
        """Return ``count`` bytes of the main memory, from group ``first`` on.

        Raises ValueError if they are not in the memory, TransportError if the connection failed.
        """
        self._check_main(first, count)
        with self._transaction():
            return b"".join(
                self._read(Memory.MAIN, first + start // GROUP_BYTES, min(MAX_DATA, count - start))
                for start in range(0, count, MAX_DATA)
            )

    def write_tables(self, entries) -> None:
        """Write the entries of the tables, bases and slopes, [entries, 2].

        They are always sent, because the core has no way to read them.
        """
        values = (np.asarray(entries).astype(np.int64) & 0xFFFF).astype("<u2").tobytes()
        with self._transaction():
            self._write(Memory.TABLES, 0, values)

    def start(
        self, prompt: Sequence[int], *, first_position: int, limit: int, stop_token: int = NO_TOKEN,
        seed: int = 1,
    ) -> None:
        """Start a text; a text that is not over ends before.

        Parameters
        ----------
        prompt : list of int
            At least one token.
        first_position : int
            That of the first token of the prompt. The cache has the positions before it.
        limit : int
            The first position that is not computed.
        stop_token : int
            The text ends after it.
        seed : int
            First state of the LFSR, 1 to 2**32 - 1: `weft.golden.language.sampling.start_state`
            makes it. The core needs it with a temperature.

        Raises
        ------
        ValueError
            If a position is not in the order 0 <= first < end of the prompt <= limit <= 1024, or a
            token is not in 0..65535, or the seed not in 1..2**32 - 1.
        TransportError
            If the connection failed.
        """
        end = first_position + len(prompt)
        if not 0 <= first_position < end <= limit <= TEXT_TOKENS:
            raise ValueError(
                "first position, end of the prompt and limit must be in this order in"
                f" 0..{TEXT_TOKENS}, with a token of the prompt, not {first_position}, {end} and"
                f" {limit}"
            )
        for token in (*prompt, stop_token):
            if not 0 <= token <= NO_TOKEN:
                raise ValueError(f"a token must be in 0..{NO_TOKEN}, not {token}")
        if not 0 < seed < 1 << 32:
            raise ValueError(f"the seed must be in 1..{(1 << 32) - 1}, not {seed}")
        if self._running:
            self.abort()
        with self._transaction():
            self._write(Memory.TEXT, first_position, struct.pack(f"<{len(prompt)}H", *prompt))
            fields = _START.pack(first_position, end - 1, limit, stop_token, seed)
            self._transport.post(FrameType.START, fields)
            self._running = True
            self._transport.flush(self._timeout)

    def state(self) -> TextState:
        """Return the state of the text that was started last.

        Raises TransportError if the connection failed.
        """
        with self._transaction():
            first = REGISTERS.index(STATE[0])
            state = TextState.of(*self._transport.read(first, 2, self._timeout))
            if not state.running:
                self._running = False
            return state

    def tokens(self, position: int, count: int) -> list[int]:
        """Return the tokens that the core has emitted after ``count`` positions from one on.

        They must have been computed: `state` has the first position that is not.
        """
        size = count * UNIT_BYTES[Memory.TEXT]
        with self._transaction():
            data = b"".join(
                self._read(
                    Memory.TEXT, position + start // UNIT_BYTES[Memory.TEXT],
                    min(MAX_DATA, size - start),
                ) for start in range(0, size, MAX_DATA)
            )
        return list(struct.unpack(f"<{count}H", data))

    def abort(self) -> None:
        """End the text that runs, if any; the core stops after the pass that it computes."""
        with self._transaction():
            self._transport.abort(self._timeout)
            self._running = False

    @contextlib.contextmanager
    def _transaction(self):
        """Context for frames and the wait for their answers.

        A failure or an interrupt in it leaves the connection in an unknown state. So the next
        transaction restarts the connection.
        """
        with self._lock:
            if self._needs_restart:
                self._transport.restart_lists(self._timeout)
                self._running = False
            self._needs_restart = True
            yield
            self._needs_restart = False

    def _identify(self, config):
        """The config in the core's registers; AcceleratorError if it is not ``config``."""
        if (kind := self._transport.kind_of_core(self._timeout)) != LANGUAGE:
            raise AcceleratorError(
                f"the core at {self._transport.name} must be a {LANGUAGE}, not a {kind}; weft build"
                " BOARD --for language makes a bitstream with one, and weft program loads it"
            )
        count = len(REGISTERS) - len(STATE)
        try:
            memory = self._transport.read(PROGRAM_WORDS, 2, self._timeout)
            found = decode(self._transport.read(0, count, self._timeout), *memory)
        except ValueError as error:
            raise AcceleratorError(
                f"the core's registers do not describe a language core: {error}"
            ) from error
        if config is not None and found != config:
            raise AcceleratorError(
                f"the language core must be {config.name} with hash {config.hash:08x}, not"
                f" {found.name} with hash {found.hash:08x}: {found}"
            )
        return found

    def _check_main(self, first, count):
        groups = self.config.main_groups
        last = first + -(-count // GROUP_BYTES) - 1
        if not 0 <= first <= last + 1 <= groups or count % GROUP_BYTES:
            raise ValueError(
                f"groups of the main memory must be whole, and in 0..{groups - 1}, not"
                f" {first}..{last} with {count} bytes"
            )

    def _write(self, memory, place, data):
        """Send WRITE frames, and wait until the core has accepted them."""
        for start in range(0, len(data), WRITE_BYTES):
            where = address(memory, place + start // UNIT_BYTES[memory]).to_bytes(4, "little")
            self._transport.post(FrameType.WRITE, where + data[start : start + WRITE_BYTES])
        self._transport.flush(self._timeout)

    def _read(self, memory, place, count):
        return self._transport.read_memory(address(memory, place), count, self._timeout)

    def _has(self, place, data):
        """Whether the main memory has these bytes: their CRC is compared."""
        payload = _READ.pack(address(Memory.MAIN, place), len(data) | 1 << PROGRAM_BIT)
        crc = self._transport.request(
            FrameType.READ_MEMORY, payload, FrameType.DATA, self._timeout
        )
        return int.from_bytes(crc, "little") == zlib.crc32(data)
