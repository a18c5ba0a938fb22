"""Gates in a simulator: the test of an accelerator, its registers and results against golden."""

import itertools
import struct
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.commands import JobFlag, epilogue_flags
from weft.config import PAGE_WORDS, Config
from weft.frames import MAX_PAYLOAD, FrameType
from weft.host.link import Frame, FrameDecoder, FramingError
from weft.registers import REGISTERS, decode
from weft.sim.numbers import numbers
from weft.sim.scenario import Scenario, result_words

__all__ = ["GateSim", "GateSimError", "GateTest", "HARNESS", "check_gates", "scenarios"]

HARNESS = Path(__file__).with_name("uart.cpp")
TIMEOUT_CYCLES = 200_000  # cycles without a byte from the gates
LIMIT = 7200  # timeout of a simulation in seconds
_REQUEST, _ANSWER = struct.Struct("<II"), struct.Struct("<QQ")


class GateSimError(RuntimeError):
    """The gates behave differently from an accelerator; the message says how."""


class GateSim:
    """A running simulation; a context manager. Its clock runs only during `send` and `receive`.

    Parameters
    ----------
    program : Path
        The program of `weft.sim.gates.build_model`.
    divisor : int
        Clock cycles per bit of the serial line.
    seed : int
        Seed of the undefined values at power-on.

    Attributes
    ----------
    cycles : int
        Clock cycles since power-on.
    sent, received : int
        Bytes over the serial line.
    """

    def __init__(self, program: Path, *, divisor: int, seed: int):
        self.cycles = self.sent = self.received = 0
        self._decoder, self._inbox = FrameDecoder(), deque()
        self._stderr = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [program, str(divisor), str(seed)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
        )
        self._watchdog = threading.Timer(LIMIT, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._watchdog.cancel()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            pipe.close()

    def send(self, frame: Frame) -> None:
        """Send ``frame``, bit by bit."""
        self._exchange(frame.encode(), 0)

    def receive(self, cycles: int = TIMEOUT_CYCLES) -> Frame:
        """The next frame. Raises GateSimError if no byte arrives in so many cycles, or a frame is
        damaged.
        """
        while not self._inbox:
            if not self._exchange(b"", cycles):
                raise GateSimError(f"expected a frame, but no byte in {cycles:,} cycles")
        frame = self._inbox.popleft()
        if isinstance(frame, FramingError):
            raise GateSimError(frame.text)
        return frame

    def _exchange(self, data, limit):
        """Send ``data``, then wait up to ``limit`` cycles for bytes; returns the bytes received."""
        try:
            self._process.stdin.write(_REQUEST.pack(len(data), limit) + data)
            self._process.stdin.flush()
            head = self._process.stdout.read(_ANSWER.size)
        except BrokenPipeError:
            head = b""
        if len(head) < _ANSWER.size:
            raise GateSimError(self._exit_reason())
        count, self.cycles = _ANSWER.unpack(head)
        self.sent += len(data)
        self.received += count
        self._inbox += self._decoder.feed(self._process.stdout.read(count))
        return count

    def _exit_reason(self):
        """The process's last message, or its exit status."""
        status = self._process.wait(LIMIT)
        self._stderr.seek(0)
        message = self._stderr.read().decode(errors="replace").strip()
        return message or f"the simulation ended unexpectedly, with exit status {status}"


MAX_PANELS, MAX_K = 3, 61  # the last panel is not full
_RESULTS = struct.Struct("<HBB")


@dataclass(frozen=True)
class GateTest:
    """The extent of a test that has passed.

    Attributes
    ----------
    jobs : int
        Number of jobs.
    macs : int
        Number of multiplications in the jobs.
    results : int
        Bytes of results that were compared with golden.
    """

    jobs: int
    macs: int
    results: int


def check_gates(gates: GateSim, config: Config, *, seed: int, say=lambda text: None) -> GateTest:
    """Read the Config from ``gates``, then run all scenarios, with an abort after each.

    Parameters
    ----------
    seed : int
        Seed of the operands.
    say : callable
        Called with a line of text after each step that has passed.

    Raises
    ------
    GateSimError
        At the first difference.
    """
    _check_registers(gates, config)
    say("registers describe the Config")
    jobs = macs = results = 0
    sequence = itertools.count(1)  # numbers of command frames, from power-on
    for name, scenario, scenario_macs in scenarios(config, seed):
        _run(gates, scenario, name, sequence)
        say(f"{name}: results equal golden, {gates.cycles:,} cycles after power-on")
        jobs += len(scenario.scoreboards)
        macs += scenario_macs
        words = sum(len(result.words) for result in scenario.scoreboards)
        results += words * config.bytes_out
        _request(gates, Frame(FrameType.ABORT, jobs % 256), FrameType.ABORTED)
    return GateTest(jobs, macs, results)


def scenarios(config: Config, seed: int) -> Iterator[tuple[str, Scenario, int]]:
    """(name, scenario, number of multiplications) of each scenario.

    They cover sums of ragged shapes, finished results (if the core can finish results), the
    smallest operand value everywhere, and a product of two single values.
    """
    rng = np.random.default_rng(seed)
    pages = min(config.a_words, config.b_words) // PAGE_WORDS
    panels = min(MAX_PANELS, pages)
    m, n = (max(1, panels * edge - 1) for edge in (config.rows, config.cols))
    k = min(pages // panels * PAGE_WORDS * config.depth - 1, MAX_K)

    kind = numbers(config)

    def noise(*shape):
        return kind.moderate(rng, *shape)

    def minimum(*shape):
        return np.full(shape, kind.MINIMUM)

    for name, (a, b), finished in (
        ("sums", (noise(m, k), noise(n, k)), False),
        ("finished results", (noise(m, k), noise(n, k)), True),
        ("smallest values", (minimum(m, k), minimum(n, k)), False),
        ("one product", (noise(1, 1), noise(1, 1)), False),
        ("finished results again", (noise(m, k), noise(n, k)), True),
    ):
        flags, parameters = JobFlag(0), None
        scenario = Scenario(config, seed)
        if finished:
            flags = next(iter(epilogue_flags(config)), flags)
        if JobFlag.REQUANTIZE in flags:
            parameters = [_column(config, rng) for _ in range(n)]
        tag = int(rng.integers(1 << 16))
        scenario.multiply(a, b, parameters=parameters, feed=(), flags=flags, tag=tag)
        yield name, scenario, len(a) * len(b) * a.shape[1]


def _column(config, rng):
    """Parameters of one column, which give results over the whole range of int8."""
    bias = int(rng.integers(-9999, 10000))
    if config.requantize == "onnx":
        multiplier = int(np.float32(rng.uniform(0.001, 0.004)).view(np.uint32))
    else:
        multiplier = int(rng.integers(1 << 30, 1 << 31))
    return bias, multiplier, -int(rng.integers(7, 10)), 0, int(rng.integers(-9, 10)), -120, 125


def _check_registers(gates, config):
    """Raise GateSimError if the registers do not describe ``config``."""
    payload = struct.pack("<HH", 0, len(REGISTERS))
    answer = _request(gates, Frame(FrameType.READ, 7, payload), FrameType.REGISTERS)
    words = list(struct.unpack(f"<{len(answer.payload) // 4}I", answer.payload))
    try:
        found = decode(words)
    except ValueError as error:
        raise GateSimError(str(error)) from None
    if found != config:
        raise GateSimError(f"the registers must describe {config.name}, not {found.name}")


def _request(gates, frame, kind):
    """Send ``frame`` and return the answer; no other frame may be under way."""
    gates.send(frame)
    answer = gates.receive()
    if (answer.type, answer.sequence) != (kind, frame.sequence):
        raise GateSimError(
            f"the answer to {FrameType(frame.type).name} must be {kind.name} {frame.sequence},"
            f" not {_name(answer)}"
        )
    return answer


def _run(gates, scenario, name, sequence):
    """Run ``scenario``. Raises GateSimError if a result differs from golden."""
    data, size = scenario.data, scenario.config.bytes_in
    frame_bytes = MAX_PAYLOAD // size * size
    packets = []
    for start in range(0, len(data), frame_bytes):
        number = next(sequence) % 256
        gates.send(Frame(FrameType.COMMANDS, number, data[start : start + frame_bytes]))
        while (frame := gates.receive()).type == FrameType.RESULTS:
            packets.append(frame.payload)
        if (frame.type, frame.sequence) != (FrameType.ACK, number):
            raise GateSimError(f"{name}: frame {number} must get an ACK, not {_name(frame)}")
    for scoreboard in scenario.scoreboards:
        words = []
        while not (words and words[-1].last):
            while not packets:
                frame = gates.receive()
                if frame.type != FrameType.RESULTS:
                    raise GateSimError(f"{name}: expected RESULTS, received {_name(frame)}")
                packets.append(frame.payload)
            words += _words(packets.pop(0), scenario.config.bytes_out)
        try:
            scoreboard.check(words)
        except AssertionError as error:
            raise GateSimError(f"{name}: results differ from golden: {error}") from None


def _words(payload, size):
    """The result words of a RESULTS frame."""
    tag, last, status = _RESULTS.unpack_from(payload)
    return result_words(payload[_RESULTS.size :], size, tag=tag, status=status, last=last)


def _name(frame):
    """The type and the number of a frame; for an ERROR also its text."""
    known = frame.type in set(FrameType)
    name = FrameType(frame.type).name if known else f"type {frame.type}"
    text = f", {frame.payload.decode(errors='replace')}" if name == "ERROR" else ""
    return f"{name} {frame.sequence}{text}"
