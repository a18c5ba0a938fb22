"""What gates must do to be an accelerator: tell their Config, and multiply as golden does."""

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from ml_dtypes import bfloat16

from weft.commands import JobFlag
from weft.config import PAGE_WORDS, Config
from weft.frames import MAX_PAYLOAD, FrameType
from weft.host.link import Frame
from weft.registers import REGISTERS, decode
from weft.sim.gates.simulator import GateSim, GateSimError
from weft.sim.scenario import Scenario

__all__ = ["GateTest", "check_gates", "scenarios"]

PANELS, MOST = 3, 61  # at most, of an operand, the last one not full; values of k
_RESULTS = struct.Struct("<HBB")


@dataclass(frozen=True)
class GateTest:
    """Gates that did all that they must.

    Attributes
    ----------
    jobs, macs : int
        That they did, and multiplications in them.
    results : int
        Bytes of results that were compared with golden's.
    """

    jobs: int
    macs: int
    results: int


def check_gates(gates: GateSim, config: Config, *, seed: int, said=lambda text: None) -> GateTest:
    """Have ``gates`` tell their ``config``, run jobs, be aborted, and run them again.

    Parameters
    ----------
    seed : int
        Of the operands.
    said : callable
        Told, in a line, what is right.

    Raises
    ------
    GateSimError
        For the first thing that is not as it must be.
    """
    _tell(gates, config)
    said("registers tell the Config")
    jobs = macs = results = 0
    numbers = itertools.count(1)  # of frames of commands, from power on
    for name, scenario, work in scenarios(config, seed):
        _run(gates, scenario, name, numbers)
        said(f"{name} equals golden, {gates.cycles:,} cycles after power came on")
        jobs += len(scenario.expected_results)
        macs += work
        results += sum(len(one.words) for one in scenario.expected_results) * config.bytes_out
        _ask(gates, Frame(FrameType.ABORT, jobs % 256), FrameType.ABORTED)
    return GateTest(jobs, macs, results)


def scenarios(config: Config, seed: int) -> Iterator[tuple[str, Scenario, int]]:
    """Programs of a job or two each, by name, and the multiplications in them.

    Sums of ragged shapes; results that the core finishes, if it does; the least value that there
    is, everywhere; one value times another.
    """
    rng = np.random.default_rng(seed)
    pages = min(config.a_words, config.b_words) // PAGE_WORDS
    panels = min(PANELS, pages)
    m, n = (max(1, panels * edge - 1) for edge in (config.rows, config.cols))
    k = min(pages // panels * PAGE_WORDS * config.depth - 1, MOST)

    def drawn(*shape):
        if config.dtype == "bf16":
            return rng.standard_normal(shape).astype(bfloat16)
        return rng.integers(-128, 128, shape, dtype=np.int8)

    def least(*shape):
        return np.full(shape, -3e38 if config.dtype == "bf16" else -128, drawn(1).dtype)

    for name, (a, b), finished in (
        ("sums", (drawn(m, k), drawn(n, k)), False),
        ("finished results", (drawn(m, k), drawn(n, k)), True),
        ("the least values", (least(m, k), least(n, k)), False),
        ("one product", (drawn(1, 1), drawn(1, 1)), False),
        ("the last results", (drawn(m, k), drawn(n, k)), True),
    ):
        flags = JobFlag(0)
        scenario = Scenario(config)
        if finished and config.dtype == "bf16":
            flags = JobFlag.ROUND
        elif finished and config.requantize != "none":
            flags = JobFlag.REQUANTIZE
            pitch = -(-k // (PAGE_WORDS * config.depth))  # as far apart as panels of B
            scenario.load_parameters([_column(config, rng) for _ in range(n)], pitch=pitch)
        scenario.multiply(a, b, flags=flags, tag=int(rng.integers(1 << 16)))
        yield name, scenario, len(a) * len(b) * a.shape[1]


def _column(config, rng):
    """What finishes a column, of results over all of int8."""
    bias = int(rng.integers(-9999, 10000))
    if config.requantize == "onnx":
        multiplier = int(np.float32(rng.uniform(0.001, 0.004)).view(np.uint32))
        multiplier -= (multiplier >> 31) << 32
    else:
        multiplier = int(rng.integers(1 << 30, 1 << 31))
    return bias, multiplier, -int(rng.integers(7, 10)), 0, int(rng.integers(-9, 10)), -120, 125


def _tell(gates, config):
    """GateSimError where the registers are not those of ``config``."""
    question = struct.pack("<HH", 0, len(REGISTERS))
    answer = _ask(gates, Frame(FrameType.READ, 7, question), FrameType.REGISTERS)
    words = list(struct.unpack(f"<{len(answer.payload) // 4}I", answer.payload))
    try:
        found = decode(words)
    except ValueError as error:
        raise GateSimError(str(error)) from None
    if found != config:
        raise GateSimError(f"the registers must tell {config.name}, not {found.name}")


def _ask(gates, frame, kind):
    """The answer to ``frame``, while there is nothing else to come."""
    gates.send(frame)
    answer = gates.receive()
    if (answer.type, answer.sequence) != (kind, frame.sequence):
        raise GateSimError(f"the answer to {FrameType(frame.type).name} must be {kind.name}"
                         f" {frame.sequence}, not {_named(answer)}")
    return answer


def _run(gates, scenario, name, numbers):
    """Run ``scenario``; GateSimError where the answers are not golden's."""
    size = scenario.config.bytes_in
    share = MAX_PAYLOAD // size
    packets = []
    for start in range(0, len(scenario.words), share):
        number = next(numbers) % 256
        words = scenario.words[start : start + share]
        commands = b"".join(word.to_bytes(size, "little") for word in words)
        gates.send(Frame(FrameType.COMMANDS, number, commands))
        while (frame := gates.receive()).type == FrameType.RESULTS:
            packets.append(frame.payload)
        if (frame.type, frame.sequence) != (FrameType.ACK, number):
            raise GateSimError(f"{name}: frame {number} must get an ACK, not {_named(frame)}")
    for answer in scenario.expected_results:
        taken = []
        while not (taken and taken[-1]["last"]):
            while not packets:
                frame = gates.receive()
                if frame.type != FrameType.RESULTS:
                    raise GateSimError(f"{name}: results must come, not {_named(frame)}")
                packets.append(frame.payload)
            taken += _words(packets.pop(0), scenario.config.bytes_out)
        try:
            answer.check(taken)
        except AssertionError as error:
            raise GateSimError(f"{name} must equal golden: {error}") from None


def _words(payload, size):
    """The words of a frame of results."""
    tag, last, status = _RESULTS.unpack_from(payload)
    data = payload[_RESULTS.size :]
    starts = range(0, len(data), size)
    return [
        {
            "data": int.from_bytes(data[start : start + size], "little"), "tag": tag,
            "status": status, "last": bool(last) and start == starts[-1],
        }
        for start in starts
    ]


def _named(frame):
    known = frame.type in set(FrameType)
    name = FrameType(frame.type).name if known else f"type {frame.type}"
    text = f", {frame.payload.decode(errors='replace')}" if name == "ERROR" else ""
    return f"{name} {frame.sequence}{text}"
