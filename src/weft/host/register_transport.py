"""The part that all transports to an IP core share: its registers, polled."""

import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol

from weft.host.transport import TransportClosed, TransportError, TransportTimeout
from weft.register_types import Field, FifoPort, Register

__all__ = ["RegisterAccess", "RegisterNames", "RegisterTransport", "progress"]


class RegisterAccess(Protocol):
    """32-bit accesses to the register space of a core, by byte address from its start."""

    def read(self, address: int) -> int:
        """Return the word at ``address``."""

    def write(self, address: int, value: int) -> None:
        """Write a word."""

    def close(self) -> None:
        """Release the register space. Closing twice has no effect."""


class RegisterNames:
    """Registers and FIFO ports by their names.

    Attributes
    ----------
    address : dict of int
        Of registers and FIFO ports.
    """

    def __init__(self, registers: Iterable[Register], ports: Iterable[FifoPort]):
        self.address = {port.name: port.address for port in ports}
        self._fields: dict[tuple[str, str], Field] = {}
        for register in registers:
            self.address[register.name] = register.address
            self._fields |= {(register.name, field.name): field for field in register.fields}

    def value(self, register: str, field: str, word: int) -> int:
        """Return a bit field of the value ``word`` of a register."""
        place = self._fields[register, field]
        return word >> place.low & (1 << place.width) - 1

    def bits(self, register: str, *fields: str) -> int:
        """Return the value of a register whose bit fields ``fields``, one bit each, are 1."""
        return sum(1 << self._fields[register, name].low for name in fields)


class RegisterReader:
    """Reads the registers of an IP core while another program uses it.

    A `RegisterTransport` resets the core first; this does not, and has no commands.

    Parameters
    ----------
    access : RegisterAccess
    """

    fresh = True

    def __init__(self, access: RegisterAccess):
        self._access = access

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        """Return the values of ``count`` of the core's registers, from word ``address`` on."""
        return [self._access.read(4 * n) for n in range(address, address + count)]

    def close(self) -> None:
        """Release the registers."""
        self._access.close()


class RegisterTransport:
    """The registers of any IP core, its soft reset and abort; a subclass adds its data.

    It begins with a soft reset, so nothing of an earlier client is left. A subclass describes the
    kind of core: ``KIND`` for messages, ``NAMES``, the number of the core's own registers, and
    ``DECODE``, which makes the config of these registers or raises ValueError.

    Parameters
    ----------
    access : RegisterAccess
        The registers; the transport closes them.
    timeout : float
        Maximum seconds for the soft reset.

    Raises
    ------
    TransportError
        If the registers are not the ones of such a core; nothing is written then.
    TransportTimeout
        If the core does not leave its reset.
    """

    KIND: ClassVar[str]
    NAMES: ClassVar[RegisterNames]
    CORE_REGISTERS: ClassVar[int]
    DECODE: ClassVar[Callable[[list[int]], Any]]

    def __init__(self, access: RegisterAccess, timeout: float = 10.0):
        self._access = access
        self._closed = False
        try:
            self._config = self._describe(timeout)
            self._reset(timeout)
        except BaseException:
            self.close()
            raise

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        """Return the values of ``count`` of the core's registers, from word ``address`` on."""
        self._check()
        return [
            self._access.read(4 * n) if n < self.CORE_REGISTERS else 0
            for n in range(address, address + count)
        ]

    def abort(self, timeout: float) -> None:
        """Abort the running job or list."""
        self._check()
        self._write("control", self.NAMES.bits("control", "abort"))

    def close(self) -> None:
        """Release the registers. Closing twice has no effect."""
        if not self._closed:
            self._closed = True
            self._access.close()

    def _describe(self, timeout):
        try:
            return type(self).DECODE(self.read(0, self.CORE_REGISTERS, timeout))
        except ValueError as error:
            raise TransportError(f"the registers do not describe {self.KIND}: {error}") from error

    def _reset(self, timeout):
        self._write("control", self.NAMES.bits("control", "reset"))
        self._wait("reset_busy", timeout, "the core did not leave its reset")

    def _wait(self, field, timeout, text):
        """Wait until a field of STATUS is 0."""
        self._check()
        start = time.monotonic()
        while self.NAMES.value("status", field, self._read("status")):
            progress(False, start, timeout, text)

    def _check(self):
        if self._closed:
            raise TransportClosed("the registers of the core are closed")

    def _read(self, name):
        return self._access.read(self.NAMES.address[name])

    def _write(self, name, value):
        self._access.write(self.NAMES.address[name], value)


def progress(moved: bool, last_move: float, timeout: float, text: str) -> float:
    """Return the time of the last progress; TransportTimeout if it is too long ago."""
    now = time.monotonic()
    if moved:
        return now
    if now - last_move > timeout:
        raise TransportTimeout(f"{text} for {timeout:g} s")
    return last_move
