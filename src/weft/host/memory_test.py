"""Tests of the program memory of a core, over its link: each names what is broken."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weft.frames import MAX_CHECK
from weft.language_core.config import WORD_BYTES
from weft.network_core.descriptors import split
from weft.sdram import SdramPhase

__all__ = [
    "Check", "PhaseSweep", "full_test", "quick_test", "sweep_phases",
    "sweep_phases_of_words", "test_of_words",
]

# Returns details, and what is wrong: None if the memory has passed.
Check = Callable[[], tuple[str, str | None]]

_SAMPLE = 32  # vectors of the quick test that lie anywhere
_REST = 1.0  # seconds without an access: 15 times as long as a row of an SDRAM keeps its bits
_SEED = 1
_PIECE = 256  # bytes at each place, in the test of a phase
_PATTERNS = 0x55, 0xAA, 0x33, 0xCC, 0x0F, 0xF0  # bytes: bits beside equal and other ones


def quick_test(driver) -> list[tuple[str, Check]]:
    """Data lines, address lines and some vectors everywhere, whose values are kept.

    It takes some 200 reads and writes of a vector.

    Parameters
    ----------
    driver : NetworkDriver
        With a program memory.

    Returns
    -------
    list of (str, callable)
        Name of each check, and what makes it. It raises TransportError if the connection fails.
    """
    return _quick(_Vectors(driver))


def _quick(memory):
    return [
        ("data lines", lambda: _data_lines(memory)),
        ("address lines", lambda: _address_lines(memory)),
        ("sample", lambda: _sample(memory)),
    ]


def full_test(driver, seed: int = _SEED) -> list[tuple[str, Check]]:
    """The checks of `quick_test`, those of byte enables and refresh, and two patterns everywhere.

    The whole memory is written, so programs in it are lost. ``seed`` is the one of the patterns;
    ``driver`` and results are as there.
    """
    memory = _Vectors(driver)
    return [
        *_quick(memory),
        ("byte enables", lambda: _byte_enables(memory)),
        ("refresh", lambda: _refresh(memory)),
        ("patterns", lambda: _patterns(memory, seed)),
    ]


def test_of_words(driver, seed: int = _SEED) -> list[tuple[str, Check]]:
    """The checks of `full_test` but for byte enables, which a language core does not use.

    The contents of program memory and main memory are lost. ``driver`` is a
    `weft.host.language_driver.LanguageDriver`.
    """
    memory = _Words(driver)
    return [
        *_quick(memory),
        ("refresh", lambda: _refresh(memory)),
        ("patterns", lambda: _patterns(memory, seed)),
    ]


@dataclass(frozen=True)
class PhaseSweep:
    """What a memory does with each phase of its clock.

    Attributes
    ----------
    built : SdramPhase
        That of the bitstream.
    passed : tuple of bool
        Of each step of a period, whether the memory keeps what is written.
    """

    built: SdramPhase
    passed: tuple[bool, ...]

    @property
    def details(self) -> str:
        """The phases that pass, and their middle."""
        runs = self._runs()
        if not runs:
            return f"none of {len(self.passed)} phases passes"
        text = ", ".join(f"{self._degrees(first):g} to {self._degrees(last):g}"
                         for first, last in runs)
        return f"{text} degrees pass; the middle is {self._degrees(self._middle(runs)):g}"

    @property
    def failure(self) -> str | None:
        """What is wrong; None if the phase of the bitstream passes."""
        if self.passed[self.built.phase]:
            return None
        runs = self._runs()
        advice = "no phase passes: the memory or its wires are broken" if not runs else (
            f"build with --sdram-phase {round(self._degrees(self._middle(runs)))}, the middle of"
            " those that pass"
        )
        return f"the phase of {self.built.degrees:g} degrees fails; {advice}"

    @property
    def picture(self) -> str:
        """A character for each step: whether it passes; below it, the phase of the bitstream."""
        bar = "".join(".#"[passes] for passes in self.passed)
        last = self._degrees(len(self.passed) - 1)
        return (
            f"phases of the SDRAM's clock, 0 to {last:g} degrees: # passes, . fails\n{bar}\n"
            f"{' ' * self.built.phase}^ {self.built.degrees:g} degrees, as built"
        )

    def _degrees(self, step):
        return SdramPhase(step % len(self.passed), len(self.passed)).degrees

    def _runs(self):
        """First and last step of each run of phases that pass; it may end in the next period."""
        steps, passed = len(self.passed), self.passed * 2
        if all(passed):
            return [(0, steps - 1)]
        firsts = [n for n in range(steps) if passed[n] and not passed[n - 1]]
        return [(first, passed.index(False, first) - 1) for first in firsts]

    @staticmethod
    def _middle(runs):
        """The middle of the longest run."""
        first, last = max(runs, key=lambda run: run[1] - run[0])
        return (first + last) // 2


def sweep_phases(driver) -> PhaseSweep | None:
    """Test the memory with each phase of its clock; at the end it has that of the bitstream.

    The contents of the memory are lost.

    Parameters
    ----------
    driver : NetworkDriver
        With a program memory.

    Returns
    -------
    PhaseSweep or None
        None if the clock has a fixed phase.
    """
    return _sweep(driver, _Vectors(driver))


def sweep_phases_of_words(driver) -> PhaseSweep | None:
    """The same with a `weft.host.language_driver.LanguageDriver`; its main memory is lost, too."""
    return _sweep(driver, _Words(driver))


def _sweep(driver, memory):
    built = driver.move_sdram_phase(0)
    if built is None:
        return None
    passed = {}
    try:
        for n in range(built.steps):
            passed[(built.phase + n) % built.steps] = _keeps(memory, n)
            driver.move_sdram_phase(1)
    finally:  # after an error, or an interrupt, the clock has any phase
        for _ in range(built.steps):
            if driver.move_sdram_phase(0) == built:
                break
            driver.move_sdram_phase(1)
    return PhaseSweep(built, tuple(passed[n] for n in range(built.steps)))


class _Units:
    """A memory, unit by unit.

    Attributes
    ----------
    unit : str
        Name of several.
    depth : int
        Bytes of a unit.
    count : int
        Units of the memory.
    beat_bytes : int
        Bytes that the memory moves at once: a part or a multiple of a unit.
    """

    unit: str
    depth: int
    count: int
    beat_bytes: int

    def written(self, values):
        """Write these units, by number, and return what is read; then their old values return."""
        before = {number: self.read(number) for number in values}
        for number, data in values.items():
            self.write(number, data)
        found = {number: self.read(number) for number in values}
        for number, data in before.items():
            self.write(number, data)
        return found

    def value(self, number):
        """A value that no other unit has: noise that depends on its number."""
        return np.random.default_rng([_SEED, number]).bytes(self.depth)


class _Vectors(_Units):
    """The program memory of a network core."""

    unit = "vectors"

    def __init__(self, driver):
        self._driver, self._banks = driver, driver.config.banks
        self.depth = driver.config.array.depth
        self.count = driver.program_bytes // self.depth
        self.in_beat = driver.config.read_vectors
        self.beat_bytes = self.depth * self.in_beat

    def read(self, number, count=1):
        """The bytes of vectors."""
        return self._driver.read_program(split(number, self._banks), count * self.depth)

    def write(self, number, data):
        """Write bytes of vectors."""
        self._driver.write_program(split(number, self._banks), data, compare=False)

    def has(self, number, data):
        """Whether vectors have these bytes, at most MAX_CHECK."""
        return self._driver.program_has(split(number, self._banks), data)


class _Words(_Units):
    """The program memory of a language core: its main memory is between it and the host."""

    unit = "words"

    def __init__(self, driver):
        self.depth, self.count = WORD_BYTES, driver.config.program_words
        self.beat_bytes = driver.config.beat_bytes
        self.read, self.write, self.has = (
            driver.read_program, driver.store_program, driver.program_has,
        )


def _wrong_bits(pairs):
    """The bits that differ in pairs of bytes of equal length, as one integer."""
    bits = 0
    for wanted, found in pairs:
        bits |= int.from_bytes(wanted, "little") ^ int.from_bytes(found, "little")
    return bits


def _data_lines(memory):
    """Each bit of a beat is 0 and 1, beside neighbours with both values."""
    bits = 8 * memory.beat_bytes
    units = max(1, memory.beat_bytes // memory.depth)
    before = memory.read(0, units)
    beats = len(before) // memory.beat_bytes
    every, wrong = (1 << bits) - 1, 0
    low = high = every  # bits that were never 1, never 0
    for value in (0, every, *(every // 0xFF * byte for byte in _PATTERNS)):
        memory.write(0, value.to_bytes(memory.beat_bytes, "little") * beats)
        data = memory.read(0, units)
        for first in range(0, len(data), memory.beat_bytes):
            found = int.from_bytes(data[first : first + memory.beat_bytes], "little")
            wrong |= value ^ found
            low, high = low & ~found, high & found
    memory.write(0, before)
    failure = None
    if wrong:
        failure = f"wrong bits of a beat of {bits}: {_ranges(wrong)}"
        for always, value in ((low, 0), (high, 1)):
            if always:
                failure += f"; always {value}: {_ranges(always)}"
    return f"{bits} bits", failure


def _ranges(bits):
    """The numbers of the bits that are 1, as ranges: 0..7, 16."""
    text, first = [], None
    for n in range(bits.bit_length() + 1):
        one = bits >> n & 1
        if one and first is None:
            first = n
        elif not one and first is not None:
            text.append(f"{first}" if n - first == 1 else f"{first}..{n - 1}")
            first = None
    return ", ".join(text)


def _address_lines(memory):
    """Unit 0 and those at each power of two have values of their own.

    A line that is stuck gives a unit the value of another one. If all lines from one on do, the
    memory is smaller than it must be.
    """
    lines = [n for n in range(memory.count.bit_length()) if 1 << n < memory.count]
    values = {number: memory.value(number) for number in (0, *(1 << n for n in lines))}
    found = memory.written(values)
    size = memory.count * memory.depth
    shared = [n for n in lines if found[1 << n] == found[0]]
    failure = None
    if shared and shared == lines[shared[0] :]:
        failure = (
            f"the memory has {memory.depth << shared[0]:,} bytes, and must have {size:,}"
        )
    elif shared:
        places = ", ".join(f"{memory.depth << n:#x}" for n in shared)
        failure = f"byte addresses that differ by {places} are the same place"
    else:
        failure = _difference(memory, values, found)
    return f"{len(lines)} lines, {size:,} bytes", failure


def _sample(memory):
    """Units anywhere keep their values."""
    rng = np.random.default_rng(_SEED)
    numbers = sorted({int(n) for n in rng.integers(0, memory.count, _SAMPLE)})
    values = {number: memory.value(number) for number in numbers}
    found = memory.written(values)
    return f"{len(values)} {memory.unit}", _difference(memory, values, found)


def _difference(memory, values, found):
    """How values differ from those that were found; None if they do not."""
    wrong = [number for number in values if values[number] != found[number]]
    if not wrong:
        return None
    part = min(memory.depth, memory.beat_bytes)
    bits = _wrong_bits(
        (values[n][first : first + part], found[n][first : first + part])
        for n in wrong for first in range(0, memory.depth, part)
    )
    lanes = [n for n in range(part) if bits >> 8 * n & 0xFF]
    text = (
        f"{len(wrong)} of {len(values)} {memory.unit} are wrong, the first one at byte"
        f" {wrong[0] * memory.depth:#x}"
    )
    if len(lanes) < part:
        text += f"; only bytes {', '.join(map(str, lanes))} of {part}"
    return text


def _byte_enables(memory):
    """A vector is written beside its neighbours, which keep their values."""
    beats = memory.in_beat
    values = {number: memory.value(number) for number in range(2 * beats)}
    for number in (*range(0, 2 * beats, 2), *range(1, 2 * beats, 2)):
        memory.write(number, values[number])
    found = {number: memory.read(number) for number in values}
    return f"{2 * beats} vectors", _difference(memory, values, found)


def _refresh(memory):
    """Bytes stay while nothing is accessed."""
    size = min(memory.count * memory.depth, MAX_CHECK)
    data = np.random.default_rng(_SEED).bytes(size)
    memory.write(0, data)
    time.sleep(_REST)
    found = memory.read(0, size // memory.depth)
    wrong = int((np.frombuffer(data, np.uint8) != np.frombuffer(found, np.uint8)).sum())
    failure = f"{wrong:,} of {size:,} bytes are wrong after {_REST:g} s" if wrong else None
    return f"{size:,} bytes for {_REST:g} s", failure


def _keeps(memory, seed):
    """Whether units at both ends of the memory, and between them, keep what is written."""
    units = max(1, _PIECE // memory.depth)
    places = [(memory.count - units) * n // 3 for n in range(4)]
    data = [np.random.default_rng([seed, n]).bytes(units * memory.depth) for n in places]
    for place, piece in zip(places, data, strict=True):
        memory.write(place, piece)
    return all(memory.has(place, piece) for place, piece in zip(places, data, strict=True))


def _patterns(memory, seed):
    """Noise and its inverse, in the whole memory."""
    size, depth = memory.count * memory.depth, memory.depth
    wrong, seconds = 0, 0.0
    noise = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    for values in (noise, ~noise):
        start = time.perf_counter()
        memory.write(0, values.tobytes())
        seconds += time.perf_counter() - start
        for first in range(0, size, MAX_CHECK):
            piece, number = values[first : first + MAX_CHECK], first // depth
            if not memory.has(number, piece.tobytes()):
                found = memory.read(number, len(piece) // depth)
                wrong += int((np.frombuffer(found, np.uint8) != piece).sum())
    failure = f"{wrong:,} of {2 * size:,} bytes are wrong" if wrong else None
    return f"{size:,} bytes; {2 * size / seconds:,.0f} bytes/s to the core", failure
