"""Bytes that a step on a product core moves: operands, results, frames on the serial port."""

from dataclasses import dataclass, fields

from weft.commands import HEADER_BYTES, Job, JobFlag, Load, Region, result
from weft.config import Config
from weft.cycles.output import ResultKind
from weft.frames import MAX_PAYLOAD
from weft.geometry import memories
from weft.host.packing import result_bytes
from weft.models.program import Program, Step
from weft.models.work import RecurrentWork
from weft.timing import Latencies

__all__ = [
    "FRAME_BYTES", "RESULT_FRAME_BYTES", "LayerStreams", "chunk_cycles", "step_streams", "streams",
    "transfers",
]

FRAME_BYTES = 12  # SYNC, type, number, length and CRC of a frame; an acknowledgement has only these
RESULT_FRAME_BYTES = FRAME_BYTES + 4  # and tag, last and status of a RESULTS frame


@dataclass(frozen=True)
class LayerStreams:
    """Bytes that a step moves in one inference, and bytes that its results occupy.

    Attributes
    ----------
    commands : int
        On the command stream: headers, operands, parameters, padding.
    results : int
        On the result stream, with padding.
    a, b, parameters : int
        Operand words of A and of B, and parameters and tables, as the commands load them.
    sent, received : int
        On the serial port to and from the board: with frames and acknowledgements.
    drain : int
        Cycles in which the output stage is busy: chunks of results, times the cycles of a chunk.
    """

    commands: int = 0
    results: int = 0
    a: int = 0
    b: int = 0
    parameters: int = 0
    sent: int = 0
    received: int = 0
    drain: int = 0

    def __add__(self, other: "LayerStreams") -> "LayerStreams":
        return LayerStreams(*(
            getattr(self, f.name) + getattr(other, f.name) for f in fields(LayerStreams)
        ))

    def __mul__(self, times: int) -> "LayerStreams":
        return LayerStreams(*(getattr(self, f.name) * times for f in fields(LayerStreams)))


def transfers(program: Program, step: Step) -> list[tuple[list[Job | Load], int]]:
    """The streams of a step on the core, and how often each is sent in an inference.

    A stream has the headers in their order, with the loads that follow for a later step.
    """
    work = step.work
    if isinstance(work, RecurrentWork):
        return [(part.commands(), work.steps) for part in work.products]
    early = [] if work.early < 0 else program.steps[work.early].work.weight_loads()
    return [([*work.commands(), *(load for load, _ in early)], 1)]


def step_streams(program: Program, step: Step) -> LayerStreams:
    """Bytes that a step on the core moves in one inference."""
    found = [streams(program.target.array, c) * times for c, times in transfers(program, step)]
    return sum(found, LayerStreams())


def streams(config: Config, commands) -> LayerStreams:
    """Bytes that ``commands`` move in one inference, if each is sent once.

    Frames hold up to 256 bytes of the step's commands, one after another; the board acknowledges
    each. The results of a job start a new frame. Repeated frames and requests do not count.
    """
    geometry = memories(config)
    sizes = dict.fromkeys(geometry, 0)
    stream_words = results = frames = drain = 0
    for command in commands:
        stream_words += max(1, HEADER_BYTES // config.bytes_in)
        if isinstance(command, Job):
            if JobFlag.KEEP in command.flags:
                continue
            size = result_bytes(command.m, command.n, config, result(config, command.flags).bytes)
            results += size
            frames += -(-size // MAX_PAYLOAD)
            drain += _drain_cycles(config, command)
        else:
            operand = geometry[command.operand]
            groups = -(-command.words // operand.group)
            stream_words += groups * operand.segments * command.panels
            sizes[command.operand] += command.words * command.panels * operand.word_bytes
    sent = stream_words * config.bytes_in
    sent_frames = -(-sent // MAX_PAYLOAD)
    a, b = sizes.pop(Region.A), sizes.pop(Region.B)
    return LayerStreams(
        sent, results, a, b, sum(sizes.values()), sent + FRAME_BYTES * sent_frames,
        results + RESULT_FRAME_BYTES * frames + FRAME_BYTES * sent_frames, drain,
    )


def chunk_cycles(config, flags):
    """Cycles from a chunk of results to the next one."""
    kind = ResultKind.of(Latencies.of(config), flags)
    return max(kind.words, config.scale_cycles if kind.epilogue else 1)


def _drain_cycles(config, job):
    full, rest = divmod(job.n, config.cols)
    chunks = full * -(-config.cols // config.lanes) + -(-rest // config.lanes)
    return job.m * chunks * chunk_cycles(config, job.flags)
